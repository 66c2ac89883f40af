"""Entries of price books: what is refused, what they cost in USD, what plans make of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.utils import timezone

from catalog.exchange import DatedRate
from catalog.selectors import catalog_snapshot
from planner.engine.errors import InvalidQuestion
from planner.models import NegotiatedPrice, PriceBook, PriceUnit, Role
from planner.selectors.price_books import exchange_rate, price_book_values, snapshot_for, usd_per_node_hour
from planner.services.json_input import read_form
from planner.services.planning import plan_inference
from planner.services.price_book_inputs import (
    CommitmentInput,
    ExchangeRateInput,
)
from planner.services.price_books import (
    add_entry,
    set_exchange_rate,
)
from tests.planner.contract_prices import QUESTION, faults, negotiated, priced, private, some_offer
from tests.planner.organizations import Tenant, tenant_factory


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"provider": "no-such"}, {"provider", "instance_type"}),
        ({"instance_type": "no-such"}, {"instance_type"}),
        ({"region": "no-such"}, {"region"}),
        ({"region": "no-such", "country": "zz"}, {"country"}),
        ({"currency": "XAU"}, {"currency"}),
        ({"valid_from": "2026-02-01", "valid_until": "2026-01-31"}, {"valid_until"}),
        ({"attachment": "contract.pdf"}, {"attachment"}),
    ],
)
def test_an_entry_that_no_plan_could_use_is_refused(
    acme: Tenant, book: PriceBook, given: dict[str, str], wrong: set[str]
) -> None:
    with pytest.raises(InvalidQuestion) as invalid:
        add_entry(scope=acme.scope(), book=book, values=negotiated(**given))
    assert set(faults(invalid)) == wrong
    assert not NegotiatedPrice.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("amount", "0"),
        ("amount", "-1"),
        ("amount", "1e3"),
        ("amount", "1,5"),
        ("amount", "0.0000001"),
        ("amount", "nan"),
        ("amount", "9" * 19),
        ("amount", ""),
        ("valid_from", "2026-02-30"),
        ("valid_from", "1.2.2026"),
        ("valid_from", "\uff12026-01-01"),
        ("tax_percent", "101"),
        ("unit", "day"),
        ("currency", "DOLLAR"),
        ("reference", "a\x00b"),
        ("no_such_field", "1"),
    ],
)
def test_a_value_that_is_none_is_refused_by_name(acme: Tenant, field: str, value: str) -> None:
    with pytest.raises(InvalidQuestion) as invalid:
        negotiated(**{field: value})
    assert set(faults(invalid)) == {field}


@pytest.mark.parametrize(
    ("unit", "amount", "tax", "currency", "expected"),
    [
        (PriceUnit.NODE_HOUR, "20", "0", "USD", "20"),
        (PriceUnit.GPU_HOUR, "2.5", "0", "USD", "20"),
        (PriceUnit.NODE_MONTH, "14600", "0", "USD", "20"),
        (PriceUnit.NODE_HOUR, "22.2", "11", "USD", "20"),
        (PriceUnit.NODE_HOUR, "330000", "0", "IDR", "20"),
        (PriceUnit.GPU_HOUR, "45787.5", "11", "IDR", "20"),
        (PriceUnit.NODE_HOUR, "16", "0", "EUR", "20"),
    ],
)
def test_amounts_become_usd_for_a_node_and_an_hour(
    unit: PriceUnit, amount: str, tax: str, currency: str, expected: str
) -> None:
    rates = {"USD": ("USD", "1"), "IDR": ("USD", "16500"), "EUR": ("EUR", "1.25")}
    base, rate = rates[currency]
    dated = DatedRate(
        base=base,
        quote="IDR" if currency == "IDR" else "USD",
        rate=Decimal(rate),
        rate_date=date(2026, 1, 1),
        source="bank",
    )
    row = NegotiatedPrice(amount=Decimal(amount), currency=currency, unit=unit, tax_percent=Decimal(tax))
    assert usd_per_node_hour(row, dated, Decimal(8)) == Decimal(expected)


def test_an_own_rate_comes_before_the_catalogs_and_changes_prices(acme: Tenant, book: PriceBook) -> None:
    scope, today = acme.scope(), timezone.localdate()
    catalogs = exchange_rate(scope.organization, "EUR", today)
    assert catalogs is not None
    assert catalogs.base == "EUR"
    add_entry(scope=scope, book=book, values=negotiated(amount="10", currency="eur"))
    before = priced(scope, some_offer()).price_usd_per_node_hour
    assert before == (10 * catalogs.rate).quantize(Decimal("0.000001"))
    own = read_form(ExchangeRateInput, {"base": "eur", "rate": "2", "quote": "usd", "source": "our bank"})
    set_exchange_rate(scope=scope, values=own)
    assert priced(scope, some_offer()).price_usd_per_node_hour == Decimal(20)
    assert exchange_rate(scope.organization, "IDR", today) is None
    rupiah = read_form(ExchangeRateInput, {"base": "USD", "rate": "16500", "quote": "IDR", "source": "our bank"})
    set_exchange_rate(scope=scope, values=rupiah)
    assert exchange_rate(tenant_factory("Other").organization, "IDR", today) is None


def test_an_entry_whose_rate_went_missing_has_no_price(acme: Tenant, book: PriceBook) -> None:
    entry = add_entry(scope=acme.scope(), book=book, values=negotiated())
    NegotiatedPrice.objects.filter(pk=entry.pk).update(currency="IDR")
    read = price_book_values(book, timezone.localdate())
    assert read.values.negotiated == ()
    assert [row.pk for row in read.unpriced] == [entry.pk]


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"accelerator": "h999"}, {"accelerator"}),
        ({"name": "a/b"}, {"name"}),
        ({"provider": "a,b"}, {"provider"}),
        ({"country": "QQ"}, {"country"}),
        ({"link": "none"}, {"link"}),
        ({"accelerator": "l40s", "link": "nvlink"}, {"link"}),
    ],
)
def test_a_private_node_that_cannot_be_is_refused(
    acme: Tenant, book: PriceBook, given: dict[str, str], wrong: set[str]
) -> None:
    with pytest.raises(InvalidQuestion) as invalid:
        add_entry(scope=acme.scope(), book=book, values=private(**given))
    assert set(faults(invalid)) == wrong


def test_a_private_node_is_planned_on_by_its_organization_alone(acme: Tenant, book: PriceBook) -> None:
    scope = acme.scope(Role.VIEWER)
    add_entry(scope=acme.scope(), book=book, values=private(nodes="4"))
    plan = plan_inference(QUESTION, scope=scope)
    own = [option for option in plan.options if option.cluster.provider == "Our cellar"]
    assert plan.recommended == own[0].id
    assert own[0].price.flags == ("private_capacity",)
    assert own[0].price.source == "price book Contract"
    assert plan.catalog_version.startswith(f"{catalog_snapshot().version}+")
    assert any("price book Contract" in line for line in plan.assumptions)
    everyone = plan_inference(QUESTION)
    assert not [option for option in everyone.options if option.cluster.provider == "Our cellar"]
    assert everyone.catalog_version == catalog_snapshot().version
    assert "Prices are list prices, before tax, support, storage and egress." in everyone.assumptions


def test_a_plan_takes_no_more_private_nodes_than_there_are(acme: Tenant, book: PriceBook) -> None:
    add_entry(scope=acme.scope(), book=book, values=private(nodes="1", amount="1"))
    asked = QUESTION | {"requests_per_second": 400, "providers": "Our cellar"}
    plan = plan_inference(asked, scope=acme.scope())
    assert plan.options == ()
    assert [(r.code, r.limit) for r in plan.rejections if r.code == "available_nodes"] == [("available_nodes", 1.0)]


def test_a_capacity_commitment_is_an_offer_of_its_own_and_a_spend_is_none(acme: Tenant, book: PriceBook) -> None:
    scope, listed = acme.scope(), some_offer()
    given = {"provider": listed.provider, "instance_type": listed.instance_type, "amount": "7", "currency": "USD"}
    add_entry(scope=scope, book=book, values=read_form(CommitmentInput, given | {"nodes": "3"}))
    add_entry(scope=scope, book=book, values=read_form(CommitmentInput, given | {"kind": "spend", "amount": "1000000"}))
    committed = [o for o in snapshot_for(scope, timezone.localdate()).offers if "committed_capacity" in o.flags]
    assert [(o.available_nodes, o.price_usd_per_node_hour) for o in committed] == [(3, Decimal(7))]
    with pytest.raises(InvalidQuestion) as invalid:
        add_entry(scope=scope, book=book, values=read_form(CommitmentInput, given))
    assert set(faults(invalid)) == {"nodes"}
