"""Keys that programs of an organization call the API with."""

from __future__ import annotations

from datetime import datetime

from auditlog.registry import auditlog
from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from planner.models.organization import ServiceAccount, TenantRow


@auditlog.register(include_fields=["name", "prefix", "scopes", "expires_at", "revoked_at"])
class ApiKey(TenantRow):
    """A key of one service account; only the hash of its secret is kept, so it can be shown once only."""

    service_account = models.ForeignKey(ServiceAccount, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(max_length=20, unique=True, editable=False)
    """The key's first letters: tells keys apart, and finds the row."""
    secret_hash = models.CharField(max_length=64, editable=False)
    """SHA-256 of the whole key. Its secret has 256 random bits: nothing slower is needed."""
    scopes = models.JSONField(default=list)
    """What the key may do, at most what its account's role may: ``planner.permissions.KEY_SCOPES``."""
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    """To the minute."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def status(self, now: datetime) -> str:
        """``revoked``, ``expired`` or ``active``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"
