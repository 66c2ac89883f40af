"""A wrong value's fixes to click: other values that the field does accept, the likeliest first.

They come from the field's own bounds and choices and from what the fault says is allowed; each is read by the
field before it is offered.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from catalog.selectors import catalog_version, model_names
from frontend import words
from frontend.query import canonical_query, default_text
from frontend.stated import value_words
from planner.engine.errors import FieldError
from planner.engine.field_spec import FieldSpec, read_value, specs

MOST = 3
ALIKE = 0.55
"""How much a name must resemble what was typed, by ``difflib``."""
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?(?![\w])", re.ASCII)
LIKELY = {
    "model": "Llama 3.1 8B",
    "teacher": "Llama 3.1 70B",
    "requests_per_second": "1",
    "users": "1000",
    "requests_per_user_per_day": "10",
    "concurrency": "16",
    "offline_requests": "100000",
    "offline_hours": "24",
}
"""What a field that must be given may start from."""
NO_VALUES = ("required", "conflict", "empty_filter")
"""Faults whose ``allowed`` names no values of the field."""
USEFUL = 0.001
"""A bound below it is no value anybody means."""
FARTHEST = Decimal("1e20")
"""Beyond every bound; from a number farther off than this their distances would be the same in so many digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What a click puts in the field's place: ``value`` empty leaves it open."""

    label: str
    value: str


def fixes(question_type: type, error: FieldError, given: Mapping[str, str]) -> tuple[Fix, ...]:
    """Up to three values that the field accepts in place of the wrong one.

    >>> from planner.engine.workload import InferenceQuestion
    >>> wrong = FieldError(field="headroom", value="30", message="Out of range.", allowed="0 to 0.9 share")
    >>> [fix.value for fix in fixes(InferenceQuestion, wrong, {"headroom": "30"})]
    ['0.3', '0.9', '']
    """
    known = specs(question_type)
    if error.field not in known:
        return _of_an_unknown_field(known, error)
    spec, default = known[error.field]
    typed = given.get(error.field, "") or ("" if error.value is None else str(error.value))
    if error.code == "context_too_long" and error.field == "input_tokens":
        # Input and output share the context: what the output needs is not the input's.
        error = _less_the_output(error, known, given)
    is_readable = bool(typed) and not isinstance(read_value(error.field, spec, typed), FieldError)
    is_needed = error.field in LIKELY and not is_readable
    found: dict[str, Fix] = {}
    for value in _candidates(error, spec, typed):
        if value != typed and not isinstance(read_value(error.field, spec, value), FieldError):
            found.setdefault(value, _use(error.field, spec, value))
    best = list(islice(found.values(), MOST - 1 if typed else MOST))
    if is_needed and not best:
        best.append(_use(error.field, spec, LIKELY[error.field]))
    may_be_open = not is_needed and (error.field != "model" or "config" in given)
    if typed and may_be_open and default_text(default) not in found:
        best.append(Fix(label=_open(error.field, spec, default), value=""))
    return tuple(best[:MOST])


def fix_query(question_type: type, error: FieldError, fix: Fix, given: Mapping[str, str]) -> str:
    """The question with the fix in it."""
    kept = {name: value for name, value in given.items() if name != error.field}
    name = error.field
    if name not in specs(question_type):
        name, value = fix.value.partition("=")[::2]
        return canonical_query(kept | ({name: value} if name else {}), question_type)
    return canonical_query(kept | ({name: fix.value} if fix.value else {}), question_type)


def _of_an_unknown_field(known: Mapping[str, tuple[FieldSpec, Any]], error: FieldError) -> tuple[Fix, ...]:
    """A name that is nearly a field's, else none."""
    found = []
    for name in difflib.get_close_matches(error.field, known, n=1, cutoff=0.75):
        value = str(error.value or "")
        if value and not isinstance(read_value(name, known[name][0], value), FieldError):
            label = _("Read it as “%(field)s”") % {"field": words.field_label(name)}
            found.append(Fix(label=label, value=f"{name}={value}"))
    return (*found, Fix(label=_("Leave it out"), value=""))


