"""What is for sale, and what its price was on which day."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from catalog.models.base import DatePrecision, Fact
from catalog.models.hardware import InstanceType, Region


class Offer(models.Model):
    """An instance type in a region, bought in one way."""

    instance_type = models.ForeignKey(InstanceType, on_delete=models.PROTECT, related_name="offers")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="offers")
    purchase_option = models.CharField(max_length=20)
    retired = models.BooleanField(default=False)

    class Meta:
        ordering = ["instance_type", "region", "purchase_option"]
        constraints = [
            models.UniqueConstraint(fields=["instance_type", "region", "purchase_option"], name="catalog_offer_key")
        ]

    def __str__(self) -> str:
        return f"{self.instance_type} in {self.region.code}, {self.purchase_option}"


class PriceObservation(models.Model):
    """A price as one source stated it on one day. Its amount never changes: a correction is a new row.

    It holds from ``effective_from`` until the next observation of the same offer, exclusive.
    """

    offer = models.ForeignKey(Offer, on_delete=models.PROTECT, related_name="prices")
    usd_per_node_hour = models.DecimalField(max_digits=16, decimal_places=6)
    currency = models.CharField(max_length=3)
    amount_per_node_hour = models.DecimalField(max_digits=18, decimal_places=6, help_text="In the seller's currency.")
    tax_included = models.BooleanField(default=False)
    observed_on = models.DateField(help_text="The day the source read it; the oldest it can mean.")
    observed_precision = models.CharField(max_length=12, choices=DatePrecision, default=DatePrecision.DAY)
    effective_from = models.DateField()
    effective_to = models.DateField(null=True, blank=True, help_text="Exclusive; empty: current.")
    flags = models.JSONField(default=list, blank=True)
    source = models.TextField()
    notes = models.TextField(blank=True)
    first_seen_at = models.DateTimeField(auto_now_add=True)
    retired = models.BooleanField(default=False)

    class Meta:
        ordering = ["offer", "-observed_on"]
        constraints = [
            models.UniqueConstraint(
                fields=["offer", "observed_on", "source"], condition=Q(retired=False), name="catalog_price_key"
            ),
            models.UniqueConstraint(
                fields=["offer"],
                condition=Q(retired=False, effective_to__isnull=True),
                name="catalog_one_current_price",
            ),
            models.CheckConstraint(condition=Q(usd_per_node_hour__gt=0), name="catalog_price_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.usd_per_node_hour} USD/node-hour on {self.observed_on}"


class TokenPrice(Fact):
    """A token API's list price. An empty price is unknown, never free."""

    provider = models.CharField(max_length=60, help_text="The API's seller.")
    model_key = models.CharField(max_length=120, db_index=True, help_text="The model, by a provider-free name.")
    provider_model_id = models.CharField(max_length=200)
    weights = models.CharField(max_length=10, help_text="open or closed.")
    input_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    output_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    cached_input_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    tier_above_input_tokens = models.PositiveIntegerField(null=True, blank=True)
    tier_input_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    tier_output_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    flags = models.JSONField(default=list, blank=True)
    pricing_page = models.CharField(max_length=300, blank=True)
    as_of_precision = models.CharField(max_length=12, choices=DatePrecision, default=DatePrecision.DAY)
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["provider", "provider_model_id"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "provider_model_id"], name="catalog_token_price_key")
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.provider_model_id}"
