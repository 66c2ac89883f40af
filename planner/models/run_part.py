"""A part of a job that any worker may do: claimed and leased like the job itself."""

from __future__ import annotations

from django.db import models

from planner.models.run import Run, RunStatus


class RunPart(models.Model):
    """One independent part of a running job; gone once the job has ended."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    """Place among the job's parts, in the order in which the job asked for them."""
    task = models.JSONField()
    """What to do, beside the job's parameters."""
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    progress = models.FloatField(default=0.0)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    result = models.BinaryField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["run_id", "number"]
        indexes = [models.Index(fields=["status", "lease_expires_at"], name="part_status_lease")]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="part_number_once_a_run"),
            models.CheckConstraint(
                condition=~models.Q(status=RunStatus.RUNNING) | models.Q(lease_expires_at__isnull=False),
                name="part_running_has_a_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"part {self.number} of {self.run_id}"
