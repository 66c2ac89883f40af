"""Quotes in pages: the list, the draft's form beside what it comes to, the issued quote and its files."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from catalog.models import TaxRule
from frontend import quote_words
from frontend.forms import allowed_text, error_text
from frontend.once import made_once
from frontend.quote_form import QuoteForm, build_quote_form, posted_terms, unclear_numbers
from frontend.quote_rows import edit_rows, of_filled_rows
from frontend.quote_shown import shown_quote
from frontend.views.guard import organization_page
from frontend.views.shared import NEW_LINK, new_link
from planner.documents.wording import wording
from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import SHOWN_STATUSES, Quote, QuoteStatus, ShareLink
from planner.selectors import quotes as read
from planner.selectors import scenarios as read_scenarios
from planner.selectors.scope import Scope
from planner.services import quote_files, quotes
from planner.services.quote_import import MOST_BYTES, import_lines
from planner.services.quote_plan import suggested_items
from planner.services.share_links import revoke_link
from planner.services.tenancy import lock

PAGE_SIZE = 50


@organization_page("planner.view_quote")
@require_safe
def quote_list(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The organization's quotes, the newest first."""
    status, today = request.GET.get("status", ""), timezone.localdate()
    rows = read.quotes(scope)
    if status in SHOWN_STATUSES:
        rows = rows.filter(read.with_status(status, today))
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "scope": scope,
        "tab": "quotes",
        "page": page,
        "lines": [_listed(quote) for quote in page.object_list],
        "statuses": [(code, quote_words.quote_status(code)) for code in SHOWN_STATUSES],
        "status": status,
        "can_change": scope.allows("planner.change_quote"),
    }
    return render(request, "frontend/quote/list.html", context)


@organization_page("planner.change_quote")
@require_POST
def new_quote(request: HttpRequest, scope: Scope) -> HttpResponse:
    """A draft, from a scenario where one is named."""
    version = None
    named = request.POST.get("scenario", "")
    if named:
        version = read_scenarios.version_of(read_scenarios.scenario(scope, _uuid(named)))
    terms = {"language": quote_words.document_language()}
    made = made_once(
        request,
        f"new-quote:{scope.organization.pk}",
        lambda: quotes.create_quote(scope=scope, version=version, terms=terms).uuid,
        lambda uuid: scope.rows(Quote).filter(uuid=uuid).exists(),
    )
    return redirect("quote", slug=scope.organization.slug, uuid=made)


