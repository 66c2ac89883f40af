"""A snapshot as the page template prints it: every number and word already in its language.

The template only places texts. They reach it as JSON strings, so nothing anybody typed is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from planner.documents.annex import annex
from planner.documents.notes import notes
from planner.documents.snapshot import Party, QuoteSnapshot
from planner.documents.wording import Wording
from planner.engine.quote_math import CATEGORIES, DISCOUNT, Amounts, Line

COLORS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6a00", "#8a9298", "#004d73")
"""Okabe-Ito, in the order of the categories."""
DUE: Final = ("once", "monthly", "term")


def printed(snapshot: QuoteSnapshot, words: Wording) -> dict[str, Any]:
    """Everything the template needs."""
    term = words.months(snapshot.months)
    kind = words.say("quotation")
    return {
        "lang": words.language,
        "document_title": " ".join(part for part in (kind, snapshot.number, snapshot.title) if part),
        "kind": kind,
        "title": snapshot.title,
        "draft": words.say("draft") if snapshot.is_draft else "",
        "head": _head(snapshot, words),
        "seller": _party(words.say("seller"), snapshot.seller, words),
        "buyer": _party(words.say("buyer"), snapshot.buyer, words),
        "sums": _sums(snapshot, words, term),
        "picture": _picture(snapshot, words, term),
        "table": _table(snapshot, words),
        "notes_title": words.say("notes.title"),
        "notes": notes(snapshot, words),
        "acceptance": _acceptance(snapshot, words),
        "annex": annex(snapshot.plan, words) if snapshot.plan else None,
        "footer": " · ".join(
            part for part in (snapshot.seller.name, f"{kind} {snapshot.number}".strip(), snapshot.title) if part
        ),
        "page": words.say("page", page="{page}", pages="{pages}"),
    }


def columns(snapshot: QuoteSnapshot) -> tuple[str, ...]:
    """Which amounts are printed: one-time and monthly only where some line has them."""
    once = any(line.once is None or line.once for line in snapshot.lines)
    monthly = any(line.monthly is None or line.monthly for line in snapshot.lines)
    if not monthly:
        return ("once",)
    return DUE if once else ("monthly", "term")


def line_label(line: Line, words: Wording) -> str:
    """What a line is called: as its writer named it, else its category."""
    return words.item(line.label) or words.name("category", line.category)


def column_label(name: str, months: int, words: Wording) -> str:
    """The heading of an amount column."""
    if name == "term":
        return words.say("due_term.one" if months == 1 else "due_term", n=months)
    return words.say(f"due_{name}")


def _head(snapshot: QuoteSnapshot, words: Wording) -> list[list[str]]:
    rows = [
        ("number", snapshot.number),
        ("date", words.day(snapshot.issued_on or snapshot.made_at.date())),
        ("valid_until", words.day(snapshot.valid_until) if snapshot.valid_until else ""),
        ("supersedes", snapshot.supersedes),
        ("currency", words.currency(snapshot.currency)),
        ("term", words.months(snapshot.months)),
    ]
    return [[words.say(code), value] for code, value in rows if value]


def _party(label: str, party: Party, words: Wording) -> dict[str, Any]:
    labelled = [
        (code, value)
        for code, value in (
            ("tax_id", party.tax_id),
            ("contact", party.contact),
            ("email", party.email),
            ("reference", party.reference),
        )
        if value
    ]
    return {
        "label": label,
        "name": party.name,
        "lines": [*party.address.splitlines(), *(f"{words.say(code)}: {value}" for code, value in labelled)],
    }


def _sums(snapshot: QuoteSnapshot, words: Wording, term: str) -> dict[str, Any]:
    taxed = "taxed" if snapshot.tax else "untaxed"
    parts = [
        [column_label(name, snapshot.months, words), words.money(getattr(snapshot.total, name), snapshot.currency)]
        for name in columns(snapshot)
        if name != "term"
    ]
    return {
        "label": words.say(f"total_term.{taxed}", term=term),
        "total": words.money(snapshot.total.term, snapshot.currency),
        "parts": parts if len(columns(snapshot)) > 1 else [],
    }


def _picture(snapshot: QuoteSnapshot, words: Wording, term: str) -> dict[str, Any] | None:
    """The net total by category as one bar; none where an amount isn't known or there are no two parts."""
    if snapshot.net.term is None:
        return None
    sums = {
        category: sum((line.term or Decimal(0) for line in snapshot.lines if line.category == category), Decimal(0))
        for category in CATEGORIES
        if category != "tax"
    }
    discount = -sums.pop(DISCOUNT)
    whole = sum(sums.values(), Decimal(0))
    if whole <= 0:
        return None
    parts = [
        {
            "label": words.name("category", category),
            "amount": words.money(amount, snapshot.currency),
            "share": float(amount / whole),
            "share_text": words.share(float(amount / whole)),
            "color": color,
        }
        for (category, amount), color in zip(sums.items(), COLORS, strict=True)
        if amount > 0
    ]
    if len(parts) < 2:
        return None
    code = "picture.caption.discounted" if discount else "picture.caption"
    return {
        "title": words.say("picture.title"),
        "caption": words.say(
            code,
            amount=words.money(whole, snapshot.currency),
            discount=words.money(discount, snapshot.currency),
            term=term,
        ),
        "alt": words.say(
            "picture.alt", term=term, parts=", ".join(f"{part['label']} {part['share_text']}" for part in parts)
        ),
        "parts": parts,
    }


