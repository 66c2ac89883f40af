"""Price books: which there are, what is in one, the one that plans use; files and exchange rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.entry import Entry, build_entry, posted
from frontend.forms import allowed_text, error_text
from frontend.once import made_once
from frontend.price_book_kinds import KINDS, term_text
from frontend.typed_numbers import read_form
from frontend.views.guard import needs_catalog, organization_page
from planner.engine.errors import InvalidQuestion
from planner.models import ExchangeRate, PriceBook, PriceBookFile
from planner.selectors.price_books import price_book_values
from planner.selectors.scope import Scope
from planner.services import price_books as services
from planner.services.price_book_files import MOST_BYTES, TYPES, attach_file, download_file, remove_file
from planner.services.price_book_inputs import ExchangeRateInput, PriceBookInput

VIEW, CHANGE = "planner.view_price_book", "planner.change_price_book"
BOOK_FIELDS = ("name", "markup_percent", "notes")
RATE_FIELDS = ("base", "rate", "quote", "rate_date", "source")


@organization_page(VIEW)
@needs_catalog
@require_http_methods(["GET", "HEAD", "POST"])
def price_books(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The price books, and a form for a new one."""
    if request.method != "POST":
        return _list_page(request, scope, build_entry(PriceBookInput, {}))
    given = posted(request.POST, PriceBookInput)
    try:
        book = made_once(
            request,
            f"price-book:{scope.organization.pk}",
            lambda: services.create_price_book(scope=scope, values=read_form(PriceBookInput, given)).uuid,
            lambda uuid: scope.rows(PriceBook).filter(uuid=uuid).exists(),
        )
    except InvalidQuestion as invalid:
        return _list_page(request, scope, build_entry(PriceBookInput, given, invalid.errors), status=400)
    return redirect("price-book", slug=scope.organization.slug, uuid=book)


def _list_page(request: HttpRequest, scope: Scope, entry: Entry, status: int = 200) -> HttpResponse:
    context = {
        "scope": scope,
        "tab": "price-books",
        "books": scope.rows(PriceBook),
        "can_change": scope.allows(CHANGE),
        "entry": entry,
    }
    return render(request, "frontend/organization/price_books.html", context, status=status)


