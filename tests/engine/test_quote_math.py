"""The arithmetic of quotes: worked tables, and the law that a total is the sum of the lines shown."""

from decimal import Decimal
from random import Random
from typing import Any

import pytest
from babel.numbers import get_currency_precision, list_currencies
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engine.money import Currency
from planner.engine.quote_math import (
    PRICED_CATEGORIES,
    SHARE_CATEGORIES,
    Amounts,
    Item,
    Priced,
    Share,
    TaxRate,
    price_quote,
)

USD = Currency(code="USD", minor_digits=2)
IDR = Currency(code="IDR", minor_digits=0)
PPN = TaxRate(id="tax", name="PPN", rate=Decimal("0.12"), base_numerator=11, base_denominator=12)


def item(
    category: Any = "compute",
    quantity: str | None = "730",
    price: str | None = "53.52",
    cadence: Any = "monthly",
    id: str = "a",
) -> Item:
    return Item(
        id=id,
        category=category,
        cadence=cadence,
        quantity=None if quantity is None else Decimal(quantity),
        unit="node_hour",
        unit_price=None if price is None else Decimal(price),
    )


def share(category: Any, percent: str, of: Any = (), id: str = "s") -> Share:
    return Share(id=id, category=category, percent=Decimal(percent), of=of)


def amounts(priced: Priced) -> list[tuple[str, str, str, str]]:
    return [(line.category, str(line.once), str(line.monthly), str(line.term)) for line in priced.lines]


def test_every_kind_of_line_in_order():
    priced = price_quote(
        [item("services", "6", "950", "once", "d"), item(), item("storage", "263", "0.071", id="b")],
        [
            share("discount", "7.5"),
            share("mark_up", "10", id="m"),
            share("contingency", "5", id="c"),
            share("support", "6", ("compute",), id="p"),
        ],
        PPN,
        USD,
        12,
    )
    assert amounts(priced) == [
        ("compute", "0.00", "39069.60", "468835.20"),
        ("storage", "0.00", "18.67", "224.04"),
        ("services", "5700.00", "0.00", "5700.00"),
        # 6 % of 39,069.60
        ("support", "0.00", "2344.18", "28130.16"),
        # 5 % of 5,700.00 and of 41,432.45
        ("contingency", "285.00", "2071.62", "25144.44"),
        # 10 % of 5,985.00 and of 43,504.07
        ("mark_up", "598.50", "4350.41", "52803.42"),
        # 7.5 % of 6,583.50 and of 47,854.48, subtracted
        ("discount", "-493.76", "-3589.09", "-43562.84"),
        # 12 % x 11/12 of 6,089.74 and of 44,265.39
        ("tax", "669.87", "4869.19", "59100.15"),
    ]
    assert priced.net == Amounts(once=Decimal("6089.74"), monthly=Decimal("44265.39"), term=Decimal("537274.42"))
    assert priced.total == Amounts(once=Decimal("6759.61"), monthly=Decimal("49134.58"), term=Decimal("596374.57"))


def test_rupiah_have_no_decimals():
    priced = price_quote([item(price="704160.4567")], [], PPN, IDR, 1)
    assert amounts(priced) == [("compute", "0", "514037133", "514037133"), ("tax", "0", "56544085", "56544085")]
    assert str(priced.lines[0].unit_price) == "704160.4567"


def test_two_discounts_do_not_discount_each_other():
    priced = price_quote(
        [item(quantity="100", price="1")], [share("discount", "10"), share("discount", "5")], None, USD, 1
    )
    assert [line.monthly for line in priced.lines[1:]] == [Decimal("-10.00"), Decimal("-5.00")]


def test_unknown_price_makes_what_needs_it_unknown_and_nothing_else():
    priced = price_quote(
        [item(price=None), item("services", "1", "10", "once", "b")],
        [share("contingency", "10"), share("support", "10", ("services",), "p")],
        PPN,
        USD,
        3,
    )
    assert amounts(priced) == [
        ("compute", "0.00", "None", "None"),
        ("services", "10.00", "0.00", "10.00"),
        ("support", "1.00", "0.00", "1.00"),
        ("contingency", "1.10", "None", "None"),
        ("tax", "1.33", "None", "None"),
    ]
    assert priced.unknown == ("a",)
    assert priced.total == Amounts(once=Decimal("13.43"), monthly=None, term=None)


