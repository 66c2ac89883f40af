"""Questions as JSON: read strictly, so that a typing slip is an error and never a silent default.

The form and the URL give texts; JSON has types. The REST API and ``manage.py plan`` read through here, so
both refuse the same things: what JSON itself forbids (NaN, duplicate keys, half a surrogate pair), what can't
be stored or computed with (NUL, numbers beyond a double, nesting bombs), and a field of the wrong JSON type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import FieldSpec, allowed_range, read_fields, specs
from planner.engine.question_reading import read_with_faults
from planner.engine.sentences import Noun, say

# A config.json with a long list of unquantized modules has some 300 kB.
MAX_BODY_BYTES = 2**20
MAX_DEPTH = 32
MAX_ERRORS = 50
# Longer integers are read as doubles, as most JSON readers do; the bounds of a field are far below.
_MAX_EXACT_DIGITS = 19
_BOM = b"\xef\xbb\xbf"

Path = tuple[str | int, ...]
Input = TypeVar("Input")
FaultsIn = Callable[[Mapping[str, Any]], list[FieldError]]
"""What is wrong with a raw question beside its JSON types."""


def read_question(question_type: type[Any], data: bytes, faults_in: FaultsIn | None = None) -> dict[str, Any]:
    """The raw question in ``data`` (one JSON object, UTF-8), every value of its field's JSON type.

    Raises ``InvalidQuestion`` with every fault found: of those that no type shows, what ``faults_in`` finds.

    >>> from planner.engine.workload import InferenceQuestion
    >>> read_question(InferenceQuestion, b'{"model": "llama", "concurrency": 8}')
    {'model': 'llama', 'concurrency': 8}
    >>> read_question(InferenceQuestion, b'{"model": "llama", "concurrency": "8"}')
    Traceback (most recent call last):
    planner.engine.errors.InvalidQuestion: concurrency: Not a JSON number.
    """
    raw = read_object(data)
    check_json_types(question_type, raw, faults_in)
    return raw


def check_json_types(question_type: type[Any], raw: Mapping[str, Any], faults_in: FaultsIn | None = None) -> None:
    """Raise ``InvalidQuestion`` when a value isn't of its field's JSON type: with that and every other fault."""
    faults = _type_faults(question_type, raw)
    if faults:
        others = faults_in(raw) if faults_in is not None else read_with_faults(question_type, raw)[1]
        # One fault a field, the reader's first.
        named = {error.field for error in others}
        raise InvalidQuestion(others + [fault for fault in faults if fault.field not in named])


def read_body(input_type: type[Input], data: bytes) -> Input:
    """The input in ``data``, read as strictly as a question; raises ``InvalidQuestion`` with every fault."""
    raw = read_object(data)
    faults = _type_faults(input_type, raw)
    values, errors = read_fields(input_type, raw)
    named = {error.field for error in errors}
    faults = errors + [fault for fault in faults if fault.field not in named]
    if faults:
        raise InvalidQuestion(faults)
    return input_type(**values)


def read_form(input_type: type[Input], raw: Mapping[str, Any]) -> Input:
    """The input in a form's texts; raises ``InvalidQuestion`` with every fault."""
    values, errors = read_fields(input_type, raw)
    if errors:
        raise InvalidQuestion(errors)
    return input_type(**values)


def read_object(data: bytes) -> dict[str, Any]:
    """The one JSON object in ``data``; raises ``InvalidQuestion`` where it isn't one, or holds what can't be used."""
    document, repeated = _parse(_decode(data))
    if not isinstance(document, dict):
        message = say("The top level is {kind}.", kind=_json_type(document))
        raise _unreadable(message, say("one JSON object"))
    faults = [
        FieldError(
            field=_path_text((key,)),
            value=None,
            message=say("Given twice."),
            allowed=say("each key once"),
            code="duplicate",
        )
        for key in repeated
    ]
    faults += _value_faults(document)
    if faults:
        raise InvalidQuestion(faults)
    return document


def _unreadable(message: str, allowed: str, value: object = None) -> InvalidQuestion:
    return InvalidQuestion([FieldError(field="", value=value, message=message, allowed=allowed, code="parse_error")])


def _decode(data: bytes) -> str:
    if not data.strip():
        raise _unreadable(say("The body is empty."), say("one JSON object"))
    if len(data) > MAX_BODY_BYTES:
        raise _unreadable(say("Too long."), say("up to {most:,} bytes", most=MAX_BODY_BYTES), len(data))
    if data.startswith(_BOM):
        raise _unreadable(say("Starts with a byte order mark."), say("UTF-8 without a byte order mark"))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(say("Not UTF-8 at byte {byte}.", byte=error.start), "UTF-8") from None


