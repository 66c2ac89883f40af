"""Saved plans: named, versioned, commented, shared by a link that can be revoked."""

from __future__ import annotations

from typing import Any

from auditlog.registry import auditlog
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from planner.models.organization import TenantRow


class PlanKind(models.TextChoices):
    """Which of the two questions a plan answers."""

    INFERENCE = "inference", _("Inference")
    TRAINING = "training", _("Training")


@auditlog.register(include_fields=["name", "latest", "archived_at"])
class Scenario(TenantRow):
    """A plan with a name; what it says is in its versions."""

    name = models.CharField(_("name"), max_length=120)
    kind = models.CharField(max_length=10, choices=PlanKind)
    latest = models.PositiveIntegerField(default=0)
    """Number of the latest version."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-updated_at", "-pk"]
        indexes = [models.Index(fields=["organization", "-updated_at"], name="scenario_organization_time")]

    def __str__(self) -> str:
        return self.name


class ScenarioVersion(TenantRow):
    """One plan of a scenario, as it was answered; never changed."""

    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    question = models.JSONField()
    """As the engine reads it."""
    plan = models.JSONField()
    """The answer as JSON, with the one option that was chosen in ``options``."""
    option_id = models.CharField(max_length=400)
    usd = models.DecimalField(max_digits=18, decimal_places=2)
    """Of the option: a month for inference, the whole run for training, the whole of an offline job."""
    catalog_version = models.CharField(max_length=120)
    engine_version = models.CharField(max_length=40)
    priced_on = models.DateField()
    note = models.CharField(max_length=200, blank=True, default="")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["scenario", "number"], name="scenario_version_once")]

    def __str__(self) -> str:
        return f"{self.scenario}, version {self.number}"

    @property
    def job(self) -> dict[str, Any] | None:
        """What the option says of an offline job; None of a service or a training run."""
        job: dict[str, Any] | None = self.plan["options"][0].get("job")
        return job


@auditlog.register(include_fields=["text"])
class ScenarioComment(TenantRow):
    """What somebody said of a scenario."""

    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="comments")
    version = models.PositiveIntegerField()
    """The latest one when it was said."""
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    text = models.TextField()

    class Meta:
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return self.text[:60]


@auditlog.register(include_fields=["name", "expires_at", "revoked_at"])
class ShareLink(TenantRow):
    """A read-only link to a scenario or an issued quote for whoever has it; only the hash of its secret is kept."""

    scenario = models.ForeignKey(Scenario, null=True, blank=True, on_delete=models.CASCADE, related_name="links")
    quote = models.ForeignKey("Quote", null=True, blank=True, on_delete=models.CASCADE, related_name="links")
    name = models.CharField(_("name"), max_length=100, blank=True, default="")
    """Whom it was made for."""
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    """SHA-256 of the secret in the link."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["scenario"], condition=Q(revoked_at__isnull=True), name="share_link_open"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(scenario__isnull=False, quote__isnull=True) | Q(scenario__isnull=True, quote__isnull=False),
                name="share_link_shows_one",
            ),
        ]

    def __str__(self) -> str:
        return self.name or str(self.uuid)