@organization_page("planner.view_quote")
@require_http_methods(["GET", "HEAD", "POST"])
def quote_page(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """One quote: a draft's form for who may change it, else what it says."""
    quote = read.quote(scope, uuid)
    if request.method == "POST":
        return _change(request, scope, quote)
    return _page(request, scope, quote)


@organization_page("planner.change_quote")
@require_POST
def act(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Accept an issued quote, revise it, make or revoke a link to it; or drop a draft."""
    quote = read.quote(scope, uuid)
    match request.POST.get("action", ""):
        case "accept":
            quotes.accept_quote(scope=scope, quote=quote)
            messages.success(request, _("Accepted."))
        case "revise":
            quote = quotes.revise_quote(scope=scope, quote=quote)
        case "share":
            _share(request, scope, quote)
        case "revoke":
            revoke_link(scope=scope, link=scope.get_in(ShareLink, _uuid(request.POST.get("link", "")), quote=quote))
            messages.success(request, _("The link finds nothing from now on."))
        case "delete":
            quotes.delete_draft(scope=scope, quote=quote)
            messages.success(request, _("The draft is gone."))
            return redirect("quotes", slug=scope.organization.slug)
        case _:
            raise Http404
    return redirect("quote", slug=scope.organization.slug, uuid=quote.uuid)


def _share(request: HttpRequest, scope: Scope, quote: Quote) -> None:
    try:
        made_once(
            request,
            f"quote-link:{quote.pk}",
            lambda: new_link(request, scope, quote),
            lambda uuid: scope.rows(ShareLink).filter(uuid=uuid).exists(),
        )
    except InvalidQuestion as invalid:
        for error in invalid.errors:
            messages.error(request, f"{error_text(error)} {allowed_text(error)}")


@organization_page("planner.view_quote")
@require_safe
def document(request: HttpRequest, scope: Scope, uuid: UUID, form: str) -> HttpResponse:
    """The quote as a file."""
    quote = read.quote(scope, uuid)
    language = request.GET.get("language", "")
    if form not in quote_files.FORMATS or language not in ("", "en", "id"):
        raise Http404
    data = quote_files.export_quote(scope=scope, quote=quote, form=form, language=language)
    response = HttpResponse(data, content_type=quote_files.FORMATS[form])
    response["Content-Disposition"] = f'attachment; filename="{quote_files.file_name(quote, form)}"'
    response["Cache-Control"] = "private, no-store"
    return response


@organization_page("planner.change_quote")
@require_POST
def import_csv(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Replace a draft's lines by a table."""
    quote = read.quote(scope, uuid)
    file = request.FILES.get("file")
    try:
        import_lines(scope=scope, quote=quote, data=file.read(MOST_BYTES + 1) if file else b"")
    except InvalidQuestion as invalid:
        return _page(request, scope, quote, file_errors=invalid.errors, status=400)
    messages.success(request, _("The lines are those of the file."))
    return redirect("quote", slug=scope.organization.slug, uuid=uuid)


def _change(request: HttpRequest, scope: Scope, quote: Quote) -> HttpResponse:
    """Save the form, with a row added or taken out where a button asks for that, and issue where asked."""
    terms = posted_terms(request.POST.dict())
    action, _sep, what = request.POST.get("action", "save").partition(":")
    try:
        with transaction.atomic():
            # Nobody else's change fits between the look at the draft and its change.
            lock(scope.organization)
            quote = read.quote(scope, quote.uuid)
            seen = request.POST.get("seen", "")
            if seen and seen != _state(quote):
                return _page(request, scope, quote, terms=terms, errors=[_changed_meanwhile()], status=409)
            edit_rows(terms, action, what, quote.scenario_version, _own_language(quote))
            if unclear := unclear_numbers(terms):
                return _page(request, scope, quote, terms=terms, errors=unclear, status=400)
            quote = quotes.change_quote(scope=scope, quote=quote, changes=terms)
        if action == "issue":
            quote = quotes.issue_quote(scope=scope, quote=quote)
            messages.success(request, _("Issued as %(number)s.") % {"number": quote.number})
    except InvalidQuestion as invalid:
        errors = of_filled_rows(invalid.errors, terms) if action == "add" else invalid.errors
        return _page(request, scope, quote, terms=terms, errors=errors, status=400 if errors else 200)
    return redirect("quote", slug=scope.organization.slug, uuid=quote.uuid)


def _changed_meanwhile() -> FieldError:
    """What was typed stays in the form; saved once more, it takes the place of what there is now."""
    return FieldError(
        field="",
        value=None,
        message="Somebody has changed this draft meanwhile: what it says now stands above.",
        allowed="look, and save again to write over it",
    )


def _state(quote: Quote) -> str:
    """Another one after every change of the row."""
    return quote.updated_at.isoformat()


def _page(
    request: HttpRequest,
    scope: Scope,
    quote: Quote,
    *,
    terms: dict[str, Any] | None = None,
    errors: Sequence[FieldError] = (),
    file_errors: Sequence[FieldError] = (),
    status: int = 200,
) -> HttpResponse:
    draft = quotes.priced(quote, timezone.now() if quote.is_draft else None)
    can_change = scope.allows("planner.change_quote")
    form: QuoteForm | None = None
    if quote.is_draft and can_change:
        countries = sorted(set(TaxRule.objects.filter(retired=False).values_list("country", flat=True)))
        form = build_quote_form(terms if terms is not None else quote.terms, errors, countries)
    in_words = wording(quote_words.document_language())
    state = quote.shown_status(timezone.localdate())
    context = {
        "scope": scope,
        "tab": "quotes",
        "quote": quote,
        "form": form,
        "has_errors": bool(errors),
        "is_unsaved": terms is not None,
        "seen": _state(quote),
        "file_errors": [f"{error_text(error)} {allowed_text(error)}" for error in file_errors],
        "state": quote_words.quote_status(state),
        "is_open": state == QuoteStatus.ISSUED,
        "links": read.links_to(scope, quote) if can_change and not quote.is_draft else (),
        "new_link": request.session.pop(NEW_LINK, "") if can_change and not quote.is_draft else "",
        "can_change": can_change,
        "shown": shown_quote(draft.snapshot, in_words),
        "problems": [f"{error_text(error)} {allowed_text(error)}" for error in draft.problems],
        "warnings": [error_text(error) for error in draft.warnings],
        "suggestions": _suggestions(quote) if form else (),
        "formats": [
            *(("pdf", code, f"PDF {code.upper()}") for code in ("en", "id")),
            ("xlsx", "", "XLSX"),
            ("csv", "", "CSV"),
            ("json", "", "JSON"),
        ],
    }
    return render(request, "frontend/quote/quote.html", context, status=status)


def _suggestions(quote: Quote) -> list[tuple[int, str]]:
    """Lines that such a plan usually has and this quote has not."""
    if quote.scenario_version is None:
        return []
    in_words = wording(_own_language(quote))
    named = {in_words.item(item["label"]) for item in quote.terms.get("items", [])}
    return [
        (place, item.label)
        for place, item in enumerate(suggested_items(quote.scenario_version, _own_language(quote)))
        if item.label not in named
    ]


def _own_language(quote: Quote) -> str:
    """The language that the quote itself is written in."""
    return str(quote.terms.get("language") or "en")


def _listed(quote: Quote) -> dict[str, Any]:
    in_words = wording(quote_words.document_language())
    snapshot = quotes.priced(quote, timezone.now() if quote.is_draft else None).snapshot
    return {
        "quote": quote,
        "state": quote_words.quote_status(quote.shown_status(timezone.localdate())),
        "buyer": snapshot.buyer.name,
        "total": in_words.money(snapshot.total.term, snapshot.currency),
        "sort": str(snapshot.total.term or Decimal(0)),
    }


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None
