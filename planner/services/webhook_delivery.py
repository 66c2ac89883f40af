"""Sending what is put down: signed, tried again with growing pauses, every attempt logged.

The signature is that of the Standard Webhooks specification: HMAC-SHA256 over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog
from cryptography.fernet import InvalidToken
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from planner.models import DeliveryStatus, Webhook, WebhookDelivery
from planner.services.outbound import Outcome, post
from planner.services.webhooks import announce_delivery, signing_secrets

logger = structlog.get_logger(__name__)

PAUSES: Final = tuple(timedelta(seconds=s) for s in (10, 60, 300, 1800, 7200, 21_600, 43_200, 86_400))
"""After each failed attempt but the last: some two days in all."""
MOST_ATTEMPTS: Final = len(PAUSES) + 1
JITTER: Final = 0.2
LOST_AFTER: Final = timedelta(seconds=60)
"""An attempt that says nothing for so long is taken up by another worker; it has a deadline far below."""
MOST_GIVEN_UP: Final = 10
MOST_LOGGED: Final = 20
MOST_RESENT: Final = 500
KEPT_FOR: Final = timedelta(days=30)
GONE: Final = 410
USER_AGENT: Final = "Takar-Webhooks/1"


def deliver(*, delivery_id: int) -> None:
    """Make one attempt, where one is due and nobody else makes it."""
    now = timezone.now()
    if not WebhookDelivery.objects.filter(pk=delivery_id, webhook__is_active=True).exists():
        return
    # Conditions on the row alone, in one statement: of two workers the second finds them no longer true.
    due = WebhookDelivery.objects.filter(pk=delivery_id, status=DeliveryStatus.PENDING, next_attempt_at__lte=now)
    if not due.update(next_attempt_at=now + LOST_AFTER, attempts=F("attempts") + 1):
        return
    delivery = WebhookDelivery.objects.select_related("webhook").get(pk=delivery_id)
    _note(delivery, now, _attempt(delivery, now))


def _attempt(delivery: WebhookDelivery, now: datetime) -> Outcome:
    try:
        headers = headers_of(delivery, now)
    except InvalidToken:
        # Sealed with a site key that is no longer known: unsigned, nothing is sent.
        return Outcome(status=None, error="secret", detail="", milliseconds=0)
    return post(delivery.webhook.url, delivery.body.encode(), headers)


def headers_of(delivery: WebhookDelivery, now: datetime) -> dict[str, str]:
    """What is sent beside the body: id, time, and a signature by each secret that is good now."""
    stamp = str(int(now.timestamp()))
    signed = f"{delivery.uuid}.{stamp}.".encode() + delivery.body.encode()
    return {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": USER_AGENT,
        "Webhook-Id": str(delivery.uuid),
        "Webhook-Timestamp": stamp,
        "Webhook-Signature": " ".join(signatures(signed, signing_secrets(delivery.webhook, now))),
    }


def signatures(signed: bytes, secrets: Iterable[bytes]) -> list[str]:
    """One signature a secret, as the header has them.

    >>> signatures(b"msg_1.1700000000.{}", [b"key"])
    ['v1,XaXLFEFQ69Q4+demDWPEv5ydXczDW2mM5crCUEFcFBA=']
    """
    return ["v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode() for secret in secrets]


def pause_after(attempts: int, asked_s: int | None = None) -> timedelta:
    """How long to wait after so many failed attempts: growing, blurred, and no less than the receiver asks for.

    Blurred, so that what failed together is not tried again together.
    """
    pause = PAUSES[min(attempts, len(PAUSES)) - 1]
    blurred = pause * random.uniform(1 - JITTER, 1 + JITTER)
    asked = timedelta(seconds=asked_s or 0)
    return min(max(blurred, asked), PAUSES[-1])


def resend_due_deliveries() -> int:
    """Announce every delivery whose time has come; returns how many. One too many is harmless."""
    due = WebhookDelivery.objects.filter(
        status=DeliveryStatus.PENDING, next_attempt_at__lte=timezone.now(), webhook__is_active=True
    ).order_by("next_attempt_at")
    ids = list(due.values_list("pk", flat=True)[:MOST_RESENT])
    for delivery_id in ids:
        announce_delivery(delivery_id=delivery_id)
    return len(ids)


def delete_old_deliveries() -> int:
    """Drop the log of what ended long ago; returns how many rows went."""
    old = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    deleted, _by_model = old.exclude(status=DeliveryStatus.PENDING).delete()
    return deleted


def _note(delivery: WebhookDelivery, began: datetime, outcome: Outcome) -> None:
    """Write down what became of an attempt, and what follows."""
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update().filter(pk=delivery.webhook_id).first()
        row = WebhookDelivery.objects.select_for_update().filter(pk=delivery.pk).first()
        if webhook is None or row is None:
            return
        entry = {
            "at": began.isoformat(timespec="seconds"),
            "status": outcome.status,
            "error": outcome.error,
            "detail": outcome.detail,
            "milliseconds": outcome.milliseconds,
        }
        row.log = [*row.log, entry][-MOST_LOGGED:]
        if outcome.is_success:
            _succeeded(row, webhook)
        elif row.status == DeliveryStatus.PENDING:
            _failed(row, webhook, outcome)
        row.save()
    logger.info("webhook attempt", delivery=str(row.uuid), status=outcome.status, error=outcome.error)


def _succeeded(row: WebhookDelivery, webhook: Webhook) -> None:
    row.status, row.delivered_at, row.next_attempt_at = DeliveryStatus.DELIVERED, timezone.now(), None
    Webhook.objects.filter(pk=webhook.pk).update(given_up=0)


def _failed(row: WebhookDelivery, webhook: Webhook, outcome: Outcome) -> None:
    is_gone = outcome.status == GONE
    if row.attempts < MOST_ATTEMPTS and not is_gone:
        row.next_attempt_at = timezone.now() + pause_after(row.attempts, outcome.retry_after_s)
        # An address that doesn't answer takes a worker's time: what else waits for it waits as long.
        waiting = webhook.deliveries.filter(status=DeliveryStatus.PENDING, next_attempt_at__lt=row.next_attempt_at)
        waiting.exclude(pk=row.pk).update(next_attempt_at=row.next_attempt_at)
        return
    row.status, row.next_attempt_at = DeliveryStatus.FAILED, None
    webhook.given_up += 1
    if is_gone or webhook.given_up >= MOST_GIVEN_UP:
        webhook.is_active, webhook.off_reason = False, "gone" if is_gone else "failing"
    webhook.save(update_fields=["given_up", "is_active", "off_reason", "updated_at"])
