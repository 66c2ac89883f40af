"""Search-as-you-type over the catalog's models."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from catalog.selectors import search_models
from frontend.views.guard import needs_catalog

LONGEST_QUERY = 100


@require_safe
@needs_catalog
def model_search(request: HttpRequest) -> HttpResponse:
    """The options of the model list for what is typed so far."""
    found = search_models(request.GET.get("model", "")[:LONGEST_QUERY])
    return render(request, "frontend/parts/model_options.html", {"models": found})
