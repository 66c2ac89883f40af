"""A buyer's own prices laid over a catalog: discounts, negotiated prices, capacity of their own.

``apply_price_book`` takes a snapshot and a price book as values and returns another snapshot; the list prices stay
as they were. What a rule did to an offer is written into the offer's ``flags`` and ``source``.

For each offer on a day, the first of these that holds decides:

1. a negotiated price of the instance type and purchase option, of this region before one of any region;
2. the discount of its provider;
3. the discount on every provider.

Discounts don't add up, and never apply to a negotiated price. Of several that hold, the one that began last decides.
Negotiated prices of what has no list price, committed capacity and private instance types become offers of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final, TypeVar

from planner.engine.hardware import CatalogSnapshot, InstanceType, Offer, PurchaseOption
from planner.engine.sentences import say

DISCOUNTED: Final = "price_book_discount"
NEGOTIATED: Final = "negotiated_price"
PRIVATE: Final = "private_capacity"
COMMITTED: Final = "committed_capacity"
PRICE_BOOK_FLAGS: Final = frozenset({DISCOUNTED, NEGOTIATED, PRIVATE, COMMITTED})
"""Flags that say whose price it is; every other one says what is doubtful about it."""
CONTRACT_AGE_DAYS: Final = 365
"""A price agreed without an end is taken to be stale after a year."""
_STEP: Final = Decimal("0.000001")
_LEAST: Final = Decimal("0.0001")
"""USD a node and hour, the last digit that is shown: whatever was agreed, capacity never looks free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """First and last day on which something holds; None: open."""

    first: date | None = None
    last: date | None = None

    def holds(self, day: date) -> bool:
        """Whether ``day`` is inside, both ends included.

        >>> Validity(last=date(2026, 12, 31)).holds(date(2026, 12, 31))
        True
        """
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscountRule:
    """A share taken off list prices."""

    provider: str
    """Empty: every provider."""
    purchase_options: tuple[PurchaseOption, ...]
    """Empty: every one."""
    share: Decimal
    """0.12 takes 12 % off."""
    validity: Validity
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiatedPrice:
    """What one instance type costs under a contract, in USD without tax."""

    provider: str
    instance_type: str
    region: str
    """Empty: every region."""
    country: str
    """Of ``region``, for one the catalog does not list."""
    purchase_option: PurchaseOption
    usd_per_node_hour: Decimal
    agreed_on: date
    validity: Validity
    source: str
    available_nodes: int | None = None
    """Most nodes at this price; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateOffer:
    """Capacity nobody else can rent: on premises, or of a local provider."""

    instance_type: InstanceType
    price: NegotiatedPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """All rules of one price book."""

    version: str
    name: str
    discounts: tuple[DiscountRule, ...] = ()
    negotiated: tuple[NegotiatedPrice, ...] = ()
    committed: tuple[NegotiatedPrice, ...] = ()
    """Capacity bought ahead: offers beside the list's, for as many nodes as were bought."""
    private: tuple[PrivateOffer, ...] = ()


def apply_price_book(snapshot: CatalogSnapshot, book: PriceBook, today: date) -> CatalogSnapshot:
    """The snapshot as the price book's owner sees it on ``today``; prices in USD an hour for a node, without tax."""
    discounts = _by_provider(rule for rule in book.discounts if rule.validity.holds(today))
    negotiated = _by_rental(price for price in book.negotiated if price.validity.holds(today))
    offers = [_priced(offer, discounts, negotiated, today) for offer in snapshot.offers]
    listed: set[tuple[str, str, str, str]] = {
        (offer.provider, offer.instance_type, offer.region, offer.purchase_option) for offer in snapshot.offers
    }
    offers += _unlisted(snapshot, negotiated, listed, today)
    offers += _committed(snapshot, book.committed, today)
    private = [item for item in book.private if item.price.validity.holds(today)]
    return CatalogSnapshot(
        version=f"{snapshot.version}+{book.version}",
        accelerators=snapshot.accelerators,
        instance_types={
            **snapshot.instance_types,
            **{(item.instance_type.provider, item.instance_type.name): item.instance_type for item in private},
        },
        prices=say("those of the price book {name}, and list prices where it has none", name=book.name),
        offers=(*offers, *(_offer(item.price, item.instance_type, today, PRIVATE) for item in private)),
    )


Rental = tuple[str, str, str]
"""Provider, instance type, purchase option."""
Prices = dict[Rental, dict[str, NegotiatedPrice]]
"""By rental, then by region; the region of any is empty."""


