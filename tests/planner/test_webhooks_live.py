"""A quote issued here reaches another system: a real worker, the real broker, a real connection."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from planner.models import DeliveryStatus, WebhookDelivery
from planner.services.quotes import create_quote
from planner.services.webhook_inputs import WebhookInput
from planner.services.webhooks import create_webhook
from tests.planner.answering import answering
from tests.planner.live_processes import start_worker
from tests.planner.organizations import tenant_factory
from tests.planner.quote_terms import TERMS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("live-jobs")]
PATIENCE_S = 60.0


def test_a_worker_delivers_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setenv("SECRET_KEY", settings.SECRET_KEY)
    monkeypatch.setenv("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8")
    scope = tenant_factory().scope()
    with answering(b"HTTP/1.1 200 OK\r\n\r\n") as (port, got):
        url = f"http://127.0.0.1:{port}/hook"
        create_webhook(scope=scope, values=WebhookInput(name="ERP", url=url, events=("quote.issued",)))
        worker = start_worker(tmp_path)
        try:
            quote = create_quote(scope=scope, terms=TERMS, issue=True)
            deadline = time.monotonic() + PATIENCE_S
            while WebhookDelivery.objects.get().status == DeliveryStatus.PENDING and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            worker.kill()
    delivery = WebhookDelivery.objects.get()
    assert delivery.status == DeliveryStatus.DELIVERED, delivery.log
    ((head, body),) = (request.split(b"\r\n\r\n", 1) for request in got)
    assert body == delivery.body.encode()
    assert f'"number":"{quote.number}"'.encode() in body
    assert b"Webhook-Signature: v1," in head
