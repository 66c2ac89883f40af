"""What an organization pays: discounts, negotiated prices, commitments, capacity of its own.

Amounts are as the contract states them: currency, per node or per GPU, hour or month, with or without tax. They become
USD per node-hour when a plan reads them. Days are inclusive at both ends; an empty one leaves that end open.
"""

from __future__ import annotations

from auditlog.registry import auditlog
from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from planner.models.organization import TenantRow

PURCHASE_OPTION_LENGTH = 20


class PriceUnit(models.TextChoices):
    """What an amount is for."""

    NODE_HOUR = "node_hour", _("node and hour")
    GPU_HOUR = "gpu_hour", _("GPU and hour")
    NODE_MONTH = "node_month", _("node and month")


@auditlog.register(include_fields=["name", "in_use", "markup_percent", "notes"])
class PriceBook(TenantRow):
    """A named set of prices; plans of the organization use the one that is ``in_use``."""

    name = models.CharField(_("name"), max_length=100)
    in_use = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    """Grows with every change of the book or of what is in it."""
    markup_percent = models.DecimalField(max_digits=7, decimal_places=4, default=0)
    """Added in quotes, as a line of its own: plans show what the organization pays itself."""
    notes = models.TextField(blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="price_book_name_once"),
            models.UniqueConstraint(fields=["organization"], condition=Q(in_use=True), name="price_book_one_in_use"),
            models.CheckConstraint(condition=Q(markup_percent__gte=0), name="price_book_markup_positive"),
        ]

    def __str__(self) -> str:
        return self.name


class PriceBookRow(TenantRow):
    """What every entry of a price book has."""

    price_book = models.ForeignKey(PriceBook, on_delete=models.CASCADE, related_name="+")
    valid_from = models.DateField(null=True, blank=True)
    valid_until = models.DateField(null=True, blank=True)
    """The last day."""
    reference = models.CharField(max_length=200, blank=True, default="")
    """Contract or offer number."""
    attachment = models.ForeignKey(
        "planner.PriceBookFile", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        abstract = True
        ordering = ["created_at", "pk"]


class Amount(models.Model):
    """Money as a contract states it."""

    amount = models.DecimalField(max_digits=18, decimal_places=6)
    currency = models.CharField(max_length=3)
    unit = models.CharField(max_length=12, choices=PriceUnit)
    tax_percent = models.DecimalField(max_digits=7, decimal_places=4, default=0)
    """Tax inside ``amount``, of the price without it; 0: the amount is without tax."""

    class Meta:
        abstract = True


_DATES = ["valid_from", "valid_until", "reference", "attachment"]
_AMOUNT = ["amount", "currency", "unit", "tax_percent"]
_ORDERED_DAYS = Q(valid_from__isnull=True) | Q(valid_until__isnull=True) | Q(valid_until__gte=F("valid_from"))


@auditlog.register(include_fields=["provider", "purchase_options", "percent", *_DATES])
class Discount(PriceBookRow):
    """A share off list prices, of one provider or of every one."""

    provider = models.CharField(max_length=40, blank=True, default="")
    """A provider's code; empty: every provider."""
    purchase_options = models.JSONField(default=list)
    """Empty: every one."""
    percent = models.DecimalField(max_digits=7, decimal_places=4)

    class Meta(PriceBookRow.Meta):
        constraints = [
            models.CheckConstraint(condition=Q(percent__gt=0, percent__lt=100), name="discount_percent_range"),
            models.CheckConstraint(condition=_ORDERED_DAYS, name="discount_days_ordered"),
        ]

    def __str__(self) -> str:
        return f"{self.percent.normalize():f} % off {self.provider or 'every provider'}"


@auditlog.register(
    include_fields=["provider", "instance_type", "region", "country", "purchase_option", "agreed_on", *_AMOUNT, *_DATES]
)
class NegotiatedPrice(PriceBookRow, Amount):
    """What one instance type costs under a contract."""

    provider = models.CharField(max_length=40)
    instance_type = models.CharField(max_length=100)
    region = models.CharField(max_length=60, blank=True, default="")
    """Empty: every region."""
    country = models.CharField(max_length=2, blank=True, default="")
    purchase_option = models.CharField(max_length=PURCHASE_OPTION_LENGTH)
    agreed_on = models.DateField()

    class Meta(PriceBookRow.Meta):
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="negotiated_amount_positive"),
            models.CheckConstraint(condition=_ORDERED_DAYS, name="negotiated_days_ordered"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.instance_type}: {self.amount.normalize():f} {self.currency}"


