"""Who waits for whom: an organization's lock keeps out others that lock it, and nobody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection, transaction

from planner.services.price_book_inputs import PriceBookInput
from planner.services.price_books import create_price_book
from planner.services.quotes import create_quote
from planner.services.tenancy import lock
from tests.planner.organizations import Tenant
from tests.planner.quote_terms import TERMS

pytestmark = [
    pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers all wait for each other"),
]


def test_rows_are_added_while_the_organization_is_locked(tenant: Tenant) -> None:
    """A draft that is changed on a condition holds the lock and waits for the quote; who issues one holds the quote."""
    scope = tenant.scope()

    def issue() -> UUID:
        try:
            return create_quote(scope=scope, terms=TERMS, issue=True).uuid
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        lock(tenant.organization)
        assert pool.submit(issue).result(timeout=30)


def test_what_counts_rows_waits_for_the_lock(tenant: Tenant) -> None:
    scope = tenant.scope()

    def begin_book() -> None:
        try:
            create_price_book(scope=scope, values=PriceBookInput(name="Contract"))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lock(tenant.organization)
            waiting = pool.submit(begin_book)
            with pytest.raises(TooLate):
                waiting.result(timeout=0.5)
        waiting.result(timeout=30)
