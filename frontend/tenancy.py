"""Whose prices a page plans with: the organization chosen in the header, kept in the session."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from planner.selectors.scope import Scope, scopes_of

SESSION_KEY = "organization"
LIST_PRICES = ""


def my_scopes(request: HttpRequest) -> list[Scope]:
    """The visitor's organizations, read once a request."""
    known: dict[str, list[Scope]] = vars(request)
    if "takar_scopes" not in known:
        # An error page of a request that was refused early has no user.
        user = getattr(request, "user", None)
        known["takar_scopes"] = scopes_of(user=user) if user is not None and user.is_authenticated else []
    return known["takar_scopes"]


def active_scope(request: HttpRequest) -> Scope | None:
    """The organization whose prices plans use; None: list prices. Who has one organization need not choose it."""
    scopes = my_scopes(request)
    if not scopes:
        return None
    chosen = request.session.get(SESSION_KEY)
    if chosen is None:
        return scopes[0] if len(scopes) == 1 else None
    return next((scope for scope in scopes if str(scope.organization.uuid) == chosen), None)


def choose(request: HttpRequest, scope: Scope | None) -> None:
    """Plan with this organization's prices from now on; None: with list prices."""
    request.session[SESSION_KEY] = LIST_PRICES if scope is None else str(scope.organization.uuid)


def organizations(request: HttpRequest) -> dict[str, Any]:
    """What the header of every page shows."""
    scope = active_scope(request)
    return {
        "my_organizations": my_scopes(request),
        "active_organization": scope.organization if scope is not None else None,
    }


def mail(request: HttpRequest) -> dict[str, bool]:
    """Whether messages leave this site: pages that promise one say so where none does."""
    return {"mail_is_sent": settings.MAIL_IS_SENT}
