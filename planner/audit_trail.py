"""Tells the audit log who is at work in a request, and from which address."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from planner.models.audit import acting


class AuditTrailMiddleware:
    """Every entry made while a request is served names its user and its address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with acting(address=client_address(request)):
            return self.get_response(request)


def client_address(request: HttpRequest) -> str | None:
    """The client's address: of ``X-Forwarded-For`` only the entries that our own proxies wrote are believed."""
    proxies: int = settings.NUM_PROXIES
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    address = forwarded[-min(proxies, len(forwarded))] if proxies and forwarded else request.META.get("REMOTE_ADDR", "")
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return None
