"""Quotes: a draft that can be changed, then one snapshot that can't."""

from __future__ import annotations

from datetime import date

from auditlog.registry import auditlog
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from planner.models.organization import Organization, TenantRow
from planner.models.scenario import ScenarioVersion


class QuoteStatus(models.TextChoices):
    """Where a quote is in its life, as its row says it; an issued one expires by the calendar."""

    DRAFT = "draft", _("Draft")
    ISSUED = "issued", _("Issued")
    ACCEPTED = "accepted", _("Accepted")
    SUPERSEDED = "superseded", _("Superseded")


EXPIRED = "expired"
SHOWN_STATUSES = (*QuoteStatus.values, EXPIRED)


@auditlog.register(include_fields=["title", "status", "number", "terms", "valid_until", "superseded_by"])
class Quote(TenantRow):
    """An offer in writing.

    ``terms`` is what its writer entered. Issuing makes ``snapshot`` of it: every document comes from that, and nothing
    changes it again, whatever happens to catalog, rates or price books.
    """

    title = models.CharField(_("title"), max_length=160)
    status = models.CharField(max_length=10, choices=QuoteStatus, default=QuoteStatus.DRAFT)
    scenario_version = models.ForeignKey(
        ScenarioVersion, null=True, blank=True, on_delete=models.RESTRICT, related_name="quotes"
    )
    terms = models.JSONField(default=dict)
    snapshot = models.JSONField(null=True, blank=True)
    year = models.PositiveSmallIntegerField(null=True, blank=True)
    sequence = models.PositiveIntegerField(null=True, blank=True)
    number = models.CharField(max_length=20, blank=True, default="")
    """``year-sequence``: without gaps in each organization and year."""
    issued_at = models.DateTimeField(null=True, blank=True)
    issued_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    valid_until = models.DateField(null=True, blank=True)
    """The last day it can be accepted."""
    accepted_at = models.DateTimeField(null=True, blank=True)
    superseded_by = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    replaces = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    """The quote that this one takes the place of when it is issued."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["organization", "-created_at"], name="quote_organization_time")]
        constraints = [
            models.UniqueConstraint(fields=["organization", "year", "sequence"], name="quote_number_once"),
            models.CheckConstraint(
                condition=Q(status="draft", snapshot__isnull=True, sequence__isnull=True, number="")
                | (~Q(status="draft") & Q(snapshot__isnull=False, sequence__isnull=False, year__isnull=False)),
                name="quote_issued_is_frozen",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.title}".strip()

    @property
    def is_draft(self) -> bool:
        """True while it can be changed."""
        return self.status == QuoteStatus.DRAFT

    def shown_status(self, today: date) -> str:
        """The status that people see on that day: an issued quote past its last day is expired."""
        is_late = self.valid_until is not None and self.valid_until < today
        return EXPIRED if self.status == QuoteStatus.ISSUED and is_late else self.status


class QuoteCounter(models.Model):
    """The last number given out in an organization and year; locked by whoever issues the next."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    year = models.PositiveSmallIntegerField()
    last = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "year"], name="quote_counter_once")]

    def __str__(self) -> str:
        return f"{self.year}: {self.last}"
