"""A contract's price as the contract states it: in its own currency and unit, not by way of the dollar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from planner.engine.cost import HOURLY, quantize
from planner.engine.units import HOURS_PER_MONTH
from planner.models import Commitment, NegotiatedPrice, PriceBook, PrivateInstanceType, ScenarioVersion
from planner.selectors.price_books import exchange_rate, price_book_in_use, usd_per_node_hour
from planner.selectors.scope import Scope
from planner.services.quote_plan import is_contract, option_of
from planner.services.quote_terms import ItemTerms

USD = "USD"


def as_contracted(scope: Scope, version: ScenarioVersion, item: ItemTerms) -> ItemTerms:
    """The compute line ``item`` of a month at the amount of the price book's entry that it is priced by, to the last
    digit; as it is where the entry is in dollars, has tax inside, or is another by now.
    """
    option, book = option_of(version), price_book_in_use(scope)
    if book is None or item.cadence != "monthly" or item.quantity is None or not is_contract(option):
        return item
    cluster = option["cluster"]
    gpus, nodes = Decimal(str(cluster["gpus_per_node"])), item.quantity / HOURS_PER_MONTH
    for row in _entries(book, cluster):
        rate = exchange_rate(scope.organization, row.currency, version.priced_on)
        if row.currency == USD or row.tax_percent or rate is None:
            continue
        if quantize(usd_per_node_hour(row, rate, gpus), HOURLY) == Decimal(option["price"]["usd_per_node_hour"]):
            quantity = {"node_month": nodes, "node_hour": item.quantity, "gpu_hour": item.quantity * gpus}[row.unit]
            price = row.amount.normalize()
            return replace(item, quantity=quantity, unit=row.unit, unit_price=price, currency=row.currency)
    return item


def _entries(book: PriceBook, cluster: dict[str, Any]) -> Iterator[Any]:
    """What the book says of the cluster's nodes, bought that way."""
    same = {"price_book": book, "provider": cluster["provider"], "purchase_option": cluster["purchase_option"]}
    yield from PrivateInstanceType.objects.filter(**same, name=cluster["instance_type"])
    for model in (NegotiatedPrice, Commitment):
        yield from model.objects.filter(**same, instance_type=cluster["instance_type"])
