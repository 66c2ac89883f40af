"""A short form made from an input's field specs: the same reading, help and faults as the API's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.http import QueryDict

from frontend.form_parts import FormField
from frontend.forms import allowed_text, error_text, form_field
from frontend.typed_numbers import clear_number
from planner.engine.errors import FieldError
from planner.engine.field_spec import specs

Listed = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The form as shown, with what is wrong in it."""

    fields: tuple[FormField, ...]
    errors: tuple[FieldError, ...]

    @property
    def has_errors(self) -> bool:
        return bool(self.errors)

    @property
    def unplaced(self) -> list[str]:
        """Faults of no field that is shown."""
        shown = {field.name for field in self.fields}
        return [f"{error_text(error)} {allowed_text(error)}" for error in self.errors if error.field not in shown]

    @property
    def field(self) -> dict[str, FormField]:
        return {field.name: field for field in self.fields}


def build_entry(
    input_type: type,
    given: Mapping[str, Any],
    errors: Sequence[FieldError] = (),
    *,
    listed: Listed | None = None,
    order: Sequence[str] = (),
) -> Entry:
    """The form of ``input_type``: ``given`` as typed, ``listed`` the choices of a field beyond its own spec.

    Fields named in ``order`` come first.
    """
    known = specs(input_type)
    faults = {error.field: error for error in reversed(errors)}
    texts = {name: as_text(value) for name, value in given.items()}
    names = [*order, *(name for name in known if name not in order)]
    return Entry(
        fields=tuple(
            form_field(name, *known[name], texts, faults.get(name), (listed or {}).get(name, ())) for name in names
        ),
        errors=tuple(errors),
    )


def as_text(value: Any) -> str:
    """A value as a form holds it.

    >>> as_text(Decimal("12.5000")), as_text(Decimal("16.253")), as_text(("a", "b")), as_text(None)
    ('12.5', '16.2530', 'a,b', '')
    """
    match value:
        case None:
            return ""
        case Decimal():
            return clear_number(f"{value.normalize():f}")
        case list() | tuple():
            return ",".join(str(item) for item in value)
        case _:
            return str(value)


def posted(given: QueryDict, input_type: type) -> dict[str, str]:
    """What a form sent, one text a field; of several values: separated by commas."""
    return {name: ",".join(given.getlist(name)) for name in specs(input_type) if name in given}
