"""What a price book does to a catalog: exact prices, in the order the rules say."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.hardware import CatalogSnapshot, Offer
from planner.engine.offers import in_stock, offer_table
from planner.engine.price_book import (
    COMMITTED,
    DISCOUNTED,
    NEGOTIATED,
    PRIVATE,
    DiscountRule,
    NegotiatedPrice,
    PriceBook,
    PrivateOffer,
    Validity,
    apply_price_book,
)
from tests.engine.small_catalog import TODAY, accelerator, instance, offer

CARD = accelerator()
NODE = instance(CARD, 8)
OTHER = instance(CARD, 8, provider="other")
ALWAYS = Validity()
SINCE_TODAY = Validity(first=TODAY)
YESTERDAY, TOMORROW = TODAY - timedelta(days=1), TODAY + timedelta(days=1)


def catalog(*offers: Offer) -> CatalogSnapshot:
    return CatalogSnapshot(
        version="list",
        accelerators={CARD.key: CARD},
        instance_types={(shape.provider, shape.name): shape for shape in (NODE, OTHER)},
        offers=offers,
    )


LISTED = catalog(
    offer(NODE, "20"), offer(NODE, "22", region="r2"), offer(NODE, "8", option="spot"), offer(OTHER, "16.0001")
)


def discount(share: str, provider: str = "", validity: Validity = ALWAYS, **other: Any) -> DiscountRule:
    fields = {"purchase_options": (), "source": "deal"} | other
    return DiscountRule(provider=provider, share=Decimal(share), validity=validity, **fields)


def negotiated(price: str, **other: Any) -> NegotiatedPrice:
    fields: dict[str, Any] = {
        "provider": "acme",
        "instance_type": NODE.name,
        "region": "",
        "country": "",
        "purchase_option": "on_demand",
        "agreed_on": date(2026, 1, 1),
        "validity": ALWAYS,
        "source": "contract 7",
    }
    return NegotiatedPrice(usd_per_node_hour=Decimal(price), **(fields | other))


def prices(book: PriceBook, listed: CatalogSnapshot = LISTED) -> dict[tuple[str, str, str], str]:
    found = apply_price_book(listed, book, TODAY).offers
    return {(o.provider, o.region, o.purchase_option): f"{o.price_usd_per_node_hour:f}" for o in found}


def test_an_empty_book_changes_no_price_but_names_itself() -> None:
    result = apply_price_book(LISTED, PriceBook(version="b1", name="Deals"), TODAY)
    assert result.offers == LISTED.offers
    assert result.version == "list+b1"
    assert result.prices == "those of the price book Deals, and list prices where it has none"


def test_a_flat_discount_is_taken_off_every_list_price() -> None:
    book = PriceBook(version="b", name="Deals", discounts=(discount("0.1"),))
    assert prices(book) == {
        ("acme", "r1", "on_demand"): "18.000000",
        ("acme", "r2", "on_demand"): "19.800000",
        ("acme", "r1", "spot"): "7.200000",
        ("other", "r1", "on_demand"): "14.400090",
    }
    first = apply_price_book(LISTED, book, TODAY).offers[0]
    assert first.flags == (DISCOUNTED,)
    assert first.source == "test; deal"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([discount("0.1"), discount("0.2", "acme")], "16.000000"),
        ([discount("0.3"), discount("0.2", "acme")], "16.000000"),
        ([discount("0.1"), discount("0.2", "other")], "18.000000"),
        ([discount("0.2", "acme", purchase_options=("spot",)), discount("0.1")], "18.000000"),
        ([discount("0.2", "acme", Validity(last=YESTERDAY)), discount("0.1")], "18.000000"),
        ([discount("0.2", "acme", Validity(first=TOMORROW))], "20"),
        ([discount("0.2", validity=Validity(first=TODAY, last=TODAY)), discount("0.1")], "16.000000"),
        (
            [discount("0.1", validity=Validity(first=TODAY)), discount("0.2", validity=Validity(first=YESTERDAY))],
            "18.000000",
        ),
    ],
    ids=[
        "provider first",
        "even where smaller",
        "another provider",
        "other purchase",
        "over",
        "not yet",
        "days",
        "latest",
    ],
)
def test_which_discount_decides(rules: list[DiscountRule], expected: str) -> None:
    assert prices(PriceBook(version="b", name="Deals", discounts=tuple(rules)))["acme", "r1", "on_demand"] == expected


def test_a_negotiated_price_replaces_the_list_price_and_takes_no_discount() -> None:
    book = PriceBook(
        version="b",
        name="Deals",
        discounts=(discount("0.5", "acme"),),
        negotiated=(negotiated("15"), negotiated("14", region="r2")),
    )
    assert prices(book) == {
        ("acme", "r1", "on_demand"): "15",
        ("acme", "r2", "on_demand"): "14",
        ("acme", "r1", "spot"): "4.000000",
        ("other", "r1", "on_demand"): "16.0001",
    }


def test_a_negotiated_price_says_where_it_comes_from_and_how_old_it_is() -> None:
    open_ended, promised = (
        apply_price_book(LISTED, PriceBook(version="b", name="Deals", negotiated=(price,)), TODAY).offers[0]
        for price in (negotiated("15"), negotiated("15", validity=Validity(last=TOMORROW)))
    )
    assert open_ended.source == "contract 7"
    assert open_ended.flags == (NEGOTIATED,)
    assert open_ended.as_of == date(2026, 1, 1)
    assert promised.as_of == TODAY


def test_a_negotiated_price_of_what_is_not_listed_becomes_an_offer_wherever_the_node_is_rented() -> None:
    book = PriceBook(version="b", name="Deals", negotiated=(negotiated("12", purchase_option="reserved_3y"),))
    assert {key: value for key, value in prices(book).items() if key[2] == "reserved_3y"} == {
        ("acme", "r1", "reserved_3y"): "12",
        ("acme", "r2", "reserved_3y"): "12",
    }
    elsewhere = PriceBook(version="b", name="Deals", negotiated=(negotiated("12", region="r9", country="SG"),))
    (added,) = apply_price_book(LISTED, elsewhere, TODAY).offers[4:]
    assert (added.region, added.country, added.id) == ("r9", "SG", f"acme/{NODE.name}/r9/on_demand")


def test_a_price_of_an_unknown_node_is_left_out() -> None:
    book = PriceBook(version="b", name="Deals", negotiated=(negotiated("12", instance_type="no-such"),))
    assert apply_price_book(LISTED, book, TODAY).offers == LISTED.offers


def test_committed_capacity_stands_beside_the_list_price_for_so_many_nodes() -> None:
    book = PriceBook(version="b", name="Deals", committed=(negotiated("9", region="r1", available_nodes=4),))
    result = apply_price_book(LISTED, book, TODAY).offers
    assert result[:4] == LISTED.offers
    assert (result[4].available_nodes, result[4].flags, result[4].country) == (4, (COMMITTED,), "ID")
    assert len({o.id for o in result}) == 5


def test_private_capacity_becomes_an_instance_type_with_an_offer() -> None:
    own = replace(instance(CARD, 4, provider="our cellar"), name="node")
    price = negotiated(
        "3", provider="our cellar", instance_type="node", region="Jakarta", country="ID", available_nodes=2
    )
    result = apply_price_book(
        LISTED, PriceBook(version="b", name="Deals", private=(PrivateOffer(instance_type=own, price=price),)), TODAY
    )
    assert result.instance_types["our cellar", "node"] == own
    assert result.offers[4].flags == (PRIVATE,)
    assert ("our cellar", "node") not in LISTED.instance_types
    over = replace(price, validity=Validity(last=YESTERDAY))
    gone = PriceBook(version="b", name="Deals", private=(PrivateOffer(instance_type=own, price=over),))
    assert apply_price_book(LISTED, gone, TODAY).offers == LISTED.offers


def test_an_offer_with_too_few_nodes_is_refused_with_the_numbers() -> None:
    table = offer_table(catalog(offer(NODE, "20"), replace(offer(NODE, "9", region="r2"), available_nodes=4)))
    rows = [(0, 100), (1, 4), (1, 5)]
    enough, refused = in_stock(table, *(_column(rows, i) for i in (0, 1)))
    assert enough.tolist() == [True, True, False]
    # One of its sizes does, the other is said.
    assert [(r.reason, r.count) for r in refused] == [("Needs 5 nodes; 4 are to be had.", 1)]
    enough, refused = in_stock(table, *(_column([(0, 6), (1, 6), (1, 9)], i) for i in (0, 1)))
    assert enough.tolist() == [True, False, False]
    assert [(r.reason, r.value, r.limit, r.count) for r in refused] == [
        ("Needs 6 nodes; 4 are to be had.", 6.0, 4.0, 2)
    ]


def _column(rows: list[tuple[int, int]], index: int) -> Any:
    return np.array([row[index] for row in rows], dtype=np.int64)


@given(share=st.decimals(0, 1, places=4), price=st.decimals("0.01", 10_000, places=6))
def test_a_discounted_price_is_never_above_the_list_price_nor_nothing(share: Decimal, price: Decimal) -> None:
    listed = catalog(offer(NODE, str(price)))
    book = PriceBook(version="b", name="Deals", discounts=(discount(str(share)),))
    (result,) = apply_price_book(listed, book, TODAY).offers
    assert Decimal("0.0001") <= result.price_usd_per_node_hour <= price
    expected = max(price * (1 - share), Decimal("0.0001"))
    assert abs(result.price_usd_per_node_hour - expected) <= Decimal("0.0000005")


def test_no_price_becomes_nothing() -> None:
    book = PriceBook(
        version="b1",
        name="Gift",
        discounts=(discount("0.999999"),),
        negotiated=(negotiated("0.000001", provider="other"),),
        committed=(negotiated("0.00004"),),
    )
    seen = apply_price_book(
        catalog(offer(NODE, "20"), offer(OTHER, "16"), offer(NODE, "0.00005", region="r2")), book, TODAY
    )
    # What is shown has four decimals; a list price below that is as it was listed.
    assert sorted(each.price_usd_per_node_hour for each in seen.offers) == [
        Decimal("0.00005"), Decimal("0.0001"), Decimal("0.0001"), Decimal("0.0001"),
    ]  # fmt: skip
