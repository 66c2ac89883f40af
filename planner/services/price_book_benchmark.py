"""What an organization's own prices cost a plan: figures of docs/performance.md."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from catalog.selectors import catalog_snapshot
from planner.models import Discount, NegotiatedPrice, PriceBook, User
from planner.selectors.price_books import snapshot_for
from planner.selectors.scope import Scope, scope_of
from planner.services.figure import Figure
from planner.services.organizations import create_organization
from planner.services.planning import plan_inference

PRICES = 500
ROUNDS = 5


def price_book_figures(questions: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    """Plans of an organization with ``PRICES`` negotiated prices; nothing of it stays in the database."""
    with transaction.atomic():
        scope = _organization()
        first = _first_snapshot_ms(scope)
        for question in questions:
            plan_inference(question, scope=scope)
        times = [_plan_ms(question, scope) for question in questions for _ in range(ROUNDS)]
        transaction.set_rollback(True)
    name = f"the same with a price book of {PRICES} prices"
    yield Figure(name=name, value=statistics.median(times), unit="ms", target=300)
    yield Figure(name="prices laid over the catalog, once for each version", value=first, unit="ms", target=500)


def _organization() -> Scope:
    user = User.objects.create(username=f"bench-{time.monotonic_ns()}")
    organization = create_organization(user=user, name="Bench")
    scope = scope_of(user=user, organization=organization.uuid)
    book = PriceBook.objects.create(organization=organization, name="Bench", in_use=True)
    Discount.objects.create(organization=organization, price_book=book, percent=Decimal(10))
    offers = catalog_snapshot().offers[:PRICES]
    NegotiatedPrice.objects.bulk_create(
        NegotiatedPrice(
            organization=organization,
            price_book=book,
            provider=offer.provider,
            instance_type=offer.instance_type,
            region=offer.region,
            purchase_option=offer.purchase_option,
            amount=offer.price_usd_per_node_hour,
            currency="USD",
            unit="node_hour",
            agreed_on=date(2026, 1, 1),
        )
        for offer in offers
    )
    return scope


def _first_snapshot_ms(scope: Scope) -> float:
    start = time.perf_counter()
    snapshot_for(scope, timezone.localdate())
    return (time.perf_counter() - start) * 1e3


def _plan_ms(question: Mapping[str, Any], scope: Scope) -> float:
    start = time.perf_counter()
    plan_inference(question, scope=scope)
    return (time.perf_counter() - start) * 1e3
