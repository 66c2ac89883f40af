"""A job: the row is the truth about it, messages only wake workers up."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class RunStatus(models.TextChoices):
    """Where a run is in its life; the last three are final."""

    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


FINAL_STATUSES = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})


class Run(models.Model):
    """One job, from the request to its result.

    A worker owns a running row while its lease lasts. ``lease_token`` names that owner: a worker whose
    lease was taken over finds another token there and can write nothing more.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    """The public name; unguessable, so that whoever started a run anonymously can read it."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    organization = models.ForeignKey("planner.Organization", null=True, blank=True, on_delete=models.CASCADE)
    """Whose prices it plans with; none: list prices."""
    kind = models.CharField(max_length=40)
    params = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    progress = models.FloatField(default=0.0)
    """Share done, 0 to 1."""
    message = models.CharField(max_length=200, blank=True, default="")
    cancel_requested = models.BooleanField(default=False)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    """When a worker was last told of it."""
    result = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    catalog_version = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["status", "lease_expires_at"], name="run_status_lease"),
            models.Index(fields=["owner", "-created_at"], name="run_owner_created"),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(progress__range=(0.0, 1.0)), name="run_progress_is_a_share"),
            models.CheckConstraint(
                condition=~models.Q(status=RunStatus.RUNNING) | models.Q(lease_expires_at__isnull=False),
                name="run_running_has_a_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}"

    @property
    def is_final(self) -> bool:
        """True when nothing about the run will change any more."""
        return self.status in FINAL_STATUSES