def test_an_unknown_quantity_is_unknown_too():
    assert price_quote([item(quantity=None)], [], None, USD, 1).unknown == ("a",)


def test_a_quote_of_nothing_is_nothing_in_cents():
    priced = price_quote([], [share("discount", "10")], PPN, USD, 1)
    assert str(priced.total.term) == "0.00"
    assert [str(line.once) for line in priced.lines] == ["0.00", "0.00"]


def test_a_term_has_at_least_a_month():
    with pytest.raises(ValueError, match="at least 1"):
        price_quote([], [], None, USD, 0)


def decimals(most: int, places: int) -> st.SearchStrategy[Decimal]:
    return st.integers(0, most * 10**places).map(lambda digits: Decimal(digits).scaleb(-places))


numbers = decimals(10**9, 6)
items = st.tuples(st.sampled_from(PRICED_CATEGORIES), st.sampled_from(["once", "monthly"]), numbers, numbers).map(
    lambda drawn: Item(
        id="i",
        category=drawn[0],
        cadence="once" if drawn[1] == "once" else "monthly",
        quantity=drawn[2],
        unit="piece",
        unit_price=drawn[3],
    )
)
BASES: list[Any] = [(), ("compute",), ("compute", "support"), ("storage", "egress", "licences")]
shares = st.tuples(st.sampled_from(SHARE_CATEGORIES), decimals(100, 4), st.sampled_from(BASES)).map(
    lambda drawn: Share(id="s", category=drawn[0], percent=drawn[1], of=drawn[2])
)
taxes = st.none() | st.builds(
    TaxRate,
    id=st.just("t"),
    name=st.just("VAT"),
    rate=decimals(1, 4),
    base_numerator=st.integers(1, 12),
    base_denominator=st.just(12),
)
CURRENCIES = [Currency(code=code, minor_digits=get_currency_precision(code)) for code in sorted(list_currencies())]
"""Every one that a quote may be in."""


def drawn_from(seed: int) -> dict[str, Any]:
    """A quote's lines from one number: many cases cost little time, and each is drawn again from its number."""
    random = Random(seed)

    def number(most: int, places: int) -> Decimal:
        return Decimal(random.randrange(most * 10**places)).scaleb(-places)

    return {
        "items": [
            item(
                random.choice(PRICED_CATEGORIES),
                str(number(10 ** random.randrange(1, 8), 6)),
                str(number(10 ** random.randrange(1, 8), 6)),
                random.choice(["once", "monthly"]),
            )
            for _ in range(random.randrange(8))
        ],
        "shares": [
            share(random.choice(SHARE_CATEGORIES), str(number(100, 4)), random.choice(BASES))
            for _ in range(random.randrange(5))
        ],
        "tax": random.choice(
            [None, PPN, TaxRate(id="t", name="VAT", rate=number(1, 4), base_numerator=1, base_denominator=1)]
        ),
        "currency": random.choice(CURRENCIES),
        "months": random.randrange(1, 61),
    }


@settings(max_examples=10_000, deadline=None)
@given(st.integers(0, 2**64).map(drawn_from))
def test_totals_are_the_sums_of_the_lines_shown(case):
    check_sums(**case)


@given(
    items=st.lists(items, max_size=4),
    shares=st.lists(shares, max_size=3),
    tax=taxes,
    currency=st.sampled_from(CURRENCIES),
    months=st.integers(1, 60),
)
def test_totals_are_the_sums_at_the_edges(items, shares, tax, currency, months):
    check_sums(items, shares, tax, currency, months)


def check_sums(items: Any, shares: Any, tax: Any, currency: Currency, months: int) -> None:
    priced = price_quote(items, shares, tax, currency, months)
    for name in ("once", "monthly", "term"):
        shown = [getattr(line, name) for line in priced.lines]
        assert sum(shown) == getattr(priced.total, name)
        assert getattr(priced.net, name) + getattr(priced.tax, name) == getattr(priced.total, name)
    for line in priced.lines:
        assert line.once is not None
        assert line.monthly is not None
        assert line.term == line.once + months * line.monthly
        for amount in (line.once, line.monthly, line.term):
            assert amount is not None
            assert amount.as_tuple().exponent == -currency.minor_digits
