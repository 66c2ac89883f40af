"""Prices, exchange rates, taxes and discounts of quotes."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from catalog.models import FxRate
from planner.engine.errors import InvalidQuestion
from planner.services import quote_files, quotes
from planner.services.price_book_inputs import ExchangeRateInput
from planner.services.price_books import (
    set_exchange_rate,
)
from tests.planner.organizations import Tenant
from tests.planner.quote_terms import ITEM, RUPIAH, TERMS, issued


def test_unknown_prices_rates_and_taxes_block_and_are_named(tenant: Tenant) -> None:
    lines = [
        ITEM,
        {"category": "storage", "label": "Weights", "quantity": 10, "unit": "gib_month"},
        {"category": "egress", "unit": "gb", "unit_price": "0.05"},
        ITEM | {"label": "Link", "currency": "SGD"},
    ]
    with pytest.raises(InvalidQuestion) as refused:
        issued(tenant, items=lines, buyer={}, tax={"country": "SG"}, currency="IDR", fx=[RUPIAH])
    assert [(error.field, error.code) for error in refused.value.errors] == [
        ("fx", "unknown_rate"),
        ("tax.country", "unknown_tax"),
        ("items.1.unit_price", "unknown_price"),
        ("items.2.quantity", "unknown_quantity"),
        ("buyer.name", "required"),
    ]
    assert "Weights" in str(refused.value)


@pytest.mark.usefixtures("catalog")
def test_rupiah_at_a_stated_rate_with_indonesian_tax(tenant: Tenant) -> None:
    quote = issued(
        tenant,
        items=[ITEM | {"currency": "USD"}],
        currency="IDR",
        language="id",
        fx=[RUPIAH],
        tax={"country": "ID"},
        withholding={"name": "PPh 23", "rate": "0.02", "source": "UU PPh pasal 23"},
    )
    snapshot = quotes.priced(quote).snapshot
    compute, tax = snapshot.lines
    assert (compute.unit_price, compute.monthly) == (Decimal(872_376), Decimal(636_834_480))
    assert tax.monthly == Decimal(70_051_793)  # 12 % x 11/12 of 636,834,480
    assert (tax.percent, tax.detail) == (Decimal(12), "x 11/12")
    assert ",PPN,x 11/12," in quote_files.render(snapshot, "csv").decode()
    assert snapshot.withholding is not None
    assert snapshot.withholding.amounts.monthly == Decimal(12_736_690)
    assert [(rate.base, rate.quote, rate.source) for rate in snapshot.fx] == [("USD", "IDR", "our bank")]
    assert snapshot.tax is not None
    assert "131/2024" in snapshot.tax.source
    assert all(not (amount or 0) % 1 for line in snapshot.lines for amount in (line.once, line.monthly, line.term))


@pytest.mark.parametrize(
    ("days_ago", "problems", "warnings"),
    [
        (-1, ["fx.0.rate_date"], []),
        (0, [], []),
        (90, [], []),
        (91, [], ["fx"]),
        (3600, [], ["fx"]),
        (3700, ["fx.0.rate_date"], ["fx"]),
        (45_000, ["fx.0.rate_date"], ["fx"]),
    ],
)
def test_a_rate_to_come_or_of_another_age_blocks_and_an_old_one_is_told(
    tenant: Tenant, days_ago: int, problems: list[str], warnings: list[str]
) -> None:
    day = (timezone.localdate() - timedelta(days=days_ago)).isoformat()
    terms = TERMS | {"currency": "IDR", "items": [ITEM | {"currency": "USD"}], "fx": [RUPIAH | {"rate_date": day}]}
    draft = quotes.priced(quotes.create_quote(scope=tenant.scope(), terms=terms), timezone.now())
    assert [problem.field for problem in draft.problems] == problems
    assert [warning.field for warning in draft.warnings] == warnings
    stated = ExchangeRateInput(
        base="USD", quote="IDR", rate=Decimal(16300), rate_date=date.fromisoformat(day), source="our bank"
    )
    if problems:
        with pytest.raises(InvalidQuestion) as refused:
            set_exchange_rate(scope=tenant.scope(), values=stated)
        assert [error.field for error in refused.value.errors] == ["rate_date"]
    else:
        assert set_exchange_rate(scope=tenant.scope(), values=stated).rate_date.isoformat() == day


@pytest.mark.parametrize(
    ("discounts", "field"),
    [
        ([("100", [])], ""),
        ([("100.0001", [])], "shares.0.percent"),
        ([("60", []), ("40", [])], ""),
        ([("60", []), ("41", ["compute"])], "shares.1.percent"),
        ([("100", ["compute"]), ("100", ["storage"])], ""),
    ],
)
def test_no_more_than_all_of_a_line_is_taken_off(
    tenant: Tenant, discounts: list[tuple[str, list[str]]], field: str
) -> None:
    shares = [{"category": "discount", "percent": percent, "of": of} for percent, of in discounts]
    terms = TERMS | {"shares": [{"category": "mark_up", "percent": "300"}, *shares]}
    if field:
        field = field.replace(field[7], str(int(field[7]) + 1))
        with pytest.raises(InvalidQuestion) as refused:
            quotes.create_quote(scope=tenant.scope(), terms=terms)
        assert [error.field for error in refused.value.errors] == [field]
    else:
        draft = quotes.create_quote(scope=tenant.scope(), terms=terms)
        assert (quotes.priced(draft).snapshot.total.term or 0) >= 0


@pytest.mark.usefixtures("catalog")
def test_euro_at_the_catalogs_dated_rate_in_either_direction(tenant: Tenant) -> None:
    snapshot = quotes.priced(issued(tenant, currency="EUR", items=[ITEM | {"currency": "USD"}])).snapshot
    rate = FxRate.objects.get(base="EUR", retired=False)
    assert snapshot.lines[0].unit_price == (Decimal("53.52") / rate.rate).quantize(Decimal("0.000001"))
    assert snapshot.fx[0].rate_date == rate.rate_date
