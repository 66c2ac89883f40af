"""The URL holds the question: reading it, and writing it back in its shortest form.

A query string has the API's own field names. A few names more belong to the page alone (``PAGE_NAMES``):
how the traffic is stated, a use case to fill in, the option looked at. A pasted config.json travels packed
(``pack_config``), so that a link reproduces the plan with nothing stored on the server.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from frontend.config_link import ConfigRefused, pack_config, unpack_config
from frontend.typed_numbers import NUMBER_KINDS, ambiguity, clear_number, plain_number
from planner.engine.errors import FieldError
from planner.engine.field_spec import FieldSpec, specs

TRAFFIC_WAYS: dict[str, tuple[str, ...]] = {
    "rate": ("requests_per_second",),
    "users": ("users", "requests_per_user_per_day"),
    "clients": ("concurrency",),
    "offline": ("offline_requests", "offline_hours"),
}
PAGE_NAMES = ("traffic_by", "preset", "fill", "option")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a query string asks: ``given`` as typed, ``raw`` as the engine reads it, faults found in reading."""

    given: dict[str, str]
    raw: dict[str, Any]
    errors: list[FieldError]
    page: dict[str, str]

    @property
    def is_empty(self) -> bool:
        return not self.given and not self.errors


def read_query(query: QueryDict, question_type: type) -> Asked:
    """Read a query string; a name given twice, a control character or a broken config is a fault."""
    known = specs(question_type)
    given: dict[str, str] = {}
    page: dict[str, str] = {}
    errors: list[FieldError] = []
    for name in query:
        values = query.getlist(name)
        spec = known[name][0] if name in known else None
        fault = _fault_in(name, values, spec)
        if fault is not None:
            errors.append(fault)
        elif name in PAGE_NAMES:
            page[name] = values[0]
        elif (text := ",".join(value for value in values if value)).strip():
            given[name] = plain_number(text) if _is_number(spec) else text
    _drop_other_traffic(given, page.get("traffic_by", ""))
    raw: dict[str, Any] = dict(given)
    if "config" in raw:
        try:
            raw["config"] = unpack_config(given["config"])
            given["config"] = pack_config(raw["config"])
        except ConfigRefused as refused:
            errors.append(refused.as_field_error())
            del raw["config"]
    return Asked(given=given, raw=raw, errors=errors, page=page)


def canonical_query(given: Mapping[str, str], question_type: type, **page: str) -> str:
    """The shortest query string with the same meaning: fields in their order, defaults left out."""
    kept = [
        (name, clear_number(given[name]) if _is_number(spec) else given[name])
        for name, (spec, default) in specs(question_type).items()
        if name in given and given[name] != default_text(default)
    ]
    kept += [(name, value) for name, value in page.items() if value]
    return urlencode(kept, safe=",:/")


def default_text(default: Any) -> str:
    """A default, or an advised value, as a person would type it.

    >>> default_text(2.0), default_text(("on_demand", "spot")), default_text(None)
    ('2', 'on_demand,spot', '')
    """
    if default is None:
        return ""
    if isinstance(default, tuple | list):
        return ",".join(str(item) for item in default)
    if isinstance(default, float):
        return f"{Decimal(repr(default)).normalize():f}"
    return str(default)


def traffic_way(given: Mapping[str, str], page: Mapping[str, str]) -> str:
    """Which of the four ways states the traffic: the one asked for, else the first with a value."""
    if page.get("traffic_by") in TRAFFIC_WAYS:
        return page["traffic_by"]
    return next((way for way, names in TRAFFIC_WAYS.items() if any(name in given for name in names)), "rate")


def _drop_other_traffic(given: dict[str, str], way: str) -> None:
    """The form shows one way at a time; a value left in a hidden box is not part of the question."""
    if way in TRAFFIC_WAYS:
        for other, names in TRAFFIC_WAYS.items():
            if other != way:
                for name in names:
                    given.pop(name, None)


def _is_number(spec: FieldSpec | None) -> bool:
    return spec is not None and spec.kind in NUMBER_KINDS


def _is_control(char: str) -> bool:
    return char not in "\n\r\t" and unicodedata.category(char) in ("Cc", "Cs")


def _fault_in(name: str, values: list[str], spec: FieldSpec | None) -> FieldError | None:
    if any(_is_control(char) for value in (name, *values) for char in value):
        return FieldError(
            field=name, value=values[0], message=_("Control characters are not allowed."), allowed=_("plain text")
        )
    if _is_number(spec) and (unclear := ambiguity(name, values[0])) is not None:
        return unclear
    many = spec is not None and spec.kind == "choices"
    if len([value for value in values if value]) > 1 and not many:
        return FieldError(
            field=name,
            value=", ".join(values),
            message=_("Given more than once."),
            allowed=_("one value"),
            code="repeated",
        )
    return None
