"""Filters in the query string, read as strictly as a question's fields and documented from the same spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter

from planner.api.schema import field_schema
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import FieldSpec, allowed_range, read_value

# Python's own number reader would take 1_000 and other scripts' digits too.
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One query parameter and the rows it keeps."""

    spec: FieldSpec
    keep: Callable[[Any], Q]

    def parameter(self, name: str) -> OpenApiParameter:
        """The parameter as OpenAPI describes it; several values are separated by commas."""
        schema = {key: value for key, value in field_schema(self.spec, None).items() if key != "nullable"}
        words = schema.pop("description")
        is_list = self.spec.kind == "choices"
        if is_list:
            schema["minItems"] = 1
            if not self.spec.choices:
                schema["items"] = {"type": "string", "minLength": 1, "pattern": r"^[^,]*[^,\s][^,]*$"}
        return OpenApiParameter(
            name, schema, description=words, style="form" if is_list else None, explode=False if is_list else None
        )


def one_of(lookup: str, words: str, *choices: str, read: Callable[[str], str] = str) -> Filter:
    """Keeps the rows whose ``lookup`` is among the values given."""
    spec = FieldSpec(kind="choices", choices=choices, help=f"{words} Several: separated by commas.")
    return Filter(spec=spec, keep=lambda values: Q(**{f"{lookup}__in": [read(value) for value in values]}))


def at_least(lookup: str, words: str, maximum: float, unit: str) -> Filter:
    """Keeps the rows whose ``lookup`` is the number given or more."""
    spec = FieldSpec(kind="number", minimum=0, maximum=maximum, unit=unit, help=words)
    return Filter(spec=spec, keep=lambda value: Q(**{f"{lookup}__gte": value}))


def at_most(lookup: str, words: str, maximum: float, unit: str) -> Filter:
    """Keeps the rows whose ``lookup`` is the number given or less."""
    spec = FieldSpec(kind="number", minimum=0, maximum=maximum, unit=unit, help=words)
    return Filter(spec=spec, keep=lambda value: Q(**{f"{lookup}__lte": value}))


def not_older_than(lookup: str, words: str) -> Filter:
    """Keeps the rows whose date ``lookup`` is at most so many days ago."""
    spec = FieldSpec(kind="integer", minimum=0, maximum=3650, unit="days", help=words)

    def since(days: int) -> date:
        return timezone.localdate() - timedelta(days=days)

    return Filter(spec=spec, keep=lambda days: Q(**{f"{lookup}__gte": since(days)}))


def whether(words: str, keep: Callable[[bool], Q]) -> Filter:
    """Keeps the rows of which something is true or false; both given keep all."""
    spec = FieldSpec(kind="choices", choices=("true", "false"), help=words)
    return Filter(spec=spec, keep=lambda values: keep("true" in values) if len(values) == 1 else Q())


def containing(words: str, *lookups: str) -> Filter:
    """Keeps the rows that hold the text given in any of ``lookups``, whatever the case."""

    def keep(text: str) -> Q:
        found = Q()
        for lookup in lookups:
            found |= Q(**{f"{lookup}__icontains": text})
        return found

    return Filter(spec=FieldSpec(kind="text", help=words), keep=keep)


def read_parameters(query: QueryDict, specs: Mapping[str, FieldSpec]) -> dict[str, Any]:
    """The values given, by name; raises ``InvalidQuestion`` with every fault."""
    values: dict[str, Any] = {}
    faults: list[FieldError] = []
    for name, spec in specs.items():
        if name not in query:
            continue
        value = _read(name, spec, query.getlist(name))
        if isinstance(value, FieldError):
            faults.append(value)
        else:
            values[name] = value
    if faults:
        raise InvalidQuestion(faults)
    return values


def _read(name: str, spec: FieldSpec, given: list[str]) -> Any:
    if len(given) > 1 and spec.kind != "choices":
        return FieldError(field=name, value=given, message="Given more than once.", allowed="one value")
    text = ",".join(given)
    if "\x00" in text:
        return FieldError(field=name, value=text, message="Holds a NUL character.", allowed="text without NUL")
    if spec.kind in ("number", "integer") and not _NUMBER.fullmatch(text):
        return FieldError(field=name, value=text, message="Not a number.", allowed=allowed_range(spec))
    if spec.kind == "choices" and not all(_is_choice(spec, item) for item in text.split(",")):
        allowed = ", ".join(spec.choices) or "texts separated by commas, none of them empty"
        return FieldError(field=name, value=text, message="Not a known choice.", allowed=allowed)
    return read_value(name, spec, text)


def _is_choice(spec: FieldSpec, item: str) -> bool:
    return item in spec.choices if spec.choices else bool(item.strip())
