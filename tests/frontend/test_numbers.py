"""Numbers by locale, with at most three significant digits in prose."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from frontend import numbers


@pytest.mark.parametrize(
    ("value", "english", "indonesian"),
    [
        (Decimal("31416"), "$31,400", "$31.400"),
        (Decimal("64.8"), "$64.80", "$64,80"),
        (Decimal("0.0895"), "$0.0895", "$0,0895"),
        (Decimal("1234567.8"), "$1,230,000", "$1.230.000"),
        (None, "–", "–"),
    ],
)
def test_money_in_both_languages(value: Decimal | None, english: str, indonesian: str) -> None:
    with translation.override("en"):
        assert numbers.money(value) == english
    with translation.override("id"):
        assert numbers.money(value) == indonesian


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.91, 1.09, "±9 %"), (0.8, 1.35, "−20 to +35 %"), (1.0, 1.0, "exact"), (0.0, math.inf, "–")],
)
def test_a_band(low: float, high: float, text: str) -> None:
    assert numbers.band(low, high) == text


@pytest.mark.parametrize("shown", [numbers.rounded, numbers.fixed, numbers.compact, numbers.duration, numbers.days])
def test_what_is_not_finite_is_unknown_and_never_zero(shown) -> None:
    assert {shown(value) for value in (None, math.inf, -math.inf, math.nan)} == {numbers.NOTHING}


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_rounding_keeps_three_digits(value: float) -> None:
    read_back = float(numbers.rounded(value).replace(",", ""))
    assert read_back == pytest.approx(value, rel=0.00501)
    assert len(numbers.rounded(value).replace(",", "").replace(".", "").strip("0")) <= 3


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (Decimal("0.00417"), 2, "0.0042"),
        (Decimal("0.0607"), 2, "0.061"),
        (Decimal("0.1"), 2, "0.10"),
        (Decimal("4.4"), 2, "4.40"),
        (Decimal("4.4"), 0, "4.4"),
        (Decimal("189.8"), 0, "190"),
        (Decimal(0), 2, "0.00"),
        (None, 2, numbers.NOTHING),
        (math.nan, 2, numbers.NOTHING),
    ],
)
def test_a_price_in_a_table_is_never_rounded_to_nothing(value: Decimal | None, places: int, text: str) -> None:
    assert numbers.price(value, places) == text
