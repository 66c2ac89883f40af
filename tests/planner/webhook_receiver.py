"""A receiver of webhooks, and the webhook that tells it, for tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from planner.models import Role
from planner.services import webhooks
from planner.services.outbound import Outcome
from planner.services.webhook_inputs import WebhookInput
from tests.planner.organizations import Tenant

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


def hook(tenant: Tenant, **changes: Any) -> webhooks.NewSecret:
    values = {"name": "ERP", "url": "https://erp.example/hook", "events": EVERYTHING} | changes
    return webhooks.create_webhook(scope=tenant.scope(Role.BUYER), values=WebhookInput(**values))
