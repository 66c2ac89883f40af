"""What one field of a question accepts: unit, bounds, choices, help; and how a raw value is read.

Raw values come from JSON or from a query string, so numbers may be texts and lists may be
comma-separated. Nothing is guessed: a value that can't be read is an error that says what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from planner.engine.errors import FieldError, unknown_fields
from planner.engine.sentences import Noun, say

Kind = Literal["number", "integer", "decimal", "date", "text", "choice", "choices", "numbers", "flag", "config"]
_DECIMAL = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,9})?", re.ASCII)
_SPACED = re.compile(r"[;\s]", re.ASCII)
_BETWEEN = re.compile(r"\s*;\s*|,?\s+", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text after them, on the page and in documents too: a name with one can
make an amount beside it read as another. Scripts written from the right need none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """What a field accepts and how it is shown."""

    kind: Kind
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    label: str = ""
    help: str = ""
    section: str = "advanced"
    required: bool = False
    """Must be given; the question types say what they need themselves."""
    max_length: int = 200
    """Of a text."""
    places: int = 6
    """Most digits after the point of a decimal."""
    most: int = 1000
    """Values of a list of numbers."""


def ask(spec: FieldSpec, default: Any = None) -> Any:
    return field(default=default, metadata={"spec": spec})


def number(
    label: str, default: Any, minimum: float, maximum: float, unit: str, help: str, section: str = "advanced"
) -> Any:
    return ask(
        FieldSpec(
            kind="number",
            unit=unit,
            minimum=minimum,
            maximum=maximum,
            label=label,
            help=help,
            section=section,
        ),
        default,
    )


def integer(
    label: str, default: Any, minimum: int, maximum: int, unit: str, help: str, section: str = "advanced"
) -> Any:
    return ask(
        FieldSpec(
            kind="integer",
            unit=unit,
            minimum=minimum,
            maximum=maximum,
            label=label,
            help=help,
            section=section,
        ),
        default,
    )


def text(label: str, help: str, *, required: bool = False, max_length: int = 200, section: str = "advanced") -> Any:
    spec = FieldSpec(kind="text", label=label, help=help, required=required, max_length=max_length, section=section)
    return ask(spec, "")


def decimal(
    label: str,
    minimum: float,
    maximum: float,
    unit: str,
    help: str,
    *,
    required: bool = False,
    places: int = 6,
    section: str = "advanced",
) -> Any:
    spec = FieldSpec(
        kind="decimal",
        unit=unit,
        minimum=minimum,
        maximum=maximum,
        label=label,
        help=help,
        required=required,
        places=places,
        section=section,
    )
    return ask(spec)


def day(label: str, help: str, section: str = "advanced", *, required: bool = False) -> Any:
    return ask(FieldSpec(kind="date", label=label, help=help, required=required, section=section))


def choice(label: str, default: str | None, choices: tuple[str, ...], help: str, section: str) -> Any:
    return ask(FieldSpec(kind="choice", choices=choices, label=label, help=help, section=section), default)


def choices(label: str, default: tuple[str, ...], choices: tuple[str, ...], help: str, section: str) -> Any:
    return ask(FieldSpec(kind="choices", choices=choices, label=label, help=help, section=section), default)


def numbers(
    label: str, minimum: float, maximum: float, unit: str, help: str, section: str, *, whole: bool = False
) -> Any:
    """A list of numbers, each within the bounds; whole ones have no places after the point."""
    spec = FieldSpec(
        kind="numbers",
        unit=unit,
        minimum=minimum,
        maximum=maximum,
        label=label,
        help=help,
        section=section,
        places=0 if whole else 6,
    )
    return ask(spec, ())


def specs(question_type: type) -> dict[str, tuple[FieldSpec, Any]]:
    """Field name -> (spec, default) for every field of a question type, in order."""
    return {f.name: (f.metadata["spec"], _default(f)) for f in fields(question_type)}


def _default(f: Field[Any]) -> Any:
    return None if f.default is MISSING else f.default


def read_fields(input_type: type, raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """The value of every field of ``input_type`` that can be read from ``raw``, and every fault.

    A field that is not given, or given empty, has its default.
    """
    known = specs(input_type)
    errors = unknown_fields(raw, known)
    values: dict[str, Any] = {}
    for name, (spec, default) in known.items():
        given = raw.get(name)
        if given is None or given in ("", [], ()):
            values[name] = default
            if spec.required:
                errors.append(FieldError(field=name, value=given, message="Needed.", code="required"))
            continue
        parsed = read_value(name, spec, given)
        if isinstance(parsed, FieldError):
            errors.append(parsed)
        else:
            values[name] = parsed
    return values, errors


def read_value(name: str, spec: FieldSpec, given: Any) -> Any:
    match spec.kind:
        case "number" | "integer":
            return _parse_number(name, spec, given)
        case "choice":
            if isinstance(given, str) and (given in spec.choices or not spec.choices):
                return given
            return FieldError(field=name, value=given, message="Not a known choice.", allowed=", ".join(spec.choices))
        case "choices" | "numbers":
            return (_parse_choices if spec.kind == "choices" else _parse_numbers)(name, spec, given)
        case "flag":
            if given in (True, False, "true", "false", "on", "1", "0"):
                return given in (True, "true", "on", "1")
            return FieldError(field=name, value=given, message="Not true or false.", allowed="true, false")
        case "config":
            if isinstance(given, Mapping):
                return dict(given)
            return FieldError(
                field=name, value=given, message="Not a JSON object.", allowed=say("a config.json object")
            )
        case "text":
            if isinstance(given, str) and len(given) <= spec.max_length and not set(given) & (TURNS | {"\x00"}):
                return given.strip()
            allowed = say("up to {most} characters", most=spec.max_length)
            return FieldError(field=name, value=given, message="Not a short text.", allowed=allowed)
        case "decimal":
            return _parse_decimal(name, spec, given)
        case "date":
            return _parse_date(name, given)


def _parse_decimal(name: str, spec: FieldSpec, given: Any) -> Decimal | FieldError:
    allowed = say("{range}, at most {places} digits after the point", range=allowed_range(spec), places=spec.places)
    text = given.strip() if isinstance(given, str) else ""
    if not _DECIMAL.fullmatch(text):
        return FieldError(field=name, value=given, message="Not a decimal number.", allowed=allowed)
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > spec.places:
        return FieldError(field=name, value=given, message="Too many digits after the point.", allowed=allowed)
    if not (spec.minimum is None or value >= Decimal(str(spec.minimum))) or not (
        spec.maximum is None or value <= Decimal(str(spec.maximum))
    ):
        return FieldError(field=name, value=given, message="Out of range.", allowed=allowed, code="out_of_range")
    return value


def _parse_date(name: str, given: Any) -> date | FieldError:
    try:
        if isinstance(given, str) and _DATE.fullmatch(given.strip()):
            return date.fromisoformat(given.strip())
    except ValueError:
        pass
    return FieldError(field=name, value=given, message="Not a date.", allowed=say("year-month-day, such as 2026-12-31"))


def _parse_choices(name: str, spec: FieldSpec, given: Any) -> tuple[str, ...] | FieldError:
    if isinstance(given, str):
        given = given.split(",")
    if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
        allowed = ", ".join(spec.choices) or "a list of texts"
        return FieldError(field=name, value=given, message="Not a list of texts.", allowed=allowed)
    items = tuple(dict.fromkeys(item.strip() for item in given if item.strip()))
    wrong = [item for item in items if spec.choices and item not in spec.choices]
    if wrong:
        return FieldError(
            field=name, value=", ".join(wrong), message="Not a known choice.", allowed=", ".join(spec.choices)
        )
    return items


def _parse_numbers(name: str, spec: FieldSpec, given: Any) -> tuple[float, ...] | FieldError:
    """A list of numbers, or a text of them with commas, semicolons or spaces between.

    A comma inside a number that something else parts from the next may be a decimal one: it is refused.

    >>> spec = FieldSpec(kind="numbers", minimum=0, maximum=9000)
    >>> _parse_numbers("rates", spec, "1,5"), _parse_numbers("rates", spec, "1, 5; 0.5 2")
    ((1.0, 5.0), (1.0, 5.0, 0.5, 2.0))
    >>> _parse_numbers("rates", spec, "1,5 2,5").message, _parse_numbers("rates", spec, "1,500; 2").value
    ('Not a number.', '1,500')
    """
    if isinstance(given, str):
        text = given.strip().rstrip(",;").strip()
        given = _BETWEEN.split(text) if _SPACED.search(text) else text.split(",")
    allowed = say("up to {most:,} numbers, each {range}", most=spec.most, range=allowed_range(spec))
    if not isinstance(given, list | tuple):
        return FieldError(field=name, value=given, message=say("Not a list of numbers."), allowed=allowed)
    if len(given) > spec.most:
        return FieldError(field=name, value=len(given), message=say("Too many."), allowed=allowed)
    each = replace(spec, kind="integer" if spec.places == 0 else "number")
    read: list[float] = []
    for value in given:
        parsed = _parse_number(name, each, value)
        if isinstance(parsed, FieldError):
            return replace(parsed, allowed=allowed)
        read.append(parsed)
    return tuple(read)


def allowed_range(spec: FieldSpec) -> str:
    """The bounds of a number in words.

    >>> allowed_range(FieldSpec(kind="integer", unit="tokens", minimum=1, maximum=10_000_000))
    '1 to 10,000,000 tokens'
    >>> allowed_range(FieldSpec(kind="number", unit="req/s", minimum=1e-6, maximum=1e17))
    '0.000001 to 1e+17 req/s'
    >>> allowed_range(FieldSpec(kind="integer", minimum=0, maximum=2**53 - 1))
    '0 to 9,007,199,254,740,991'
    >>> allowed_range(FieldSpec(kind="number", minimum=2.5e-5, maximum=1))
    '0.000025 to 1'
    """
    low, high = _bound(spec.minimum), _bound(spec.maximum)
    if spec.unit:
        return say("{low} to {high} {unit}", low=low, high=high, unit=Noun(spec.unit))
    return say("{low} to {high}", low=low, high=high)


def _bound(value: float | None) -> str:
    if value is None:
        return say("any")
    is_whole = value == int(value) and abs(value) < 1e16
    if 1e-6 <= value < 1e-4:
        return say("{value:.6f}", value=value)
    return say("{value:,.0f}", value=value) if is_whole else say("{value:g}", value=value)


def _parse_number(name: str, spec: FieldSpec, given: Any) -> float | int | FieldError:
    allowed = allowed_range(spec)
    fault = FieldError(field=name, value=given, message="Not a number.", allowed=allowed)
    # Python itself reads "1_0" as ten.
    if isinstance(given, bool) or not isinstance(given, int | float | str) or (isinstance(given, str) and "_" in given):
        return fault
    try:
        value = float(given)
    except (ValueError, OverflowError):
        return fault
    if not math.isfinite(value):
        return FieldError(field=name, value=str(given), message="Not a finite number.", allowed=allowed)
    if spec.kind == "integer" and value != math.floor(value):
        return FieldError(field=name, value=given, message="Not a whole number.", allowed=allowed)
    if not (spec.minimum is None or value >= spec.minimum) or not (spec.maximum is None or value <= spec.maximum):
        return FieldError(field=name, value=given, message="Out of range.", allowed=allowed, code="out_of_range")
    return int(value) if spec.kind == "integer" else value
