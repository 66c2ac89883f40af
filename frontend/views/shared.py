"""What a link shows to whoever has it: a scenario's latest plan, or an issued quote; nothing to change."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend import quote_words
from frontend.answers.saved import present_saved
from frontend.quote_shown import shown_quote
from frontend.typed_numbers import whole_number
from planner.documents.wording import wording
from planner.models import Quote, QuoteStatus, Scenario, ShareLink
from planner.selectors.scenarios import shared_link, version_of
from planner.selectors.scope import NotFound, Scope
from planner.services import quote_files, quotes
from planner.services.share_links import create_link, note_use, token_hash

NEW_LINK = "new_link"
"""Where a session keeps an address that is shown once."""


@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Read only; a revoked or late link is as if it had never been."""
    link = _link(token)
    if link.quote is not None:
        return _secret(render(request, "frontend/quote/shared.html", _of_quote(link.quote, token)))
    assert link.scenario is not None  # One of the two, by the table's constraint.
    version = version_of(link.scenario)
    context = {"scenario": version.scenario, "version": version, "answer": present_saved(version), "link": link}
    return _secret(render(request, "frontend/scenario/shared.html", context))


@require_safe
def shared_pdf(request: HttpRequest, token: str) -> HttpResponse:
    """The quote that the link shows, as its document."""
    quote = _link(token).quote
    language = request.GET.get("language", "")
    if quote is None or language not in ("", "en", "id"):
        raise Http404
    data = quote_files.render(quotes.priced(quote).snapshot, "pdf", language)
    response = HttpResponse(data, content_type=quote_files.FORMATS["pdf"])
    response["Content-Disposition"] = f'attachment; filename="{quote_files.file_name(quote, "pdf")}"'
    return _secret(response)


def new_link(request: HttpRequest, scope: Scope, shown: Scenario | Quote) -> UUID:
    """Make a link as the form asks; its secret is shown once, on the next page of this session alone."""
    days = request.POST.get("days", "")
    # Without a number it is good until revoked; one that can't be read is none that is allowed.
    lasts = (whole_number(days) or 0) if days else None
    link, token = create_link(scope=scope, shown=shown, name=request.POST.get("name", ""), days=lasts)
    request.session[NEW_LINK] = request.build_absolute_uri(reverse("shared", args=[token]))
    return link.uuid


def _link(token: str) -> ShareLink:
    try:
        link = shared_link(token_hash(token[:200]), timezone.now())
    except NotFound as missing:
        raise Http404 from missing
    note_use(link=link)
    return link


def _of_quote(quote: Quote, token: str) -> dict[str, object]:
    state = quote.shown_status(timezone.localdate())
    snapshot = quotes.priced(quote).snapshot
    return {
        "quote": quote,
        "token": token,
        "snapshot": snapshot,
        "state": quote_words.quote_status(state),
        "is_open": state == QuoteStatus.ISSUED,
        "shown": shown_quote(snapshot, wording(quote_words.document_language())),
    }


def _secret(response: HttpResponse) -> HttpResponse:
    """The address is a secret: no cache, no search engine and no other site is to learn it."""
    response["Cache-Control"] = "private, no-store"
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
