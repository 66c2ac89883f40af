"""One entry of a price book: added, written anew, removed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from frontend.entry import Entry, build_entry, posted
from frontend.once import made_once
from frontend.price_book_kinds import KINDS, EntryKind, given_of, listed_for
from frontend.typed_numbers import read_form
from frontend.views.guard import needs_catalog, organization_page
from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import PriceBook
from planner.models.pricebook import PriceBookRow
from planner.selectors.scope import Scope
from planner.services.price_books import add_entry, change_entry, remove_entry

CHANGE = "planner.change_price_book"


@organization_page(CHANGE)
@needs_catalog
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest, scope: Scope, uuid: UUID, kind: str) -> HttpResponse:
    """The form of a new entry, and its answer."""
    this, book = KINDS[kind], scope.get(PriceBook, uuid)
    return _form(request, scope, book, this, None, {}, partial(add_entry, book=book))


@organization_page(CHANGE)
@needs_catalog
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, scope: Scope, uuid: UUID, kind: str, entry: UUID) -> HttpResponse:
    """An entry in its form, and its answer."""
    this, book = KINDS[kind], scope.get(PriceBook, uuid)
    row = scope.get_in(this.model, entry, price_book=book)
    return _form(request, scope, book, this, row, given_of(this, row), partial(change_entry, entry=row))


def _form(
    request: HttpRequest,
    scope: Scope,
    book: PriceBook,
    this: EntryKind,
    row: PriceBookRow | None,
    shown: dict[str, Any],
    keep: Callable[..., PriceBookRow],
) -> HttpResponse:
    """The form with what is ``shown`` in it; what was posted is kept, or comes back with its faults."""
    if request.method != "POST":
        return _page(request, scope, book, this, row, _entry(this, scope, book, shown))
    given = posted(request.POST, this.input_type)
    try:
        values: Any = read_form(this.input_type, given)
        if row is not None:
            keep(scope=scope, values=values)
        else:
            made_once(
                request,
                f"price-book-entry:{book.pk}",
                lambda: keep(scope=scope, values=values).uuid,
                lambda uuid: scope.rows(this.model).filter(uuid=uuid).exists(),
            )
    except InvalidQuestion as invalid:
        return _page(request, scope, book, this, row, _entry(this, scope, book, given, invalid.errors), status=400)
    messages.success(request, _("Saved."))
    return redirect("price-book", slug=scope.organization.slug, uuid=book.uuid)


@organization_page(CHANGE)
@require_POST
def remove(request: HttpRequest, scope: Scope, uuid: UUID, kind: str, entry: UUID) -> HttpResponse:
    """Take an entry out of its book."""
    book = scope.get(PriceBook, uuid)
    remove_entry(scope=scope, entry=scope.get_in(KINDS[kind].model, entry, price_book=book))
    messages.success(request, _("Removed."))
    return redirect("price-book", slug=scope.organization.slug, uuid=uuid)


def _entry(
    kind: EntryKind, scope: Scope, book: PriceBook, given: dict[str, Any], errors: list[FieldError] | None = None
) -> Entry:
    return build_entry(kind.input_type, given, errors or (), listed=listed_for(kind, scope, book), order=kind.order)


def _page(
    request: HttpRequest,
    scope: Scope,
    book: PriceBook,
    kind: EntryKind,
    row: PriceBookRow | None,
    entry: Entry,
    status: int = 200,
) -> HttpResponse:
    context = {"scope": scope, "tab": "price-books", "book": book, "kind": kind, "row": row, "entry": entry}
    return render(request, "frontend/organization/price_book_entry.html", context, status=status)
