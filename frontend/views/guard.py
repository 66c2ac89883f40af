"""What stands before a view: a catalog to plan with, and an organization that the visitor belongs to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from catalog.selectors import CatalogNotLoaded
from frontend.sentences import shown
from planner.selectors.scope import NotFound, scope_of
from planner.services.page_limits import most_a_minute, seconds_to_wait
from planner.services.tenancy import Conflict

View = Callable[..., HttpResponse]
TOO_MANY_REQUESTS = 429


def needs_catalog(view: View) -> View:
    """Answer 503 with what to do where no catalog is loaded."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except CatalogNotLoaded:
            return render(request, "frontend/no_catalog.html", status=503)

    return guarded


def limited(kind: str, method: str) -> Callable[[View], View]:
    """Answer 429, with how long to wait, to a client whose calls of ``kind`` by ``method`` are used up for now."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            wait = seconds_to_wait(request, kind) if request.method == method else 0
            if not wait:
                return view(request, *args, **kwargs)
            is_fragment = request.headers.get("HX-Request") == "true"
            template = "frontend/parts/too_many.html" if is_fragment else "frontend/too_many.html"
            context = {"wait": wait, "most": most_a_minute(request, kind), "kind": kind}
            response = render(request, template, context, status=TOO_MANY_REQUESTS)
            response["Retry-After"] = str(wait)
            return response

        return guarded

    return guard


def signed_in(view: View) -> View:
    """Send who is signed out to sign in, and then to a page: never to an address that only takes forms."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        if request.method in ("GET", "HEAD"):
            return redirect_to_login(request.get_full_path())
        sent_from = request.headers.get("Referer", "")
        is_ours = url_has_allowed_host_and_scheme(sent_from, {request.get_host()}, require_https=request.is_secure())
        return redirect_to_login(sent_from if is_ours else resolve_url("organizations"))

    return guarded


def organization_page(permission: str) -> Callable[[View], View]:
    """Give the view the ``scope`` of the organization in its address, instead of the ``slug``.

    Who is signed out is sent to sign in, who is no member gets 404, and a member without the permission 403.
    """

    def guard(view: View) -> View:
        @signed_in
        @wraps(view)
        def guarded(request: HttpRequest, slug: str, **kwargs: Any) -> HttpResponse:
            try:
                scope = scope_of(user=request.user, organization=slug)
                scope.require(permission)
                return view(request, scope=scope, **kwargs)
            except NotFound as missing:
                raise Http404(str(missing)) from missing
            except Conflict as conflict:
                context = {"message": shown(conflict.message), "allowed": shown(conflict.allowed), "back": request.path}
                return render(request, "frontend/organization/conflict.html", context, status=409)

        return guarded

    return guard
