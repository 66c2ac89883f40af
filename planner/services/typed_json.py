"""JSON objects read into dataclasses: every fault found, each with its path, what was given and what is allowed.

A field's annotation says its type; ``limits`` in its metadata say what else: ``longest`` text, ``lines`` where it may
have several, ``least`` and ``most`` of a number, ``places`` of decimals, ``most_items`` of a list. A field without a
default must be given.
"""

from __future__ import annotations

import re
import types
import unicodedata
from collections import abc
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from planner.engine.errors import FieldError, InvalidQuestion, unknown_fields
from planner.engine.field_spec import TURNS
from planner.engine.sentences import say

T = TypeVar("T")
LONGEST = 200
MOST_ITEMS = 200
MOST_NUMBER = 10**12
MOST_PLACES = 10
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a value may be beside its type."""

    longest: int = LONGEST
    lines: int = 1
    least: Decimal | int = 0
    most: Decimal | int = MOST_NUMBER
    places: int = MOST_PLACES
    most_items: int = MOST_ITEMS
    pattern: str = ""
    """A regular expression that the whole text must match."""
    example: str = ""


def limited(default: Any = MISSING, **limits: Any) -> Any:
    """A dataclass field with limits."""
    return field(default=default, metadata={"limits": Limits(**limits)})


def limits_of(a_field: Field[Any]) -> Limits:
    """The limits of a field made by ``limited``, or those of any."""
    given: Limits = a_field.metadata.get("limits", Limits())
    return given


def read_json(cls: type[T], raw: Mapping[str, Any]) -> T:
    """``raw`` as a ``cls``; raises ``InvalidQuestion`` with every fault."""
    faults: list[FieldError] = []
    value = _object(cls, raw, "", faults)
    if faults:
        raise InvalidQuestion(faults)
    result: T = value
    return result


@lru_cache(maxsize=64)
def type_hints(cls: type) -> dict[str, Any]:
    """The annotations of a dataclass, resolved."""
    return get_type_hints(cls)


def without_turns(stored: Any) -> Any:
    """A stored JSON value without the characters that turn text: of rows written before they were refused.

    >>> without_turns({"name": "\\u202eAcme", "items": ["\\u2066x", 1]})
    {'name': 'Acme', 'items': ['x', 1]}
    """
    match stored:
        case str():
            return "".join(character for character in stored if character not in TURNS)
        case list():
            return [without_turns(item) for item in stored]
        case dict():
            return {name: without_turns(item) for name, item in stored.items()}
    return stored


def _object(cls: Any, raw: object, path: str, faults: list[FieldError]) -> Any:
    if not isinstance(raw, Mapping):
        return _fault(faults, path, raw, say("Not a JSON object."), say("a JSON object"))
    known = {a_field.name: a_field for a_field in fields(cls)}
    faults += [fault.inside(path) for fault in unknown_fields(raw, known)]
    values: dict[str, Any] = {}
    before = len(faults)
    for name, a_field in known.items():
        if name in raw:
            hint = type_hints(cls)[name]
            values[name] = _value(hint, raw[name], _at(path, name), limits_of(a_field), faults)
        elif a_field.default is MISSING and a_field.default_factory is MISSING:
            _fault(faults, _at(path, name), None, say("Required."), say("a value"), "required")
    return None if len(faults) > before else cls(**values)


def _value(hint: Any, given: object, path: str, limits: Limits, faults: list[FieldError]) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        return _object(hint, given, path, faults)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in get_args(hint) if argument is not types.NoneType)
        return None if given is None else _value(inner, given, path, limits, faults)
    if origin is tuple:
        return _list(get_args(hint)[0], given, path, limits, faults)
    if origin is abc.Mapping:
        # An object with a reader of its own.
        return (
            dict(given)
            if isinstance(given, Mapping)
            else _fault(faults, path, given, say("Not a JSON object."), say("a JSON object"))
        )
    if origin is Literal:
        if given in get_args(hint):
            return given
        return _fault(faults, path, given, say("Not a known choice."), ", ".join(map(str, get_args(hint))))
    if hint is bool:
        return (
            given if isinstance(given, bool) else _fault(faults, path, given, say("Not true or false."), "true, false")
        )
    reader = {str: _text, Decimal: _decimal, int: _integer, date: _date}[hint]
    return reader(given, path, limits, faults)


def _list(inner: Any, given: object, path: str, limits: Limits, faults: list[FieldError]) -> Any:
    if not isinstance(given, list | tuple):
        return _fault(faults, path, given, say("Not a list."), say("a list"))
    if len(given) > limits.most_items:
        return _fault(faults, path, len(given), say("Too many."), say("up to {most:,}", most=limits.most_items))
    return tuple(_value(inner, item, _at(path, place), limits, faults) for place, item in enumerate(given))


def _text(given: object, path: str, limits: Limits, faults: list[FieldError]) -> Any:
    allowed = limits.example or (
        say("up to {most} characters, {lines} lines", most=limits.longest, lines=limits.lines)
        if limits.lines > 1
        else say("up to {most} characters", most=limits.longest)
    )
    if not isinstance(given, str):
        return _fault(faults, path, given, say("Not a text."), allowed)
    lines = [line.strip() for line in given.strip().splitlines()]
    if len(given) > limits.longest or len(lines) > limits.lines or any(_has_control(line) for line in lines):
        return _fault(faults, path, given, say("Not a usable text."), allowed)
    text = "\n".join(lines)
    if limits.pattern and not re.fullmatch(limits.pattern, text):
        return _fault(faults, path, given, say("Not of the form asked for."), allowed)
    return text


def _has_control(text: str) -> bool:
    return any(unicodedata.category(character) in ("Cc", "Cs") or character in TURNS for character in text)


def _decimal(given: object, path: str, limits: Limits, faults: list[FieldError]) -> Any:
    allowed = say(
        "{least:,f} to {most:,f}, up to {places} decimals, as a text or a number",
        least=Decimal(limits.least),
        most=Decimal(limits.most),
        places=limits.places,
    )
    if isinstance(given, bool) or not isinstance(given, str | int | float | Decimal):
        return _fault(faults, path, given, say("Not a number."), allowed)
    # A double's shortest decimal is what its sender wrote.
    text = (
        str(given).strip()
        if isinstance(given, str)
        else format(Decimal(repr(given) if isinstance(given, float) else given), "f")
    )
    if not _NUMBER.fullmatch(text):
        return _fault(faults, path, given, say("Not a number."), allowed)
    try:
        value = Decimal(text)
    except InvalidOperation:
        return _fault(faults, path, given, say("Not a number."), allowed)
    exponent = int(value.normalize().as_tuple().exponent)
    if not limits.least <= value <= limits.most or -exponent > limits.places:
        return _fault(faults, path, given, say("Out of range."), allowed, "out_of_range")
    return value


def _integer(given: object, path: str, limits: Limits, faults: list[FieldError]) -> Any:
    allowed = say("{least:,} to {most:,}", least=limits.least, most=limits.most)
    if isinstance(given, bool) or not isinstance(given, int):
        return _fault(faults, path, given, say("Not a whole number."), allowed)
    if not limits.least <= given <= limits.most:
        return _fault(faults, path, given, say("Out of range."), allowed, "out_of_range")
    return given


def _date(given: object, path: str, _limits: Limits, faults: list[FieldError]) -> Any:
    allowed = say("a day like {day}", day="2026-11-29")
    if not isinstance(given, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", given, re.ASCII):
        return _fault(faults, path, given, say("Not a day."), allowed)
    try:
        return date.fromisoformat(given)
    except ValueError:
        return _fault(faults, path, given, say("Not a day."), allowed)


def _at(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _fault(
    faults: list[FieldError], path: str, value: object, message: str, allowed: str, code: str = "invalid"
) -> None:
    faults.append(FieldError(field=path, value=value, message=message, allowed=allowed, code=code))
