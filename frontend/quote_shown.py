"""A quote's lines and sums as its page shows them: the same numbers as the documents'."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from frontend import quote_words
from planner.documents.printed import columns, line_label, percentage
from planner.documents.snapshot import QuoteSnapshot
from planner.documents.wording import Wording
from planner.engine.quote_math import Amounts, Line


def shown_quote(snapshot: QuoteSnapshot, in_words: Wording) -> dict[str, Any]:
    """The lines and sums as a page shows them: the same numbers as the documents'."""
    shown = columns(snapshot)
    head = {"once": _("Once"), "monthly": _("A month"), "term": in_words.months(snapshot.months)}

    def amounts(sums: Line | Amounts) -> list[tuple[str, str]]:
        """Each amount with its column's name: where there is no room for columns it stands beside it."""
        return [(head[name], in_words.amount(getattr(sums, name), snapshot.currency)) for name in shown]

    def row(line: Line) -> dict[str, Any]:
        return {
            "label": line_label(line, in_words),
            "category": quote_words.quote_category(line.category),
            "detail": " · ".join(part for part in _notes(line, snapshot, in_words) if part),
            "quantity": "" if line.quantity is None else in_words.exact(line.quantity),
            "unit": quote_words.quote_unit(line.unit) if line.unit else "",
            "price": "" if line.unit_price is None else in_words.exact(line.unit_price, snapshot.currency.minor_digits),
            "amounts": amounts(line),
            "unknown": line.term is None,
        }

    return {
        "currency": snapshot.currency.code,
        "columns": [head[name] for name in shown],
        "lines": [row(line) for line in snapshot.lines if line.category != "tax"],
        "tax_lines": [row(line) for line in snapshot.lines if line.category == "tax"],
        "net": amounts(snapshot.net) if snapshot.tax else None,
        "total": amounts(snapshot.total),
        "headline": in_words.money(snapshot.total.term, snapshot.currency),
        "term": in_words.months(snapshot.months),
        "is_taxed": snapshot.tax is not None,
        "is_known": snapshot.total.term is not None,
        "buyer": snapshot.buyer.name,
        "valid_until": snapshot.valid_until,
        "fx": [
            f"1 {rate.base} = {in_words.exact(rate.rate)} {rate.quote}, {rate.rate_date.isoformat()}, {rate.source}"
            for rate in snapshot.fx
        ],
        "plan": snapshot.plan,
    }


def _notes(line: Line, snapshot: QuoteSnapshot, in_words: Wording) -> tuple[str, ...]:
    """What stands under a line's name: what a percentage is of, and what its writer or the plan says."""
    base = "" if line.percent is None else percentage(line, snapshot, in_words)
    return (base,) if line.category == "tax" else (base, in_words.item(line.detail), in_words.item(line.source))
