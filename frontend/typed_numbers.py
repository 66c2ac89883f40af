"""Numbers as people type them: thousands in groups, a decimal comma; what could be read two ways is asked about.

The forms' fields hold numbers with a decimal point, the same in every language, so that an address means the same
to all. ``16.300`` is sixteen thousand three hundred to an Indonesian reader and 16.3 to the field; ``2,000`` is two
thousand to an English reader and 2 to whoever writes a decimal comma. Taking one for the other is a price wrong by
a factor of a thousand, so neither is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import read_fields, specs

Input = TypeVar("Input")

MOST_DIGITS = 6
MOST_SHORTENED = 15
"""Digits of a number that has a suffix."""
NUMBER_KINDS = ("number", "integer", "decimal")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_ONE_GROUP = {
    ".": re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII),
    ",": re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII),
}
_GROUPS = (
    (".", ",", re.compile(r"[+-]?[1-9]\d{0,2}((\.\d{3}){2,}(,\d+)?|(\.\d{3})+,\d+)", re.ASCII)),
    (",", ".", re.compile(r"[+-]?[1-9]\d{0,2}((,\d{3}){2,}(\.\d+)?|(,\d{3})+\.\d+)", re.ASCII)),
)

_SUFFIXED = re.compile(r"([+-]?\d+)(?:[.,](\d{1,2}))? ?([kKMBT])", re.ASCII)
_SIZES = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_SHORT = re.compile(r"(\d{1,3})(?:\.(\d{1,2}))?", re.ASCII)


def whole_number(text: str) -> int | None:
    """What an address or a button counts, such as a version or a row; None for anything else or of too many digits.

    >>> whole_number("12"), whole_number("-1"), whole_number("1.5"), whole_number("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None


def plain_number(text: str) -> str:
    """A typed number with a decimal point and no groups, where there is one way to read it; else the text itself.

    >>> plain_number("1,5"), plain_number("45.787,50"), plain_number("1,500,000"), plain_number("x")
    ('1.5', '45787.50', '1500000', 'x')
    >>> plain_number("15T"), plain_number("2,5 M"), plain_number("100k"), plain_number("1,500k")
    ('15000000000000', '2500000', '100000', '1,500k')
    """
    bare = text.strip()
    if found := _SUFFIXED.fullmatch(bare):
        return f"{Decimal(f'{found[1]}.{found[2] or 0}') * _SIZES[found[3]]:.0f}"
    for group, decimal, pattern in _GROUPS:
        if pattern.fullmatch(bare):
            return bare.replace(group, "").replace(decimal, ".")
    return bare.replace(",", ".") if _DECIMAL_COMMA.fullmatch(bare) else text


def ambiguity(field: str, text: str) -> FieldError | None:
    """The fault of a number that a reader of the page's language takes for a thousand times what the field does."""
    mark = _grouping_mark()
    text = text.strip()
    if not _ONE_GROUP[mark].fullmatch(text):
        return None
    message = (
        _("A point separates decimals here, so this may be read two ways.")
        if mark == "."
        else _("A comma may separate decimals here, so this may be read two ways.")
    )
    return FieldError(
        field=field,
        value=text,
        message=message,
        allowed=_("%(whole)s, or %(decimal)s")
        % {"whole": text.replace(mark, ""), "decimal": float(text.replace(mark, "."))},
        code="ambiguous",
    )


def clear_number(text: str) -> str:
    """A stored number as a form or an address holds it: a zero more where three decimals look like a thousand.

    >>> clear_number("16.253"), clear_number("1234.567"), clear_number("0.125")
    ('16.2530', '1234.567', '0.125')
    """
    return f"{text}0" if _ONE_GROUP["."].fullmatch(text) else text


def short_number(text: str) -> str:
    """A number of a million and more as a narrow field shows it whole, where nothing is lost by that.

    >>> short_number("15000000000000"), short_number("2500000"), short_number("1234567"), short_number("100000")
    ('15T', '2.5M', '1234567', '100000')
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > MOST_SHORTENED:
        return text
    for suffix in "TBM":
        if int(text) >= _SIZES[suffix]:
            short = f"{Decimal(text) / _SIZES[suffix]:f}"
            return f"{short}{suffix}" if _SHORT.fullmatch(short) else text
    return text


def read_typed(input_type: type, raw: Mapping[str, str]) -> tuple[dict[str, Any], list[FieldError]]:
    """``read_fields`` of what was typed into a form."""
    known = specs(input_type)
    numbers = [name for name in raw if name in known and known[name][0].kind in NUMBER_KINDS]
    unclear = [fault for name in numbers if (fault := ambiguity(name, raw[name])) is not None]
    values, faults = read_fields(input_type, {**raw, **{name: plain_number(raw[name]) for name in numbers}})
    named = {fault.field for fault in unclear}
    return values, unclear + [fault for fault in faults if fault.field not in named]


def read_form(input_type: type[Input], raw: Mapping[str, str]) -> Input:
    """The input in a form's texts; raises ``InvalidQuestion`` with every fault."""
    values, faults = read_typed(input_type, raw)
    if faults:
        raise InvalidQuestion(faults)
    return input_type(**values)


def _grouping_mark() -> str:
    return "." if (get_language() or "").startswith("id") else ","
