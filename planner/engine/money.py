"""Money as a quote counts it: amounts in a currency's smallest unit, and unit prices a little finer."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

UNIT_PRICE_EXTRA_DIGITS: Final = 4
"""A unit price is stated to a ten-thousandth of the currency's smallest unit, finer than price lists are."""
EXACT: Final = Context(prec=60, rounding=ROUND_HALF_UP)
"""Sums of any size a quote can hold, exact to the last digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency:
    """A currency as a quote counts it."""

    code: str
    """ISO 4217."""
    minor_digits: int
    """Decimals of an amount: 2 for USD, 0 for IDR and JPY."""


def minor_unit(currency: Currency) -> Decimal:
    """The smallest amount.

    >>> minor_unit(Currency(code="IDR", minor_digits=0)), minor_unit(Currency(code="USD", minor_digits=2))
    (Decimal('1'), Decimal('0.01'))
    """
    return Decimal(1).scaleb(-currency.minor_digits)


def to_amount(value: Decimal, currency: Currency) -> Decimal:
    """``value`` rounded half up to the currency's smallest unit.

    >>> to_amount(Decimal("2.345"), Currency(code="USD", minor_digits=2))
    Decimal('2.35')
    """
    # Added to nothing, so that a discount of nothing is 0 and not minus 0.
    return EXACT.add(EXACT.quantize(value, minor_unit(currency)), Decimal(0))


def to_unit_price(value: Decimal, currency: Currency) -> Decimal:
    """``value`` rounded half up to the digits a unit price is stated with, without idle zeros.

    >>> to_unit_price(Decimal("53.520000"), Currency(code="USD", minor_digits=2))
    Decimal('53.52')
    >>> to_unit_price(Decimal("0.0232999"), Currency(code="USD", minor_digits=2))
    Decimal('0.0233')
    """
    step = Decimal(1).scaleb(-currency.minor_digits - UNIT_PRICE_EXTRA_DIGITS)
    return plain_decimal(EXACT.quantize(value, step))


def plain_decimal(value: Decimal) -> Decimal:
    """Without idle zeros, and never in powers of ten.

    >>> plain_decimal(Decimal("1E+3")), plain_decimal(Decimal("0.500"))
    (Decimal('1000'), Decimal('0.5'))
    """
    shortest = EXACT.normalize(value)
    return shortest if shortest.as_tuple().exponent <= 0 else EXACT.quantize(shortest, Decimal(1))  # type: ignore[operator]