def _parse(text: str) -> tuple[Any, list[str]]:
    """The document, and the keys some object of it gives twice."""
    repeated: list[str] = []

    def pairs_to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            seen: set[str] = set()
            repeated.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return members

    def integer(digits: str) -> int | float:
        return int(digits) if len(digits) <= _MAX_EXACT_DIGITS else float(digits)

    try:
        # NaN and Infinity, which JSON has not, become doubles here: the walk over the values then names their place.
        document = json.loads(text, object_pairs_hook=pairs_to_object, parse_int=integer)
    except json.JSONDecodeError as error:
        message = say(
            "Not JSON: {reason} at line {line}, column {column}.",
            reason=error.msg,
            line=error.lineno,
            column=error.colno,
        )
        raise _unreadable(message, say("one JSON object")) from None
    except RecursionError:
        raise _unreadable(say("Nested too deeply."), say("up to {most} levels", most=MAX_DEPTH)) from None
    return document, list(dict.fromkeys(repeated))


def _value_faults(document: dict[str, Any]) -> list[FieldError]:
    """Faults of values that JSON's grammar allows but nothing can compute with or store."""
    faults: list[FieldError] = []
    # A list of open branches, not recursion: the depth is the sender's choice.
    branches: list[tuple[Path, Any]] = [((), document)]
    while branches and len(faults) < MAX_ERRORS:
        path, branch = branches.pop()
        if len(path) >= MAX_DEPTH:
            raise _unreadable(say("Nested too deeply."), say("up to {most} levels", most=MAX_DEPTH))
        for key, value in branch.items() if isinstance(branch, dict) else enumerate(branch):
            if isinstance(key, str) and _unusable(key):
                faults.append(_text_fault((*path, key), key))
            if isinstance(value, dict | list):
                branches.append(((*path, key), value))
            elif isinstance(value, str) and _unusable(value):
                faults.append(_text_fault((*path, key), value))
            elif isinstance(value, float) and not math.isfinite(value):
                faults.append(_not_finite((*path, key), value))
    return faults


def _not_finite(path: Path, value: float) -> FieldError:
    return FieldError(
        field=_path_text(path), value=str(value), message=say("Not a finite number."), allowed=say("a finite number")
    )


def _unusable(text: str) -> bool:
    return "\x00" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text))


def _text_fault(path: Path, text: str) -> FieldError:
    fault = say("Holds a NUL character.") if "\x00" in text else say("Holds half of a surrogate pair.")
    return FieldError(field=_path_text(path), value=ascii(text), message=fault, allowed=say("Unicode text without NUL"))


def _path_text(path: Path) -> str:
    return ".".join(str(key) for key in path).encode("ascii", "backslashreplace").decode().replace("\x00", "\\x00")


def _json_type(value: object) -> Noun:
    match value:
        case None:
            return Noun("null")
        case bool():
            return Noun("true or false")
        case int() | float():
            return Noun("a number")
        case str():
            return Noun("a text")
        case list():
            return Noun("a list")
        case _:
            return Noun("an object")


def _type_faults(question_type: type, raw: Mapping[str, Any]) -> list[FieldError]:
    faults = []
    for name, (spec, _) in specs(question_type).items():
        given = raw.get(name)
        expected = None if given is None else _expected_unless_met(spec, given)
        if expected is not None:
            message = say("Not {expected}.", expected=expected)
            faults.append(FieldError(field=name, value=given, message=message, allowed=_allowed(spec, expected)))
    return faults


def _expected_unless_met(spec: FieldSpec, given: object) -> Noun | None:
    """What the field wants, in words, where ``given`` is of another JSON type; else None."""
    match spec.kind:
        case "number" | "integer":
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            return None if is_number else Noun("a JSON number")
        case "flag":
            return None if isinstance(given, bool) else Noun("true or false")
        case "text":
            return None if isinstance(given, str) else Noun("a text")
        case "decimal":
            return None if isinstance(given, str) else Noun("a decimal as a text")
        case "date":
            return None if isinstance(given, str) else Noun("a date as a text")
        case "choice":
            return None if isinstance(given, str) and given else Noun("a known choice")
        case "choices":
            if not isinstance(given, list) or not all(isinstance(item, str) and item.strip() for item in given):
                return Noun("a list of texts")
            return None if not spec.choices or set(given) <= set(spec.choices) else Noun("a list of known choices")
        case "numbers":
            is_list = isinstance(given, list) and all(
                isinstance(each, int | float) and not isinstance(each, bool) for each in given
            )
            return None if is_list else Noun("a list of numbers")
        case "config":
            return None if isinstance(given, dict) else Noun("a JSON object")


def _allowed(spec: FieldSpec, expected: Noun) -> str:
    if spec.choices:
        return ", ".join(spec.choices)
    return allowed_range(spec) if spec.kind in ("number", "integer", "numbers") else expected
