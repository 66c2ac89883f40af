"""Webhooks in pages: the list, one with its secret and its log of deliveries."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from frontend import organization_words, words
from frontend.entry import Entry, build_entry, posted
from frontend.typed_numbers import read_form
from frontend.views.guard import organization_page
from planner.engine.errors import InvalidQuestion
from planner.models import EVENTS, Webhook, WebhookDelivery
from planner.selectors.scope import Scope
from planner.services import webhooks as service
from planner.services.idempotency import KeyReused, create_once
from planner.services.webhook_inputs import OFF, ON, RotationInput, WebhookInput

PAGE_SIZE = 25
FIRST_EVENTS = ",".join(event for event in EVENTS if event.startswith("quote."))
VIEW, CHANGE = "planner.view_webhook", "planner.change_webhook"


@organization_page(VIEW)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The webhooks, and a form for a new one; its secret is shown once."""
    if request.method != "POST":
        return _list(request, scope, build_entry(WebhookInput, {"events": FIRST_EVENTS}))
    scope.require(CHANGE)
    given = posted(request.POST, WebhookInput)
    made: list[service.NewSecret] = []

    def make() -> UUID:
        made.append(service.create_webhook(scope=scope, values=read_form(WebhookInput, given)))
        return made[0].webhook.uuid

    try:
        # The page answers without a redirect, so that the secret is stored nowhere: sent again, it makes nothing new.
        space = f"webhooks-page:{scope.organization.pk}:{scope.user.pk}"
        create_once(scope=space, key=request.POST.get("once", ""), request=given, create=make)
    except InvalidQuestion as invalid:
        return _list(request, scope, build_entry(WebhookInput, given, invalid.errors), status=400)
    except KeyReused:
        messages.error(request, _("This form was sent before: fill in a new one."))
    if not made:
        return redirect("webhooks", slug=scope.organization.slug)
    return _one(request, scope, made[0].webhook, secret=made[0].secret)


@organization_page(VIEW)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhook(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """One webhook: what it is told of, its secret, what was sent."""
    row = scope.get(Webhook, uuid)
    if request.method != "POST":
        return _one(request, scope, row)
    given = posted(request.POST, WebhookInput)
    try:
        service.change_webhook(scope=scope, webhook=row, values=read_form(WebhookInput, given))
    except InvalidQuestion as invalid:
        return _one(request, scope, row, entry=build_entry(WebhookInput, given, invalid.errors), status=400)
    messages.success(request, _("Saved."))
    return redirect("webhook", slug=scope.organization.slug, uuid=uuid)


@organization_page(CHANGE)
@never_cache
@require_POST
def act(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Send a trial event, change the secret, or remove the webhook."""
    row = scope.get(Webhook, uuid)
    match request.POST.get("action", ""):
        case "ping":
            service.ping(scope=scope, webhook=row)
            messages.success(request, _("A trial event is on its way: see below."))
        case "rotate":
            return _rotate(request, scope, row)
        case "delete":
            service.delete_webhook(scope=scope, webhook=row)
            messages.success(request, _("Removed."))
            return redirect("webhooks", slug=scope.organization.slug)
        case _:
            raise Http404
    return redirect("webhook", slug=scope.organization.slug, uuid=uuid)


@organization_page(CHANGE)
@require_POST
def redeliver(request: HttpRequest, scope: Scope, uuid: UUID, delivery: UUID) -> HttpResponse:
    """Send a delivery again."""
    found = scope.get_in(WebhookDelivery, delivery, webhook=scope.get(Webhook, uuid))
    service.redeliver(scope=scope, delivery=found)
    messages.success(request, _("It is sent again."))
    return redirect("webhook", slug=scope.organization.slug, uuid=uuid)


def _rotate(request: HttpRequest, scope: Scope, row: Webhook) -> HttpResponse:
    given = posted(request.POST, RotationInput)
    try:
        hours = read_form(RotationInput, given).overlap_hours
    except InvalidQuestion as invalid:
        return _one(request, scope, row, rotation=build_entry(RotationInput, given, invalid.errors), status=400)
    made = service.rotate_secret(scope=scope, webhook=row, overlap_hours=hours)
    return _one(request, scope, made.webhook, secret=made.secret)


def _list(request: HttpRequest, scope: Scope, entry: Entry, *, status: int = 200) -> HttpResponse:
    rows = scope.rows(Webhook)
    context = {
        "scope": scope,
        "tab": "webhooks",
        "webhooks": [(row, [words.choice(event) for event in row.events]) for row in rows],
        "entry": entry,
        "once": uuid4(),
    }
    return render(request, "frontend/organization/webhooks.html", context, status=status)


def _one(
    request: HttpRequest,
    scope: Scope,
    row: Webhook,
    *,
    entry: Entry | None = None,
    rotation: Entry | None = None,
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    page = Paginator(row.deliveries.all(), PAGE_SIZE).get_page(request.GET.get("page"))
    given = {"name": row.name, "url": row.url, "events": row.events, "state": ON if row.is_active else OFF}
    context = {
        "scope": scope,
        "tab": "webhooks",
        "webhook": row,
        "entry": entry or build_entry(WebhookInput, given),
        "rotation": rotation or build_entry(RotationInput, {}),
        "old_until": service.old_secret_until(row, timezone.now()),
        "secret": secret,
        "page": page,
        "deliveries": [_delivery(each) for each in page.object_list],
        "can_change": scope.allows(CHANGE),
    }
    return render(request, "frontend/organization/webhook.html", context, status=status)


def _delivery(row: WebhookDelivery) -> dict[str, Any]:
    last = row.log[-1] if row.log else {}
    return {
        "row": row,
        "event": words.choice(row.event),
        "state": organization_words.state(row.status),
        "last": last,
        "error": organization_words.delivery_error(last["error"]) if last.get("error") else "",
    }
