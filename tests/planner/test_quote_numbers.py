"""Quote numbers under concurrency: eight clients, two hundred quotes, no gap and none twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from planner.engine.errors import InvalidQuestion
from planner.models import Quote, QuoteCounter
from planner.selectors.scope import Scope
from planner.services.idempotency import create_once
from planner.services.quotes import create_quote
from tests.planner.organizations import Tenant
from tests.planner.quote_terms import ITEM, TERMS

CLIENTS, QUOTES, REFUSED = 8, 200, 20

# Named apps let the tables be emptied with what points at them: the audit log's own, unused table does.
pytestmark = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)


@pytest.fixture
def clients() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        yield pool


def issue(scope: Scope, number: int) -> UUID | None:
    terms = TERMS if number >= REFUSED else TERMS | {"items": [ITEM | {"unit_price": None}]}
    try:
        return create_quote(scope=scope, terms=terms, issue=True).uuid
    except InvalidQuestion:
        return None
    finally:
        connection.close()


def test_numbers_have_no_gap_and_none_is_given_twice(tenant: Tenant, clients: ThreadPoolExecutor) -> None:
    scope = tenant.scope()
    made = list(clients.map(lambda number: issue(scope, number), range(QUOTES + REFUSED)))
    assert made.count(None) == REFUSED
    sequences = Quote.objects.filter(organization=tenant.organization).order_by("sequence")
    assert list(sequences.values_list("sequence", flat=True)) == list(range(1, QUOTES + 1))
    assert QuoteCounter.objects.get().last == QUOTES


def test_the_same_key_makes_one_quote(tenant: Tenant, clients: ThreadPoolExecutor) -> None:
    scope = tenant.scope()
    keys = [str(uuid4()) for _ in range(10)]

    def post(key: str) -> UUID:
        try:
            return create_once(
                scope=f"quotes:{scope.organization.uuid}",
                key=key,
                request=TERMS,
                create=lambda: create_quote(scope=scope, terms=TERMS, issue=True).uuid,
            )[0]
        finally:
            connection.close()

    made = list(clients.map(post, keys * 4))
    assert made == made[:10] * 4
    year = timezone.localdate().year
    numbers = Quote.objects.order_by("sequence").values_list("number", flat=True)
    assert list(numbers) == [f"{year}-{sequence:04d}" for sequence in range(1, 11)]
