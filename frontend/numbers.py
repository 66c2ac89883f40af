"""Numbers as people read them: by locale, at most three significant digits in prose, always with a unit.

Tables and exports keep more digits; these functions round for reading only. Money is USD.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

from babel import Locale
from django.utils.translation import get_language
from django.utils.translation import gettext as _

Number = int | float | Decimal

HOURS_PER_DAY = 24
MS_PER_DAY = 86_400_000

NOTHING = "–"
"""Shown where a value is unknown: never 0."""


@lru_cache(maxsize=8)
def _separators(language: str) -> dict[int, str]:
    """From Python's own thousands and decimal marks to those of a language."""
    symbols = Locale.parse(language, sep="-").number_symbols["latn"]
    return {ord(","): str(symbols["group"]), ord("."): str(symbols["decimal"])}


def fixed(value: Number | None, places: int = 0) -> str:
    """``value`` with that many decimals and the language's separators."""
    if value is None or not math.isfinite(value):
        return NOTHING
    # A page formats a thousand numbers: Python's own formatting is many times faster than a locale library's.
    return localized(f"{value:,.{places}f}")


def localized(text: str) -> str:
    """A number that Python formatted, with the language's separators."""
    return text.translate(_separators(get_language() or "en"))


def separators() -> str:
    """The language's decimal mark and that of thousands, as charts are told them."""
    marks = _separators(get_language() or "en")
    return marks[ord(".")] + marks[ord(",")]


def rounded(value: Number | None, digits: int = 3) -> str:
    """``value`` to so many significant digits, whole numbers without decimals.

    >>> rounded(31416), rounded(0.5234), rounded(12.34), rounded(6), rounded(0)
    ('31,400', '0.523', '12.3', '6', '0')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    exact = Decimal(str(value))
    exponent = exact.adjusted() - digits + 1
    small = exact.quantize(Decimal(1).scaleb(exponent), rounding=ROUND_HALF_UP)
    places = max(0, -int(str(small.normalize().as_tuple().exponent)))
    return fixed(small, min(places, 12))


def count(value: Number) -> str:
    """How many: in full where whole, three digits where a card is shared.

    >>> count(2048.0), count(0.16666)
    ('2,048', '0.167')
    """
    return fixed(value) if value == int(value) else rounded(value)


def money(value: Number | None, digits: int = 3) -> str:
    """USD to so many significant digits; cents are kept where they matter.

    >>> money(31416), money(64.8), money(0.6149), money(5)
    ('$31,400', '$64.80', '$0.61', '$5.00')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if 0.1 <= abs(float(value)) < 100:
        return "$" + fixed(value, 2)
    return "$" + rounded(value, digits)


def price(value: Number | None, places: int = 2) -> str:
    """USD for a table's column: that many decimals, or two digits where they would leave one or none of a price.

    >>> price(4.4), price(1234.5, 0), price(0.00417), price(0.0607), price(0)
    ('4.40', '1,234', '0.0042', '0.061', '0.00')
    """
    small = value is not None and 0 < abs(float(value)) < 10.0 ** (1 - places)
    return rounded(value, 2) if small else fixed(value, places)


def duration(value_ms: float | None) -> str:
    """Milliseconds as ms, s or min, three significant digits.

    >>> duration(27.04), duration(624), duration(1240), duration(185_000)
    ('27 ms', '624 ms', '1.24 s', '3.1 min')
    """
    if value_ms is None or not math.isfinite(value_ms):
        return NOTHING
    if value_ms >= 120_000:
        return _("%(n)s min") % {"n": rounded(value_ms / 60_000, 2)}
    if value_ms >= 1000:
        return _("%(n)s s") % {"n": rounded(value_ms / 1000, 3)}
    return _("%(n)s ms") % {"n": rounded(value_ms, 3 if value_ms >= 100 else 2)}


def percent(value: float | None, places: int = 0) -> str:
    """A share as percent; something that would be written as nothing is less than the smallest step.

    >>> percent(0.334), percent(0.0004), percent(0.0)
    ('33 %', '< 1 %', '0 %')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    smallest = 10**-places
    if 0 < value * 100 < smallest / 2:
        return "< " + fixed(smallest, places) + " %"
    return fixed(value * 100, places) + " %"


def compact(value: float | None) -> str:
    """Large counts with the field's own suffixes, the same in every language.

    >>> compact(70_553_706_496), compact(15e12), compact(8192)
    ('70.6B', '15T', '8,190')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    for suffix, size in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if abs(value) >= size:
            return rounded(value / size) + suffix
    return rounded(value)


def band(low: float, high: float) -> str:
    """A confidence band as a percentage: one figure where it is even, two where it is not, none where unknown.

    >>> band(0.88, 1.12), band(0.8, 1.35), band(1, 1)
    ('±12 %', '−20 to +35 %', 'exact')
    """
    if not math.isfinite(high):
        return NOTHING
    down, up = round((1 - low) * 100), round((high - 1) * 100)
    if down == 0 and up == 0:
        return _("exact")
    if abs(down - up) <= 2:
        return f"±{max(down, up)} %"
    return _("−%(down)d to +%(up)d %%") % {"down": down, "up": up}


def days(value: float | None) -> str:
    """Calendar days, hours below two days, minutes and less below two hours.

    >>> days(21.4), days(0.5), days(0.0365), days(0.0003)
    ('21.4 days', '12 hours', '53 min', '25.9 s')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value * HOURS_PER_DAY < 2:
        return duration(value * MS_PER_DAY)
    if value < 2:
        return _("%(n)s hours") % {"n": rounded(value * 24)}
    return _("%(n)s days") % {"n": rounded(value)}


def compact_money(value: float) -> str:
    """A sum in an axis label: thousands as k, millions as M, billions as B.

    >>> compact_money(47_300), compact_money(2_500_000), compact_money(640)
    ('47.3k', '2.5M', '640')
    """
    for suffix, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return rounded(value / size) + suffix
    return rounded(value)
