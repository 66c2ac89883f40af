"""The one shape of every error: what the API answers and what the command line prints.

``type`` is ``validation_error`` (fields at fault), ``client_error`` (the request as a whole) or ``server_error``;
each error has ``code``, ``detail`` and ``attr`` (the field, or null), and beside them the ``value`` given and
what is ``allowed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.engine.errors import FieldError
from planner.services.json_input import MAX_ERRORS

_LONGEST_TEXT = 200
_LONGEST_LIST = 20


def envelope(errors: Sequence[FieldError]) -> dict[str, Any]:
    """The envelope of field errors, at most ``MAX_ERRORS`` of them.

    >>> envelope([FieldError(field="headroom", value=2, message="Out of range.", allowed="0 to 0.9 share")])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'type': 'validation_error', 'errors': [{'code': 'invalid', 'detail': 'Out of range.', 'attr': 'headroom',
     'value': 2, 'allowed': '0 to 0.9 share'}]}
    """
    kind = "validation_error" if any(error.field for error in errors) else "client_error"
    return {"type": kind, "errors": [_entry(error) for error in errors[:MAX_ERRORS]]}


def _entry(error: FieldError) -> dict[str, Any]:
    return error_entry(
        code=error.code,
        detail=error.message,
        attr=_clipped(error.field) or None,
        value=error.value,
        allowed=error.allowed or None,
    )


def error_entry(
    *, code: str, detail: str, attr: str | None = None, value: object = None, allowed: str | None = None
) -> dict[str, Any]:
    """One error of an envelope; a long or odd ``value`` is clipped to what can be shown."""
    return {"code": code, "detail": detail, "attr": attr, "value": shown(value), "allowed": allowed}


def shown(value: object) -> Any:
    """``value`` as an error may repeat it: JSON, short, and never a number that JSON can't hold.

    >>> shown(float("inf")), shown(10**30), shown({"a": 1}), shown("x" * 500)[-1]
    ('inf', '1000000000000000000000000000000', "{'a': 1}", '…')
    """
    match value:
        case None | bool():
            return value
        case int() if abs(value) < 2**53:
            return value
        case int() if abs(value) >= 10**_LONGEST_TEXT:
            return f"a whole number of more than {_LONGEST_TEXT} digits"
        case float() if abs(value) < float("inf"):
            return value
        case str():
            return _clipped(value)
        case list() | tuple() if len(value) <= _LONGEST_LIST and all(isinstance(item, str) for item in value):
            return [_clipped(item) for item in value]
        case list() | tuple():
            return _clipped(str(value[:_LONGEST_LIST]))
        case dict():
            return _clipped(str(dict(list(value.items())[:_LONGEST_LIST])))
        case _:
            return _clipped(str(value))


def _clipped(text: str) -> str:
    # Half a surrogate pair can't be sent as UTF-8.
    text = text[: _LONGEST_TEXT + 1].encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