def _less_the_output(error: FieldError, known: Mapping[str, Any], given: Mapping[str, str]) -> FieldError:
    sizes = [int(text.replace(",", "")) for text in NUMBER.findall(str(error.allowed))]
    output = given.get("output_tokens") or default_text(known["output_tokens"][1])
    left = max(sizes, default=0) - int(float(output))
    return replace(error, allowed=str(left) if left > 0 else "")


def _use(name: str, spec: FieldSpec, value: str) -> Fix:
    return Fix(label=_("Use %(value)s") % {"value": _name(name, spec, value)}, value=value)


def _open(name: str, spec: FieldSpec, default: Any) -> str:
    text = default_text(default)
    if not text:
        return _("Leave it open")
    return _("Use the default, %(value)s") % {"value": _name(name, spec, text)}


def _name(name: str, spec: FieldSpec, value: str) -> str:
    unit = _(spec.unit) if spec.unit else ""
    return f"{value_words(name, spec, value)} {unit}".strip()


def _candidates(error: FieldError, spec: FieldSpec, typed: str) -> Iterator[str]:
    match spec.kind:
        case "number" | "integer" | "decimal":
            yield from _numbers(error, spec, typed)
        case "choice" | "choices":
            yield from _choices(error, spec, typed)
        case "text" if error.field in ("model", "teacher"):
            yield from _models(typed)


def _numbers(error: FieldError, spec: FieldSpec, typed: str) -> Iterator[str]:
    """Read otherwise: without its sign, as percent, rounded; then what is allowed, the nearest first."""
    texts = () if error.code in NO_VALUES else NUMBER.findall(str(error.allowed))
    allowed = [Decimal(text.replace(",", "")) for text in texts]
    try:
        value = Decimal(typed)
        if not value.is_finite():
            return
        # Exponents may have any number of digits, beyond what can be computed with.
        value = min(max(value, -FARTHEST), FARTHEST)
    except ArithmeticError:
        if error.code == "ambiguous":
            yield from (default_text(float(number)) for number in allowed)
            return
        value = None
    if value is None:
        digits = NUMBER.search(typed)
        if digits is not None:
            yield digits[0].replace(",", "")
        return
    if value < 0 and (spec.maximum is None or -value <= spec.maximum):
        yield default_text(float(-value))
        return
    if spec.unit == "share" and 1 < value <= 100:
        yield default_text(float(value) / 100)
    if spec.kind == "integer" and value != value.to_integral_value():
        yield f"{value.to_integral_value():f}"
        return
    for number in sorted(allowed, key=lambda each: (abs(each - value), each)):
        if not 0 < abs(number) < USEFUL:
            yield default_text(float(number))


def _choices(error: FieldError, spec: FieldSpec, typed: str) -> Iterator[str]:
    """The nearest choices, in place of the wrong ones of a list."""
    if error.code in NO_VALUES:
        return
    listed = str(error.allowed).removeprefix("One of: ")
    names = list(spec.choices) or [name for name in listed.split(", ") if name and " " not in name]
    items = [item.strip() for item in typed.split(",") if item.strip()]
    wrong = [item for item in items if item not in names]
    right = [item for item in items if item in names]
    for item in wrong:
        lowered = {name.lower(): name for name in names}
        for near in difflib.get_close_matches(item.lower(), lowered, n=MOST, cutoff=ALIKE):
            yield ",".join(dict.fromkeys([*right, lowered[near]])) if spec.kind == "choices" else lowered[near]
    if right and spec.kind == "choices":
        yield ",".join(right)


def _models(typed: str) -> Iterator[str]:
    names = _model_names(catalog_version())
    for near in difflib.get_close_matches(typed.lower(), names, n=MOST, cutoff=ALIKE) if typed else ():
        yield names[near]


@lru_cache(maxsize=1)
def _model_names(_version: str) -> dict[str, str]:
    return {name.lower(): name for name in model_names()}
