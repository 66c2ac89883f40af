"""Exchange rates, taxes, carbon and how long prices stay fresh."""

from __future__ import annotations

from django.db import models

from catalog.models.base import DatePrecision, Fact
from catalog.models.hardware import Provider


class FxRate(Fact):
    """One unit of ``base`` buys ``rate`` units of ``quote``."""

    base = models.CharField(max_length=3)
    quote = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=18, decimal_places=8)
    rate_date = models.DateField()
    date_precision = models.CharField(max_length=12, choices=DatePrecision, default=DatePrecision.DAY)

    class Meta:
        verbose_name = "exchange rate"
        ordering = ["base", "quote", "-rate_date"]
        constraints = [models.UniqueConstraint(fields=["base", "quote", "rate_date"], name="catalog_fx_key")]

    def __str__(self) -> str:
        return f"1 {self.base} = {self.rate} {self.quote} on {self.rate_date}"


class TaxRule(Fact):
    """A sales tax: ``rate`` on ``base_numerator / base_denominator`` of the price, while valid."""

    country = models.CharField(max_length=2)
    name = models.CharField(max_length=40)
    rate = models.DecimalField(max_digits=6, decimal_places=4)
    base_numerator = models.PositiveSmallIntegerField(default=1)
    base_denominator = models.PositiveSmallIntegerField(default=1)
    valid_from = models.DateField()
    valid_to = models.DateField(null=True, blank=True, help_text="Exclusive; empty: in force.")
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["country", "name", "-valid_from"]
        constraints = [models.UniqueConstraint(fields=["country", "name", "valid_from"], name="catalog_tax_key")]

    def __str__(self) -> str:
        return f"{self.country} {self.name} {self.rate} x {self.base_numerator}/{self.base_denominator}"


class CarbonFactor(Fact):
    """Grid intensity, PUE or an energy coefficient. Location- and market-based figures never mix."""

    class Kind(models.TextChoices):
        """What the value is."""

        GRID_COUNTRY = "grid_country", "grid of a country"
        GRID_REGION = "grid_region", "grid of a region"
        PUE = "pue", "power usage effectiveness"
        COEFFICIENT = "coefficient", "energy coefficient"

    kind = models.CharField(max_length=20, choices=Kind)
    country = models.CharField(max_length=2, blank=True)
    provider = models.CharField(max_length=40, blank=True)
    region = models.CharField(max_length=60, blank=True)
    name = models.CharField(max_length=40, blank=True)
    method = models.CharField(max_length=10, blank=True, help_text="location or market; empty where neither applies.")
    value = models.FloatField()
    unit = models.CharField(max_length=30)
    data_year = models.PositiveSmallIntegerField()
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["kind", "country", "provider", "region"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "country", "provider", "region", "name", "method"], name="catalog_carbon_key"
            )
        ]

    def __str__(self) -> str:
        place = self.country or "/".join(part for part in (self.provider, self.region) if part) or self.name
        return f"{self.get_kind_display()} {place}: {self.value} {self.unit}"


class PriceAgeLimit(Fact):
    """After how many days a price of this kind is shown as stale."""

    provider_kind = models.CharField(max_length=20, choices=Provider.Kind)
    purchase_option = models.CharField(max_length=20)
    limit_days = models.PositiveIntegerField()

    class Meta:
        ordering = ["provider_kind", "purchase_option"]
        constraints = [
            models.UniqueConstraint(fields=["provider_kind", "purchase_option"], name="catalog_price_age_key")
        ]

    def __str__(self) -> str:
        return f"{self.provider_kind} {self.purchase_option}: {self.limit_days} days"
