"""Webhooks: what is told to whom, signed how, tried again when, and what the log says."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, DeliveryStatus, Role, Webhook, WebhookDelivery
from planner.selectors.scope import Forbidden
from planner.services import webhook_delivery, webhooks
from planner.services.outbound import Outcome
from planner.services.quotes import accept_quote, create_quote, issue_quote, revise_quote
from planner.services.sealed import unseal
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
from planner.services.webhook_inputs import WebhookInput
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import TERMS

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 12, 1, 12, tzinfo=timezone.get_default_timezone())
EVERYTHING = ("quote.issued", "quote.accepted", "quote.superseded", "scenario.saved", "scenario.version_saved")
INPUT = WebhookInput(name="ERP", url="https://erp.example/hook", events=EVERYTHING)


class Receiver:
    """What was sent, and what it answers next; the clock that the service sees."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes, dict[str, str]]] = []
        self.answers: list[Outcome] = []
        self.now = NOON

    def post(self, url: str, body: bytes, headers: dict[str, str]) -> Outcome:
        self.got.append((url, body, headers))
        return self.answers.pop(0) if self.answers else answer(200)


def answer(status: int | None, error: str = "", retry_after: int | None = None) -> Outcome:
    is_good = status is not None and status < 300
    fault = error or ("" if is_good else "status")
    return Outcome(status=status, error=fault, detail="", milliseconds=7, retry_after_s=retry_after)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    made = Receiver()
    monkeypatch.setattr(webhook_delivery, "post", made.post)
    monkeypatch.setattr(timezone, "now", lambda: made.now)
    monkeypatch.setattr("planner.services.webhook_delivery.random.uniform", lambda low, high: 1.0)
    return made


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The deliveries that workers were told of."""
    told: list[int] = []
    monkeypatch.setattr("planner.services.webhooks.current_app.send_task", lambda name, args: told.append(args[0]))
    return told


def hook(tenant: Tenant, **changes: Any) -> webhooks.NewSecret:
    values = {"name": "ERP", "url": "https://erp.example/hook", "events": EVERYTHING} | changes
    return webhooks.create_webhook(scope=tenant.scope(Role.BUYER), values=WebhookInput(**values))


def test_the_life_of_a_quote_is_told(tenant: Tenant) -> None:
    scope = tenant.scope()
    webhook = hook(tenant).webhook
    hook(tenant, name="other", events=("scenario.saved",))
    hook(tenant, name="off", state="off")
    quote = issue_quote(scope=scope, quote=create_quote(scope=scope, terms=TERMS))
    revised = issue_quote(scope=scope, quote=revise_quote(scope=scope, quote=quote))
    accept_quote(scope=scope, quote=revised)
    bodies = [json.loads(row.body) for row in webhook.deliveries.order_by("pk")]
    assert [(body["type"], body["data"]["number"]) for body in bodies] == [
        ("quote.issued", quote.number),
        ("quote.superseded", quote.number),
        ("quote.issued", revised.number),
        ("quote.accepted", revised.number),
    ]
    first = bodies[0]
    assert first["organization"] == str(tenant.organization.uuid)
    assert first["data"]["address"] == f"/api/v1/quotes/{quote.uuid}/"
    assert quote.snapshot is not None
    assert first["data"]["total"] == quote.snapshot["total"]["term"]
    assert bodies[1]["data"]["superseded_by"] == str(revised.uuid)
    assert WebhookDelivery.objects.count() == 4


def test_workers_are_told_after_the_commit_and_never_of_what_was_rolled_back(
    tenant: Tenant, announced: list[int], django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    hook(tenant)
    with django_capture_on_commit_callbacks(execute=True):
        create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
        assert announced == []
    delivery = WebhookDelivery.objects.get()
    assert announced == [delivery.pk]
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
        transaction.set_rollback(True)
    assert announced == [delivery.pk]
    assert WebhookDelivery.objects.count() == 1


def test_another_organizations_webhook_hears_nothing(tenant: Tenant) -> None:
    hook(tenant_factory("Other"))
    create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    assert not WebhookDelivery.objects.exists()


def test_a_message_is_signed_so_that_a_receiver_can_check_it(tenant: Tenant, receiver: Receiver) -> None:
    """As the specification has it, written here anew."""
    made = hook(tenant)
    delivery = webhooks.ping(scope=tenant.scope(), webhook=made.webhook)
    deliver(delivery_id=delivery.pk)
    ((url, body, headers),) = receiver.got
    assert url == "https://erp.example/hook"
    assert json.loads(body)["type"] == "ping"
    assert headers["Webhook-Id"] == str(delivery.uuid) == json.loads(body)["id"]
    assert headers["Webhook-Timestamp"] == str(int(NOON.timestamp()))
    key = base64.b64decode(made.secret.removeprefix("whsec_"))
    signed = b".".join([headers["Webhook-Id"].encode(), headers["Webhook-Timestamp"].encode(), body])
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["Webhook-Signature"] == f"v1,{expected}"


def test_a_secret_is_kept_sealed_and_out_of_the_audit_log(tenant: Tenant) -> None:
    made = hook(tenant)
    assert made.secret not in made.webhook.secret
    assert unseal(made.webhook.secret, purpose="webhook") == made.secret
    entries = AuditEntry.objects.filter(organization=tenant.organization, content_type__model="webhook")
    assert entries.count() == 1
    assert "secret" not in [name for entry in entries for name in entry.changes if name != "secret_changed_at"]


def test_after_a_change_both_secrets_sign_until_the_overlap_ends(tenant: Tenant, receiver: Receiver) -> None:
    first = hook(tenant)
    second = webhooks.rotate_secret(scope=tenant.scope(), webhook=first.webhook, overlap_hours=24)
    assert first.secret != second.secret
    row = second.webhook

    def count() -> int:
        return len(webhooks.signing_secrets(row, receiver.now))

    keys = webhooks.signing_secrets(row, receiver.now)
    assert keys == [base64.b64decode(each.secret.removeprefix("whsec_")) for each in (second, first)]
    assert webhooks.old_secret_until(row, receiver.now) == NOON + timedelta(hours=24)
    receiver.now += timedelta(hours=23)
    third = webhooks.rotate_secret(scope=tenant.scope(), webhook=row, overlap_hours=24).webhook
    row = third
    assert count() == 3
    receiver.now += timedelta(hours=2)
    assert count() == 2
    row = webhooks.rotate_secret(scope=tenant.scope(), webhook=row, overlap_hours=0).webhook
    assert count() == 1
    assert webhooks.old_secret_until(row, receiver.now) is None


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


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "http://erp.example/"}, "url"),
        ({"url": "https://127.0.0.1/"}, "url"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "url"),
        ({"events": ()}, "events"),
        ({"name": "\u202e"}, "name"),
    ],
)
def test_what_can_not_be_saved(tenant: Tenant, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidQuestion) as invalid:
        hook(tenant, **changes)
    assert [error.field for error in invalid.value.errors] == [field]


def test_planners_and_viewers_have_no_say(tenant: Tenant) -> None:
    for role in (Role.VIEWER, Role.PLANNER):
        with pytest.raises(Forbidden):
            webhooks.create_webhook(scope=tenant.scope(role), values=INPUT)
