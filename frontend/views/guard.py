"""What to show while there is no catalog to plan with."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.selectors import CatalogNotLoaded

View = Callable[..., HttpResponse]


def needs_catalog(view: View) -> View:
    """Answer 503 with what to do where no catalog is loaded."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except CatalogNotLoaded:
            return render(request, "frontend/no_catalog.html", status=503)

    return guarded
