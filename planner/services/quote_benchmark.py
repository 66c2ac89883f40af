"""The figure of documents: a PDF of sixty lines, from its snapshot to its bytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from planner.documents.pdf import render_pdf
from planner.documents.snapshot import Party, QuoteSnapshot
from planner.engine.money import Currency
from planner.engine.quote_math import PRICED_CATEGORIES, Item, price_quote
from planner.services.figure import Figure

LINES = 60
ROUNDS = 5


def quote_figures() -> Iterator[Figure]:
    """Every figure of quotes."""
    yield Figure(name=f"PDF of a quote of {LINES} lines", value=_pdf_ms(), unit="ms", target=300)


def _pdf_ms() -> float:
    times = []
    snapshot = _snapshot()
    for number in range(ROUNDS):
        # Another text each time, so that the compiler can't answer from memory.
        asked = replace(snapshot, number=f"2026-{number:04d}", title=f"Quote {number}")
        start = time.perf_counter()
        render_pdf(asked)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _snapshot() -> QuoteSnapshot:
    currency = Currency(code="USD", minor_digits=2)
    items = [
        Item(
            id=f"line-{number}",
            category=PRICED_CATEGORIES[number % len(PRICED_CATEGORIES)],
            cadence="monthly",
            quantity=Decimal(number + 1),
            unit="piece",
            unit_price=Decimal("12.34"),
            label=f"Item {number}",
            detail="what it is, in some more words than fit on one line of its column",
            source="list price, read on 2026-11-16",
        )
        for number in range(LINES)
    ]
    priced = price_quote(items, [], None, currency, 12)
    return QuoteSnapshot(
        number="2026-0001",
        title="",
        language="en",
        made_at=datetime(2026, 11, 29, tzinfo=UTC),
        issued_on=date(2026, 11, 29),
        valid_until=date(2026, 12, 29),
        supersedes="",
        seller=Party(name="Seller"),
        buyer=Party(name="Buyer"),
        currency=currency,
        months=12,
        lines=priced.lines,
        net=priced.net,
        tax_total=priced.tax,
        total=priced.total,
        tax=None,
        withholding=None,
        fx=(),
        plan=None,
        assumptions=(),
        exclusions=(),
        terms=(),
    )
