"""API keys of an organization's service accounts."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from frontend.entry import Entry, build_entry, posted
from frontend.views.guard import organization_page
from planner.engine.errors import InvalidQuestion
from planner.models import ApiKey, ServiceAccount
from planner.selectors import organizations as selectors
from planner.selectors.scope import Scope
from planner.services.api_keys import create_key, revoke_key
from planner.services.idempotency import KeyReused, create_once
from planner.services.json_input import read_form
from planner.services.organization_inputs import KeyInput

_SHOWN = 200


@organization_page("planner.view_keys")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The keys, and a form for a new one; the new key is shown once."""
    if request.method != "POST":
        return _page(request, scope, build_entry(KeyInput, {}, listed=_accounts(scope)))
    scope.require("planner.change_keys")
    given = posted(request.POST, KeyInput)
    secret = ""

    def make() -> UUID:
        nonlocal secret
        made = create_key(scope=scope, values=read_form(KeyInput, given))
        secret = made.key
        return made.row.uuid

    try:
        # The page answers without a redirect, so that the secret is stored nowhere: sent again, it makes nothing new.
        space = f"keys-page:{scope.organization.pk}:{scope.user.pk}"
        create_once(scope=space, key=request.POST.get("once", ""), request=given, create=make)
    except InvalidQuestion as invalid:
        return _page(request, scope, build_entry(KeyInput, given, invalid.errors, listed=_accounts(scope)), status=400)
    except KeyReused:
        messages.error(request, _("This form was sent before: fill in a new one."))
        return redirect("keys", slug=scope.organization.slug)
    if not secret:
        messages.info(request, _("The key was made already, and was shown then."))
        return redirect("keys", slug=scope.organization.slug)
    return _page(request, scope, build_entry(KeyInput, {}, listed=_accounts(scope)), secret=secret)


@organization_page("planner.change_keys")
@require_POST
def revoke(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """End a key."""
    revoke_key(scope=scope, key=scope.get(ApiKey, uuid))
    messages.success(request, _("Revoked."))
    return redirect("keys", slug=scope.organization.slug)


def _page(request: HttpRequest, scope: Scope, entry: Entry, *, secret: str = "", status: int = 200) -> HttpResponse:
    now = timezone.now()
    context = {
        "scope": scope,
        "tab": "keys",
        "keys": [(row, row.status(now)) for row in selectors.api_keys(scope)[:_SHOWN]],
        "entry": entry,
        "secret": secret,
        "once": uuid4(),
    }
    return render(request, "frontend/organization/keys.html", context, status=status)


def _accounts(scope: Scope) -> dict[str, list[tuple[str, str]]]:
    names = scope.rows(ServiceAccount).values_list("name", flat=True)
    return {"service_account": [(name, "") for name in names]}
