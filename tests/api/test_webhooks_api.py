"""Webhooks over REST: secrets shown once, the log of deliveries, who may."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from planner.models import Role, Webhook
from planner.services.webhook_delivery import deliver
from tests.api.test_quotes_api import Caller, good
from tests.planner.organizations import Tenant
from tests.planner.webhook_receiver import Receiver, answer

BODY = {"name": "ERP", "url": "https://erp.example/hook", "events": ["quote.issued"]}


def test_from_making_to_removing(tenant: Tenant, receiver: Receiver) -> None:
    call = Caller(tenant, Role.BUYER)
    made = call("POST", "/webhooks/", BODY)
    webhook = good(made, 201, "NewWebhook")
    assert webhook["secret"].startswith("whsec_")
    path = f"/webhooks/{webhook['id']}"
    assert made["Location"] == f"/api/v1{path}/"
    read = good(call("GET", f"{path}/"), 200, "Webhook")
    assert "secret" not in read
    assert (read["state"], read["off_reason"], read["old_secret_until"]) == ("on", None, None)

    rotated = good(call("POST", f"{path}/rotate/", {"overlap_hours": 2}), 200, "NewWebhook")
    assert rotated["secret"] != webhook["secret"]
    assert rotated["old_secret_until"] == "2026-12-01T14:00:00Z"

    sent = good(call("POST", f"{path}/ping/"), 201, "WholeDelivery")
    assert sent["payload"]["type"] == sent["event"] == "ping"
    receiver.answers = [answer(500)]
    deliver(delivery_id=Webhook.objects.get().deliveries.get().pk)
    listed = good(call("GET", f"{path}/deliveries/?status=pending&event=ping"), 200, "WebhookDeliveriesPage")
    assert [(row["attempts"], row["log"][0]["status"]) for row in listed["results"]] == [(1, 500)]
    assert good(call("GET", f"{path}/deliveries/?status=failed"), 200)["results"] == []
    again = good(call("POST", f"{path}/deliveries/{sent['id']}/redeliver/"), 200, "WholeDelivery")
    assert (again["id"], again["attempts"]) == (sent["id"], 0)

    changed = good(call("PUT", f"{path}/", BODY | {"state": "off"}), 200, "Webhook")
    assert changed["state"] == "off"
    assert good(call("GET", "/webhooks/?state=on"), 200, "WebhooksPage")["results"] == []
    assert len(good(call("GET", "/webhooks/?state=off&search=erp"), 200)["results"]) == 1
    good(call("POST", f"{path}/ping/"), 409, "ErrorEnvelope")
    good(call("DELETE", f"{path}/"), 204)
    good(call("GET", f"{path}/"), 404, "ErrorEnvelope")


def test_the_same_key_makes_one_and_shows_its_secret_once(tenant: Tenant) -> None:
    call, key = Caller(tenant, Role.BUYER), {"Idempotency-Key": str(uuid4())}
    first, second = (good(call("POST", "/webhooks/", BODY, **key), 201, "NewWebhook") for _ in range(2))
    assert first["id"] == second["id"]
    assert first["secret"]
    assert second["secret"] is None


@pytest.mark.parametrize(
    ("changes", "attr", "code"),
    [
        ({"url": "https://169.254.169.254/latest/"}, "url", "address"),
        ({"url": "https://localhost:22/"}, "url", "url"),
        ({"events": []}, "events", "required"),
        ({"events": ["quote.lost"]}, "events", "invalid"),
        ({"state": "maybe"}, "state", "invalid"),
    ],
)
def test_what_is_wrong_is_named(tenant: Tenant, changes: dict[str, Any], attr: str, code: str) -> None:
    (error,) = good(Caller(tenant, Role.BUYER)("POST", "/webhooks/", BODY | changes), 400, "ErrorEnvelope")["errors"]
    assert (error["attr"], error["code"]) == (attr, code)


def test_only_buyers_and_owners(tenant: Tenant) -> None:
    for role in (Role.VIEWER, Role.PLANNER):
        good(Caller(tenant, role)("GET", "/webhooks/"), 403, "ErrorEnvelope")
    good(Caller(tenant, Role.OWNER)("GET", "/webhooks/"), 200, "WebhooksPage")
