"""Browsing the catalog: what can be rented, what it costs and how old that price is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from catalog.selectors import catalog_version
from frontend import numbers, words
from frontend.listed import listed_choices
from frontend.listings import listing
from frontend.views.guard import needs_catalog
from planner.engine.workload import PURCHASE_OPTIONS

PAGE_SIZE = 100
SECTIONS = {
    "accelerators": gettext_lazy("Accelerators"),
    "instances": gettext_lazy("Instance types"),
    "offers": gettext_lazy("Offers"),
    "models": gettext_lazy("Models"),
    "engines": gettext_lazy("Engines"),
}
FILTERS = {
    "accelerators": (),
    "instances": ("accelerator", "provider"),
    "offers": ("accelerator", "provider", "country", "purchase_option"),
    "models": (),
    "engines": (),
}
ALL_FILTERS = ("accelerator", "provider", "country", "purchase_option", "q")


@require_safe
@needs_catalog
def browse(request: HttpRequest, section: str = "accelerators") -> HttpResponse:
    """One section of the catalog, filtered and paged by the query string."""
    chosen = {name: request.GET.get(name, "")[:100].replace("\0", "") for name in ALL_FILTERS}
    found = listing(section, chosen, timezone.now().date())
    page = Paginator(found.items, PAGE_SIZE).get_page(request.GET.get("page"))
    count = page.paginator.count
    context = {
        "nav": "catalog",
        "section": section,
        "title": SECTIONS[section],
        "sections": [(key, label, reverse("catalog-section", args=[key])) for key, label in SECTIONS.items()],
        "columns": found.columns,
        "lines": [found.line(item) for item in page.object_list],
        "page": page,
        "count": ngettext("%(n)s row", "%(n)s rows", count) % {"n": numbers.fixed(count)},
        "filters": _filters(section, chosen),
        "q": chosen["q"],
        "rest": urlencode({name: value for name, value in chosen.items() if value}),
        "version": catalog_version(),
    }
    return render(request, "frontend/catalog.html", context)


def _filters(section: str, chosen: Mapping[str, str]) -> list[dict[str, Any]]:
    """The section's drop-down lists, each with what is chosen."""
    listed = listed_choices()
    sources = {
        "accelerator": (_("Accelerator"), listed["accelerators"]),
        "provider": (_("Provider"), listed["providers"]),
        "country": (_("Country"), listed["countries"]),
        "purchase_option": (_("Bought"), tuple((code, words.choice(code)) for code in PURCHASE_OPTIONS)),
    }
    return [
        {"name": name, "label": sources[name][0], "choices": sources[name][1], "chosen": chosen[name]}
        for name in FILTERS[section]
    ]
