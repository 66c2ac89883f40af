"""What a link shows to whoever has it: the scenario's latest plan, and nothing that can be changed."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.answers.saved import present_saved
from planner.selectors.scenarios import shared_version
from planner.selectors.scope import NotFound
from planner.services.scenarios import note_use, token_hash


@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Read only; a revoked or late link is as if it had never been."""
    try:
        link, version = shared_version(token_hash(token[:200]), timezone.now())
    except NotFound as missing:
        raise Http404 from missing
    note_use(link=link)
    context = {"scenario": version.scenario, "version": version, "answer": present_saved(version), "link": link}
    response = render(request, "frontend/scenario/shared.html", context)
    # The address is a secret: no cache, no search engine and no other site is to learn it.
    response["Cache-Control"] = "private, no-store"
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
