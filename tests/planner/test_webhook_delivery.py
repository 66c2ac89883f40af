"""Deliveries of webhooks: tried again when, given up when, and what the log says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from planner.models import DeliveryStatus, Webhook, WebhookDelivery
from planner.services import webhook_delivery, webhooks
from planner.services.outbound import Outcome
from planner.services.quotes import create_quote
from planner.services.tenancy import Conflict
from planner.services.webhook_delivery import (
    MOST_ATTEMPTS,
    MOST_GIVEN_UP,
    PAUSES,
    delete_old_deliveries,
    deliver,
    pause_after,
    resend_due_deliveries,
)
from tests.planner.organizations import Tenant
from tests.planner.quote_terms import TERMS
from tests.planner.webhook_receiver import INPUT, NOON, Receiver, answer, hook

pytestmark = pytest.mark.django_db


def test_what_fails_is_tried_again_with_growing_pauses_and_then_given_up(tenant: Tenant, receiver: Receiver) -> None:
    webhook = hook(tenant).webhook
    delivery = webhooks.ping(scope=tenant.scope(), webhook=webhook)
    receiver.answers = [answer(500), answer(None, "timeout"), *[answer(503)] * MOST_ATTEMPTS]
    waits = []
    for _ in range(MOST_ATTEMPTS - 1):
        deliver(delivery_id=delivery.pk)
        delivery.refresh_from_db()
        assert delivery.status == DeliveryStatus.PENDING
        assert delivery.next_attempt_at is not None
        waits.append(delivery.next_attempt_at - receiver.now)
        deliver(delivery_id=delivery.pk)  # Not due: nothing is sent.
        receiver.now = delivery.next_attempt_at
    assert waits == list(PAUSES)
    deliver(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.next_attempt_at) == (DeliveryStatus.FAILED, None)
    assert len(receiver.got) == delivery.attempts == len(delivery.log) == MOST_ATTEMPTS == 9
    assert [(each["status"], each["error"]) for each in delivery.log[:3]] == [
        (500, "status"),
        (None, "timeout"),
        (503, "status"),
    ]
    assert len({headers["Webhook-Id"] for _, _, headers in receiver.got}) == 1
    assert len({body for _, body, _ in receiver.got}) == 1
    assert len({headers["Webhook-Timestamp"] for _, _, headers in receiver.got}) == MOST_ATTEMPTS


def test_a_pause_is_blurred_and_no_shorter_than_asked() -> None:
    blurred = {pause_after(2) for _ in range(50)}
    assert len(blurred) > 10
    assert all(PAUSES[1] * 0.8 <= pause <= PAUSES[1] * 1.2 for pause in blurred)
    assert pause_after(1, asked_s=3600) == timedelta(hours=1)
    assert pause_after(1, asked_s=999_999) == PAUSES[-1]


def test_one_that_works_ends_it(tenant: Tenant, receiver: Receiver) -> None:
    delivery = webhooks.ping(scope=tenant.scope(), webhook=hook(tenant).webhook)
    deliver(delivery_id=delivery.pk)
    deliver(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts, len(receiver.got)) == (DeliveryStatus.DELIVERED, 1, 1)
    assert delivery.delivered_at == NOON
    assert delivery.log == [
        {"at": "2026-12-01T12:00:00+00:00", "status": 200, "error": "", "detail": "", "milliseconds": 7}
    ]


def test_a_lost_worker_loses_nothing(tenant: Tenant, receiver: Receiver, announced: list[int]) -> None:
    delivery = webhooks.ping(scope=tenant.scope(), webhook=hook(tenant).webhook)

    def killed(*_: Any) -> Outcome:
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webhook_delivery, "post", killed)
        with pytest.raises(SystemExit):
            deliver(delivery_id=delivery.pk)
    assert resend_due_deliveries() == 0
    receiver.now += timedelta(seconds=61)
    assert resend_due_deliveries() == 1
    assert announced == [delivery.pk]
    deliver(delivery_id=delivery.pk)
    assert len(receiver.got) == 1


def test_others_wait_while_an_address_fails(tenant: Tenant, receiver: Receiver) -> None:
    webhook = hook(tenant).webhook
    first, second = (webhooks.ping(scope=tenant.scope(), webhook=webhook) for _ in range(2))
    receiver.answers = [answer(None, "timeout")]
    deliver(delivery_id=first.pk)
    deliver(delivery_id=second.pk)
    assert len(receiver.got) == 1
    receiver.now += PAUSES[0]
    deliver(delivery_id=second.pk)
    assert len(receiver.got) == 2


@pytest.mark.parametrize(("status", "times", "reason"), [(410, 1, "gone"), (500, MOST_GIVEN_UP, "failing")])
def test_an_address_that_is_gone_or_keeps_failing_is_switched_off(
    tenant: Tenant, receiver: Receiver, status: int, times: int, reason: str
) -> None:
    webhook = hook(tenant).webhook
    for turn in range(times):
        assert webhook.is_active, turn
        delivery = webhooks.ping(scope=tenant.scope(), webhook=webhook)
        WebhookDelivery.objects.filter(pk=delivery.pk).update(attempts=MOST_ATTEMPTS - 1)
        receiver.answers = [answer(status)]
        deliver(delivery_id=delivery.pk)
        webhook.refresh_from_db()
    assert (webhook.is_active, webhook.off_reason) == (False, reason)
    create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    assert webhook.deliveries.count() == times
    with pytest.raises(Conflict):
        webhooks.ping(scope=tenant.scope(), webhook=webhook)
    on = webhooks.change_webhook(scope=tenant.scope(), webhook=webhook, values=INPUT)
    assert (on.is_active, on.off_reason, on.given_up) == (True, "", 0)


def test_a_delivery_is_sent_again_with_the_same_id(tenant: Tenant, receiver: Receiver) -> None:
    delivery = webhooks.ping(scope=tenant.scope(), webhook=hook(tenant).webhook)
    with pytest.raises(Conflict):
        webhooks.redeliver(scope=tenant.scope(), delivery=delivery)
    deliver(delivery_id=delivery.pk)
    again = webhooks.redeliver(scope=tenant.scope(), delivery=delivery)
    deliver(delivery_id=again.pk)
    again.refresh_from_db()
    assert (again.status, len(again.log)) == (DeliveryStatus.DELIVERED, 2)
    assert receiver.got[0][1] == receiver.got[1][1]


def test_a_webhook_that_went_meanwhile_is_no_fault(tenant: Tenant, receiver: Receiver) -> None:
    webhook = hook(tenant).webhook
    delivery = webhooks.ping(scope=tenant.scope(), webhook=webhook)

    def removed(*_: Any) -> Outcome:
        webhooks.delete_webhook(scope=tenant.scope(), webhook=webhook)
        return answer(200)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webhook_delivery, "post", removed)
        deliver(delivery_id=delivery.pk)
    deliver(delivery_id=delivery.pk)
    assert receiver.got == []
    assert not Webhook.objects.exists()


def test_a_secret_of_a_lost_site_key_sends_nothing_unsigned(tenant: Tenant, receiver: Receiver, settings: Any) -> None:
    delivery = webhooks.ping(scope=tenant.scope(), webhook=hook(tenant).webhook)
    settings.SECRET_KEY, known = "another", settings.SECRET_KEY
    deliver(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    assert (receiver.got, delivery.log[0]["error"]) == ([], "secret")
    settings.SECRET_KEY_FALLBACKS = [known]
    receiver.now += PAUSES[0]
    deliver(delivery_id=delivery.pk)
    assert len(receiver.got) == 1


def test_the_log_is_kept_for_thirty_days(tenant: Tenant, receiver: Receiver) -> None:
    webhook = hook(tenant).webhook
    done, waiting = (webhooks.ping(scope=tenant.scope(), webhook=webhook) for _ in range(2))
    deliver(delivery_id=done.pk)
    WebhookDelivery.objects.update(created_at=NOON - timedelta(days=29))
    assert delete_old_deliveries() == 0
    WebhookDelivery.objects.update(created_at=NOON - timedelta(days=31))
    assert delete_old_deliveries() == 1
    assert WebhookDelivery.objects.get() == waiting