def _priced(offer: Offer, discounts: dict[str, list[DiscountRule]], negotiated: Prices, today: date) -> Offer:
    by_region = negotiated.get((offer.provider, offer.instance_type, offer.purchase_option))
    price = by_region and (by_region.get(offer.region) or by_region.get(""))
    if price:
        return replace(
            offer,
            price_usd_per_node_hour=max(price.usd_per_node_hour, _LEAST),
            as_of=_as_of(price, today),
            flags=(NEGOTIATED,),
            source=price.source,
            age_limit_days=CONTRACT_AGE_DAYS,
        )
    for rule in (*discounts.get(offer.provider, ()), *discounts.get("", ())):
        if not rule.purchase_options or offer.purchase_option in rule.purchase_options:
            reduced = (offer.price_usd_per_node_hour * (1 - rule.share)).quantize(_STEP)
            return replace(
                offer,
                price_usd_per_node_hour=max(reduced, min(offer.price_usd_per_node_hour, _LEAST)),
                flags=(*offer.flags, DISCOUNTED),
                source=f"{offer.source}; {rule.source}",
            )
    return offer


def _unlisted(
    snapshot: CatalogSnapshot, negotiated: Prices, listed: Set[tuple[str, str, str, str]], today: date
) -> Iterator[Offer]:
    """Offers of negotiated prices that no list price stands for."""
    for (provider, name, option), by_region in negotiated.items():
        instance = snapshot.instance_types.get((provider, name))
        if instance is None:
            continue
        places = _places(snapshot, provider, name)
        for region, price in by_region.items():
            # Of any region: wherever the provider rents it out, and has no price of its own.
            wanted = {region: places.get(region, price.country)} if region else places or {"": price.country}
            for place, country in wanted.items():
                if (provider, name, place, option) not in listed and (place == region or place not in by_region):
                    yield _offer(replace(price, region=place, country=country), instance, today, NEGOTIATED)


def _committed(snapshot: CatalogSnapshot, prices: Iterable[NegotiatedPrice], today: date) -> Iterator[Offer]:
    for number, price in enumerate(prices):
        instance = snapshot.instance_types.get((price.provider, price.instance_type))
        if instance is not None and price.validity.holds(today):
            country = _places(snapshot, price.provider, price.instance_type).get(price.region, price.country)
            offer = _offer(replace(price, country=country), instance, today, COMMITTED)
            yield replace(offer, id=f"{offer.id}/committed-{number}")


def _places(snapshot: CatalogSnapshot, provider: str, instance_type: str) -> dict[str, str]:
    """Regions where the instance type is for sale, each with its country."""
    return {
        offer.region: offer.country
        for offer in snapshot.offers
        if offer.provider == provider and offer.instance_type == instance_type
    }


def _offer(price: NegotiatedPrice, instance: InstanceType, today: date, flag: str) -> Offer:
    return Offer(
        id=f"{price.provider}/{price.instance_type}/{price.region}/{price.purchase_option}",
        provider=price.provider,
        instance_type=price.instance_type,
        accelerator_key=instance.accelerator_key,
        gpu_count=instance.gpu_count,
        region=price.region,
        country=price.country,
        purchase_option=price.purchase_option,
        price_usd_per_node_hour=max(price.usd_per_node_hour, _LEAST),
        as_of=_as_of(price, today),
        flags=(flag,),
        source=price.source,
        age_limit_days=CONTRACT_AGE_DAYS,
        available_nodes=price.available_nodes,
    )


def _as_of(price: NegotiatedPrice, today: date) -> date:
    """A price with a last day is a promise: as of today. One without is as old as the agreement."""
    return today if price.validity.last is not None else min(price.agreed_on, today)


Dated = TypeVar("Dated", DiscountRule, NegotiatedPrice)


def _latest_last(rules: Iterable[Dated]) -> list[Dated]:
    return sorted(rules, key=lambda rule: rule.validity.first or date.min)


def _by_provider(rules: Iterable[DiscountRule]) -> dict[str, list[DiscountRule]]:
    """Rules by provider, the one that began last first."""
    found: dict[str, list[DiscountRule]] = {}
    for rule in _latest_last(rules):
        found.setdefault(rule.provider, []).insert(0, rule)
    return found


def _by_rental(prices: Iterable[NegotiatedPrice]) -> Prices:
    found: Prices = {}
    for price in _latest_last(prices):
        key = (price.provider, price.instance_type, price.purchase_option)
        found.setdefault(key, {})[price.region] = price
    return found