@auditlog.register(
    include_fields=["provider", "kind", "instance_type", "region", "nodes", "purchase_option", *_AMOUNT, *_DATES]
)
class Commitment(PriceBookRow, Amount):
    """Spend promised to a provider, or nodes bought ahead."""

    class Kind(models.TextChoices):
        """What is promised."""

        SPEND = "spend", _("Spend")
        CAPACITY = "capacity", _("Capacity")

    kind = models.CharField(max_length=10, choices=Kind)
    provider = models.CharField(max_length=40)
    instance_type = models.CharField(max_length=100, blank=True, default="")
    region = models.CharField(max_length=60, blank=True, default="")
    country = models.CharField(max_length=2, blank=True, default="")
    nodes = models.PositiveIntegerField(null=True, blank=True)
    purchase_option = models.CharField(max_length=PURCHASE_OPTION_LENGTH, blank=True, default="")
    unit = models.CharField(max_length=12, choices=PriceUnit, blank=True, default="")
    """Of a capacity's price; a spend is for its whole term."""

    class Meta(PriceBookRow.Meta):
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="commitment_amount_positive"),
            models.CheckConstraint(condition=_ORDERED_DAYS, name="commitment_days_ordered"),
            models.CheckConstraint(
                condition=Q(kind="spend") | (Q(nodes__gt=0) & ~Q(instance_type="") & ~Q(unit="")),
                name="commitment_capacity_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}: {self.get_kind_display()} {self.amount.normalize():f} {self.currency}"


@auditlog.register(
    include_fields=["provider", "name", "accelerator", "gpu_count", "region", "country", "nodes", *_AMOUNT, *_DATES]
)
class PrivateInstanceType(PriceBookRow, Amount):
    """A node nobody else can rent: on premises, or of a local provider."""

    provider = models.CharField(max_length=40)
    name = models.CharField(max_length=100)
    accelerator = models.CharField(max_length=40)
    """Its key in the catalog."""
    gpu_count = models.PositiveSmallIntegerField()
    vcpus = models.FloatField(null=True, blank=True)
    ram_gib = models.FloatField(null=True, blank=True)
    local_disk_gb = models.FloatField(null=True, blank=True)
    link = models.CharField(max_length=20)
    """An ``IntraNodeLink``."""
    link_domain_gpus = models.PositiveSmallIntegerField()
    fabric = models.CharField(max_length=20)
    network_gbit_s = models.FloatField(null=True, blank=True)
    """Node to network, one direction; empty: not known."""
    region = models.CharField(max_length=60)
    country = models.CharField(max_length=2, blank=True, default="")
    nodes = models.PositiveIntegerField(null=True, blank=True)
    """How many there are; empty: any number."""
    purchase_option = models.CharField(max_length=PURCHASE_OPTION_LENGTH)
    agreed_on = models.DateField()

    class Meta(PriceBookRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["price_book", "provider", "name", "region", "purchase_option"], name="private_instance_once"
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="private_amount_positive"),
            models.CheckConstraint(condition=_ORDERED_DAYS, name="private_days_ordered"),
            models.CheckConstraint(condition=Q(gpu_count__gt=0), name="private_gpus_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.name}"


@auditlog.register(include_fields=["name", "media_type", "size_bytes", "sha256"])
class PriceBookFile(TenantRow):
    """A contract or offer, kept as it was uploaded, in the database: every web process can read it, backups hold it."""

    price_book = models.ForeignKey(PriceBook, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=120)
    media_type = models.CharField(max_length=100)
    size_bytes = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    content = models.BinaryField()
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


@auditlog.register(include_fields=["base", "quote", "rate", "rate_date", "source"])
class ExchangeRate(TenantRow):
    """A rate the organization states itself: its bank's, or one that a contract fixes. Comes before the catalog's.

    One unit of ``base`` buys ``rate`` units of ``quote``; one of the two is USD.
    """

    base = models.CharField(max_length=3)
    quote = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=20, decimal_places=8)
    rate_date = models.DateField()
    source = models.CharField(max_length=200)

    class Meta:
        ordering = ["base", "quote", "-rate_date"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "base", "quote", "rate_date"], name="exchange_rate_once"),
            models.CheckConstraint(condition=Q(rate__gt=0), name="exchange_rate_positive"),
            models.CheckConstraint(
                condition=(Q(base="USD") & ~Q(quote="USD")) | (Q(quote="USD") & ~Q(base="USD")),
                name="exchange_rate_of_usd",
            ),
        ]

    def __str__(self) -> str:
        return f"1 {self.base} = {self.rate.normalize():f} {self.quote} on {self.rate_date}"
