"""Quotes as files: what is exported, noted in the audit log, and how files are called."""

from __future__ import annotations

from planner.documents.pdf import render_pdf
from planner.documents.snapshot import QuoteSnapshot, render_json
from planner.documents.spreadsheet import render_xlsx
from planner.documents.tables import render_csv
from planner.models import Quote
from planner.selectors.scope import Scope
from planner.services.audit import note_export
from planner.services.quotes import priced
from planner.services.tenancy import tenant_write

FORMATS = {
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": "application/json",
}


@tenant_write
def export_quote(*, scope: Scope, quote: Quote, form: str, language: str = "") -> bytes:
    """The quote as a file of one of ``FORMATS``; every export is in the audit log."""
    scope.require("planner.view_quote")
    return render(_exported(scope, quote, form), form, language)


@tenant_write
def transfer_quote(*, scope: Scope, quote: Quote) -> QuoteSnapshot:
    """What the quote says, for a procurement system; noted in the audit log as every export."""
    scope.require("planner.view_quote")
    return _exported(scope, quote, "cart")


def _exported(scope: Scope, quote: Quote, form: str) -> QuoteSnapshot:
    note_export(scope=scope, subject=quote, what=form, number=quote.number or "")
    return priced(quote).snapshot


def render(snapshot: QuoteSnapshot, form: str, language: str = "") -> bytes:
    """A snapshot as a file; raises ``KeyError`` for an unknown form."""
    return {
        "pdf": lambda: render_pdf(snapshot, language),
        "csv": lambda: render_csv(snapshot),
        "xlsx": lambda: render_xlsx(snapshot, language),
        "json": lambda: render_json(snapshot),
    }[form]()


def file_name(quote: Quote, form: str) -> str:
    """What a downloaded file is called."""
    return f"quote-{quote.number or f'draft-{str(quote.uuid)[:8]}'}.{form}"