def _table(snapshot: QuoteSnapshot, words: Wording) -> dict[str, Any]:
    shown = columns(snapshot)
    taxed = ".taxed" if snapshot.tax else ""
    unknown = [str(n) for n, line in enumerate(snapshot.lines, start=1) if line.percent is None and line.term is None]
    return {
        "title": words.say("lines.title"),
        "caption": words.say(f"lines.caption{taxed}", currency=words.currency(snapshot.currency)),
        "columns": [
            words.say("col.number"),
            words.say("col.item"),
            words.say("col.quantity"),
            words.say("col.unit_price"),
            *(column_label(name, snapshot.months, words) for name in shown),
        ],
        "groups": list(_groups(snapshot, words, shown)),
        "net": [words.say("net"), *_amounts(snapshot.net, shown, snapshot, words)] if snapshot.tax else None,
        "tax": [
            [line_label(line, words), percentage(line, snapshot, words), *_amounts(line, shown, snapshot, words)]
            for line in snapshot.lines
            if line.category == "tax"
        ],
        "total": [words.say(f"total{taxed}"), *_amounts(snapshot.total, shown, snapshot, words)],
        "unknown": words.say("unknown.note", lines=", ".join(unknown)) if unknown else "",
    }


def _groups(snapshot: QuoteSnapshot, words: Wording, shown: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Lines under their category's name, numbered through."""
    numbered = [(n, line) for n, line in enumerate(snapshot.lines, start=1) if line.category != "tax"]
    for category in CATEGORIES:
        members = [(n, line) for n, line in numbered if line.category == category]
        if members:
            yield {
                "title": words.name("category", category),
                "rows": [_row(n, line, snapshot, words, shown) for n, line in members],
                "subtotal": _subtotal([line for _n, line in members], snapshot, words, shown),
            }


def _subtotal(lines: Sequence[Line], snapshot: QuoteSnapshot, words: Wording, shown: Sequence[str]) -> list[str] | None:
    """The sum of a category of several lines."""
    if len(lines) < 2:
        return None
    columns = [[getattr(line, name) for line in lines] for name in shown]
    sums = [None if None in amounts else sum(amounts, Decimal(0)) for amounts in columns]
    return [words.say("subtotal"), *(_shown(amount, snapshot, words) for amount in sums)]


def _row(n: int, line: Line, snapshot: QuoteSnapshot, words: Wording, shown: Sequence[str]) -> dict[str, Any]:
    if line.percent is None:
        quantity = words.say("unknown") if line.quantity is None else words.exact(line.quantity)
        price = (
            words.say("unknown")
            if line.unit_price is None
            else words.exact(line.unit_price, snapshot.currency.minor_digits)
        )
        unit, base = words.name("unit", line.unit), ""
    else:
        quantity, price, unit, base = "", "", "", percentage(line, snapshot, words)
    source = words.say("source", source=words.item(line.source)) if line.source else ""
    return {
        "number": str(n),
        "label": line_label(line, words),
        "notes": [text for text in (base, words.item(line.detail), source) if text],
        "quantity": quantity,
        "unit": unit,
        "price": price,
        "amounts": [_shown(getattr(line, name), snapshot, words) for name in shown],
        "unknown": line.term is None,
    }


def _shown(amount: Decimal | None, snapshot: QuoteSnapshot, words: Wording) -> str:
    """An amount inside the table, where nothing is a dash."""
    return words.nothing if amount == 0 else words.amount(amount, snapshot.currency)


def percentage(line: Line, snapshot: QuoteSnapshot, words: Wording) -> str:
    """What a share or a tax is of: ``12 % of 11/12 of the net price``."""
    percent = words.percent(line.percent or Decimal(0))
    tax = snapshot.tax
    if line.category == "tax" and tax is not None:
        if tax.base_numerator == tax.base_denominator:
            return words.say("percent_of.net", percent=percent)
        return words.say(
            "percent_of.part", percent=percent, numerator=tax.base_numerator, denominator=tax.base_denominator
        )
    if not line.of:
        return words.say("percent_of.all", percent=percent)
    names = words.listed([words.name("category", category).lower() for category in line.of])
    return words.say("percent_of", percent=percent, categories=names)


def _amounts(sums: Line | Amounts, shown: Sequence[str], snapshot: QuoteSnapshot, words: Wording) -> list[str]:
    return [words.amount(getattr(sums, name), snapshot.currency) for name in shown]


def _acceptance(snapshot: QuoteSnapshot, words: Wording) -> dict[str, Any] | None:
    if snapshot.is_draft:
        return None
    return {
        "title": words.say("acceptance.title"),
        "text": words.say("acceptance.text"),
        "sides": [words.say("acceptance.for", name=party.name) for party in (snapshot.seller, snapshot.buyer)],
        "rows": [words.say(f"acceptance.{code}") for code in ("name", "date", "signature")],
    }
