"""Webhooks: made, changed, given another secret, removed; and events put down for sending."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import uuid4

import structlog
from celery import current_app
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import EVENTS, PING, DeliveryStatus, Organization, Webhook, WebhookDelivery
from planner.selectors.scope import Scope
from planner.services.organizations import checked_name
from planner.services.outbound import Refused, checked_url
from planner.services.sealed import seal, unseal
from planner.services.tenancy import Conflict, lock, tenant_write
from planner.services.tiers import require_room
from planner.services.webhook_inputs import ON, WebhookInput

logger = structlog.get_logger(__name__)

DELIVER_TASK: Final = "planner.deliver_webhook"
SECRET_MARK: Final = "whsec_"
SECRET_BYTES: Final = 32
MOST_SECRETS: Final = 5
_PURPOSE = "webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """A webhook and its secret, which is shown only now."""

    webhook: Webhook
    secret: str


@tenant_write
def create_webhook(*, scope: Scope, values: WebhookInput) -> NewSecret:
    """Tell an address of events from now on; raises ``InvalidQuestion``, ``Conflict`` for too many."""
    scope.require("planner.change_webhook")
    lock(scope.organization)
    checked = _checked(values)
    require_room(scope.organization, "webhooks")
    secret = _new_secret()
    webhook = Webhook.objects.create(
        organization=scope.organization,
        secret=seal(secret, purpose=_PURPOSE),
        secret_changed_at=timezone.now(),
        created_by=scope.user,
        **checked,
    )
    return NewSecret(webhook=webhook, secret=secret)


@tenant_write
def change_webhook(*, scope: Scope, webhook: Webhook, values: WebhookInput) -> Webhook:
    """Write name, address, events and state anew; switched on, its failures are forgotten."""
    scope.require("planner.change_webhook")
    webhook = scope.get(Webhook, webhook.uuid, lock=True)
    for name, value in _checked(values).items():
        setattr(webhook, name, value)
    webhook.off_reason, webhook.given_up = "", 0
    webhook.save()
    return webhook


@tenant_write
def rotate_secret(*, scope: Scope, webhook: Webhook, overlap_hours: int) -> NewSecret:
    """Give a webhook another secret; those before it sign too until the overlap ends, or no longer where it is 0."""
    scope.require("planner.change_webhook")
    webhook = scope.get(Webhook, webhook.uuid, lock=True)
    now = timezone.now()
    until = (now + timedelta(hours=overlap_hours)).isoformat()
    kept = [{"sealed": webhook.secret, "until": until}, *_still_good(webhook, now)] if overlap_hours else []
    secret = _new_secret()
    webhook.secret, webhook.secret_changed_at = seal(secret, purpose=_PURPOSE), now
    webhook.earlier_secrets = kept[: MOST_SECRETS - 1]
    webhook.save()
    return NewSecret(webhook=webhook, secret=secret)


@tenant_write
def delete_webhook(*, scope: Scope, webhook: Webhook) -> None:
    """Send it nothing more; its log goes too."""
    scope.require("planner.change_webhook")
    scope.get(Webhook, webhook.uuid, lock=True).delete()


@tenant_write
def ping(*, scope: Scope, webhook: Webhook) -> WebhookDelivery:
    """Send a trial event; raises ``Conflict`` where the webhook is switched off."""
    scope.require("planner.change_webhook")
    webhook = scope.get(Webhook, webhook.uuid)
    _require_on(webhook)
    return _put_down(webhook, PING, {"message": "It works."})


@tenant_write
def redeliver(*, scope: Scope, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send a delivery again, with the same id and body; raises ``Conflict`` while one is under way."""
    scope.require("planner.change_webhook")
    delivery = scope.get(WebhookDelivery, delivery.uuid, lock=True)
    _require_on(delivery.webhook)
    if delivery.status == DeliveryStatus.PENDING and delivery.attempts == 0:
        raise Conflict("wrong_status", "It has not been sent yet.", "wait a moment")
    delivery.status, delivery.attempts, delivery.next_attempt_at = DeliveryStatus.PENDING, 0, timezone.now()
    delivery.save(update_fields=["status", "attempts", "next_attempt_at"])
    transaction.on_commit(partial(announce_delivery, delivery_id=delivery.pk))
    return delivery


def tell(*, organization: Organization, event: str, data: Callable[[], Mapping[str, Any]]) -> None:
    """Put ``event`` down for each webhook that asks for it; it is sent once the transaction has committed."""
    assert event in EVENTS, event
    asking = [row for row in Webhook.objects.filter(organization=organization, is_active=True) if event in row.events]
    said = data() if asking else {}
    for webhook in asking:
        _put_down(webhook, event, said)


def signing_secrets(webhook: Webhook, now: datetime) -> list[bytes]:
    """The keys that sign a message now, the newest first."""
    sealed = [webhook.secret, *(each["sealed"] for each in _still_good(webhook, now))]
    return [
        base64.b64decode(unseal(each, purpose=_PURPOSE).removeprefix(SECRET_MARK), validate=True) for each in sealed
    ]


def old_secret_until(webhook: Webhook, now: datetime) -> datetime | None:
    """Until when an earlier secret signs too; None: only the latest one does."""
    return max((datetime.fromisoformat(each["until"]) for each in _still_good(webhook, now)), default=None)


def announce_delivery(*, delivery_id: int) -> None:
    """Tell the workers of a delivery; a broker that is away loses nothing, for due ones are looked for."""
    try:
        current_app.send_task(DELIVER_TASK, args=[delivery_id])
    except (OperationalError, OSError) as error:
        logger.warning("delivery not announced", delivery_id=delivery_id, error=str(error))


def _put_down(webhook: Webhook, event: str, data: Mapping[str, Any]) -> WebhookDelivery:
    now, uuid = timezone.now(), uuid4()
    message = {
        "id": str(uuid),
        "type": event,
        "timestamp": now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "organization": str(webhook.organization.uuid),
        "data": data,
    }
    delivery = WebhookDelivery.objects.create(
        uuid=uuid,
        organization=webhook.organization,
        webhook=webhook,
        event=event,
        body=json.dumps(message, ensure_ascii=False, separators=(",", ":")),
        next_attempt_at=now,
    )
    transaction.on_commit(partial(announce_delivery, delivery_id=delivery.pk))
    return delivery


def _checked(values: WebhookInput) -> dict[str, Any]:
    faults = []
    try:
        checked_url(values.url)
    except Refused as refused:
        faults.append(
            FieldError(
                field="url",
                value=values.url,
                message=refused.message,
                allowed=say("a public https address"),
                code=refused.code,
            )
        )
    if not values.events:
        faults.append(
            FieldError(field="events", value=None, message=say("Needed."), allowed=say("one or more"), code="required")
        )
    if faults:
        raise InvalidQuestion(faults)
    return {
        "name": checked_name(values.name),
        "url": values.url,
        "events": list(values.events),
        "is_active": values.state == ON,
    }


def _still_good(webhook: Webhook, now: datetime) -> list[dict[str, str]]:
    return [each for each in webhook.earlier_secrets if datetime.fromisoformat(each["until"]) > now]


def _require_on(webhook: Webhook) -> None:
    if not webhook.is_active:
        raise Conflict("wrong_status", "The webhook is switched off.", "switch it on first")


def _new_secret() -> str:
    return SECRET_MARK + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
