"""Pages of plain text."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Terms and method in short."""
    return render(request, "frontend/docs.html", {"nav": "docs"})