@organization_page(VIEW)
@needs_catalog
@require_http_methods(["GET", "HEAD", "POST"])
def price_book(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """All that is in a book; its own name and mark-up can be written anew."""
    book = scope.get(PriceBook, uuid)
    if request.method != "POST":
        return _book_page(request, scope, book, build_entry(PriceBookInput, _given(book)))
    given = posted(request.POST, PriceBookInput)
    try:
        services.change_price_book(scope=scope, book=book, values=read_form(PriceBookInput, given))
    except InvalidQuestion as invalid:
        return _book_page(request, scope, book, build_entry(PriceBookInput, given, invalid.errors), status=400)
    messages.success(request, _("Saved."))
    return redirect("price-book", slug=scope.organization.slug, uuid=uuid)


def _given(book: PriceBook) -> dict[str, Any]:
    return {name: getattr(book, name) for name in BOOK_FIELDS}


def _book_page(
    request: HttpRequest, scope: Scope, book: PriceBook, entry: Entry, *, status: int = 200, file_error: str = ""
) -> HttpResponse:
    unpriced = {row.uuid for row in price_book_values(book, timezone.localdate()).unpriced}
    sections = []
    for kind in KINDS.values():
        rows = list(scope.rows(kind.model).filter(price_book=book).select_related("attachment"))
        lines = [
            {"row": row, "cells": kind.columns(row), "term": term_text(row), "is_unpriced": row.uuid in unpriced}
            for row in rows
        ]
        sections.append(
            {"kind": kind, "lines": lines, "names": [name for name, _cell in kind.columns(rows[0])] if rows else []}
        )
    context = {
        "scope": scope,
        "tab": "price-books",
        "book": book,
        "sections": sections,
        "files": book.files.defer("content"),
        "file_error": file_error,
        "file_types": ", ".join(TYPES),
        "accept": ",".join(TYPES),
        "can_change": scope.allows(CHANGE),
        "entry": entry,
    }
    return render(request, "frontend/organization/price_book.html", context, status=status)


def _changes_book(change: Callable[[Scope, PriceBook], None], done: str) -> Any:
    """A view that does one thing to a book and returns to it."""

    @organization_page(CHANGE)
    @require_POST
    def view(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
        change(scope, scope.get(PriceBook, uuid))
        messages.success(request, _(done))
        return redirect("price-books", slug=scope.organization.slug)

    return view


use = _changes_book(lambda scope, book: services.use_price_book(scope=scope, book=book), "Saved.")
delete = _changes_book(lambda scope, book: services.delete_price_book(scope=scope, book=book), "Deleted.")


@organization_page(CHANGE)
@require_POST
def use_list_prices(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Let plans use no price book."""
    services.use_price_book(scope=scope, book=None)
    messages.success(request, _("Saved."))
    return redirect("price-books", slug=scope.organization.slug)


@organization_page(CHANGE)
@needs_catalog
@require_POST
def upload(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Keep a file with the book."""
    book, given = scope.get(PriceBook, uuid), request.FILES.get("file")
    try:
        if given is None:
            return _refused_file(request, scope, book, _("Choose a file."))
        # A file too large is not read; its first bytes are enough to refuse it.
        attach_file(scope=scope, book=book, name=given.name or "", content=given.read(MOST_BYTES + 1))
    except InvalidQuestion as invalid:
        error = invalid.errors[0]
        return _refused_file(request, scope, book, f"{error_text(error)} {allowed_text(error)}")
    messages.success(request, _("Saved."))
    return redirect("price-book", slug=scope.organization.slug, uuid=uuid)


def _refused_file(request: HttpRequest, scope: Scope, book: PriceBook, message: str) -> HttpResponse:
    entry = build_entry(PriceBookInput, _given(book))
    return _book_page(request, scope, book, entry, status=400, file_error=message)


@organization_page(VIEW)
@require_safe
def download(request: HttpRequest, scope: Scope, uuid: UUID, file: UUID) -> HttpResponse:
    """A file, to be saved: never shown as a page of this site."""
    row = scope.get_in(PriceBookFile, file, price_book=scope.get(PriceBook, uuid))
    response = HttpResponse(download_file(scope=scope, file=row), content_type="application/octet-stream")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(row.name)}"
    response["Cache-Control"] = "private, no-store"
    return response


@organization_page(CHANGE)
@require_POST
def delete_file(request: HttpRequest, scope: Scope, uuid: UUID, file: UUID) -> HttpResponse:
    """Delete a file."""
    remove_file(scope=scope, file=scope.get_in(PriceBookFile, file, price_book=scope.get(PriceBook, uuid)))
    messages.success(request, _("Deleted."))
    return redirect("price-book", slug=scope.organization.slug, uuid=uuid)


@organization_page(VIEW)
@needs_catalog
@require_http_methods(["GET", "HEAD", "POST"])
def exchange_rates(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The organization's own rates, and a form for one more."""
    entry, status = build_entry(ExchangeRateInput, {"quote": "USD"}, order=RATE_FIELDS), 200
    if request.method == "POST":
        given = posted(request.POST, ExchangeRateInput)
        try:
            services.set_exchange_rate(scope=scope, values=read_form(ExchangeRateInput, given))
        except InvalidQuestion as invalid:
            entry, status = build_entry(ExchangeRateInput, given, invalid.errors, order=RATE_FIELDS), 400
        else:
            messages.success(request, _("Saved."))
            return redirect("exchange-rates", slug=scope.organization.slug)
    context = {
        "scope": scope,
        "tab": "price-books",
        "rates": scope.rows(ExchangeRate),
        "can_change": scope.allows(CHANGE),
        "entry": entry,
    }
    return render(request, "frontend/organization/exchange_rates.html", context, status=status)


@organization_page(CHANGE)
@require_POST
def delete_exchange_rate(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Take a rate back."""
    services.remove_exchange_rate(scope=scope, rate=scope.get(ExchangeRate, uuid))
    messages.success(request, _("Deleted."))
    return redirect("exchange-rates", slug=scope.organization.slug)
