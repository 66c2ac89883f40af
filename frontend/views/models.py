"""What the form looks up while it is filled in: models as they are typed, nodes to pick from."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from catalog.selectors import search_models
from frontend.listed import node_types
from frontend.tenancy import active_scope
from frontend.views.guard import needs_catalog

LONGEST_QUERY = 100


@require_safe
@needs_catalog
def model_search(request: HttpRequest) -> HttpResponse:
    """The options of the model list for what is typed so far."""
    found = search_models(request.GET.get("model", "")[:LONGEST_QUERY])
    return render(request, "frontend/parts/model_options.html", {"models": found})


@require_safe
@needs_catalog
def node_choices(request: HttpRequest) -> HttpResponse:
    """Every kind of node that is offered, the organization's own included; those picked stay picked."""
    chosen = set(request.GET.getlist("instance_types"))
    choices = [(code, label, code in chosen) for code, label in node_types(active_scope(request))]
    return render(request, "frontend/parts/node_choices.html", {"choices": choices})
