"""Addresses of other systems that are told what happens, and the log of telling them."""

from __future__ import annotations

from auditlog.registry import auditlog
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from planner.models.organization import TenantRow

EVENTS: tuple[str, ...] = (
    "quote.issued",
    "quote.accepted",
    "quote.superseded",
    "scenario.saved",
    "scenario.version_saved",
)
"""What a webhook may ask for; `ping`, a trial, goes to every one."""
PING = "ping"


@auditlog.register(include_fields=["name", "url", "events", "is_active", "off_reason", "secret_changed_at"])
class Webhook(TenantRow):
    """An address that is told of events; its secrets sign what is sent."""

    name = models.CharField(_("name"), max_length=100)
    url = models.CharField(max_length=500)
    events = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)
    off_reason = models.CharField(max_length=20, blank=True, default="")
    """Why it was switched off where no person did that: ``gone`` (it answered 410) or ``failing``."""
    given_up = models.PositiveSmallIntegerField(default=0)
    """Deliveries given up in a row."""
    secret = models.TextField()
    """Sealed: ``planner.services.sealed``."""
    earlier_secrets = models.JSONField(default=list)
    """Those that sign too, for a while after a change: sealed, with their last moment."""
    secret_changed_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.name


class DeliveryStatus(models.TextChoices):
    """Where a delivery is."""

    PENDING = "pending", _("Pending")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Given up")


class WebhookDelivery(TenantRow):
    """One event for one webhook: what is sent, and every attempt to send it.

    Its ``uuid`` is the message's id: the same at every attempt, so that a receiver can drop what it knows.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    body = models.TextField()
    """JSON, to the byte as it is sent and signed."""
    status = models.CharField(max_length=10, choices=DeliveryStatus, default=DeliveryStatus.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    """While an attempt runs: when it counts as lost."""
    log = models.JSONField(default=list)
    """The latest attempts: when, the status answered, how long it took, what went wrong."""
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(status="pending"), name="webhook_delivery_due"),
            models.Index(fields=["webhook", "-created_at"], name="webhook_delivery_time"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.uuid}"
