"""Webhooks: what is told to whom, signed how, and who has a say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, Role, WebhookDelivery
from planner.selectors.scope import Forbidden
from planner.services import webhooks
from planner.services.quotes import accept_quote, create_quote, issue_quote, revise_quote
from planner.services.sealed import unseal
from planner.services.webhook_delivery import (
    deliver,
)
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import TERMS
from tests.planner.webhook_receiver import INPUT, NOON, Receiver, hook

pytestmark = pytest.mark.django_db


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
