"""Providers, their regions, accelerators and the instance types that hold them."""

from __future__ import annotations

from django.db import models

from catalog.models.base import DatePrecision, Fact


class Provider(Fact):
    """A seller of accelerator time."""

    class Kind(models.TextChoices):
        """How it publishes prices: decides how fast they age and which prices they are compared with."""

        HYPERSCALER = "hyperscaler"
        NEOCLOUD = "neocloud"
        MARKETPLACE = "marketplace"

    code = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=20, choices=Kind)

    class Meta:
        ordering = ["code"]

    def __str__(self) -> str:
        return self.name


class Region(Fact):
    """A provider's region; codes collide between providers, so both make the key."""

    class Kind(models.TextChoices):
        """What the code stands for."""

        REGION = "region"
        UNSPECIFIED = "unspecified", "country or anywhere, region not stated"
        TIER = "tier", "a tier of hosts, place not stated"

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="regions")
    code = models.CharField(max_length=60)
    country = models.CharField(max_length=2, blank=True, help_text="ISO 3166 alpha-2; empty: not stated.")
    kind = models.CharField(max_length=20, choices=Kind)

    class Meta:
        ordering = ["provider__code", "code"]
        constraints = [models.UniqueConstraint(fields=["provider", "code"], name="catalog_region_key")]

    def __str__(self) -> str:
        return f"{self.provider.code}/{self.code}"


class Accelerator(Fact):
    """One accelerator: dense peaks, driver-visible memory, one-way link rate."""

    key = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    vendor = models.CharField(max_length=20)
    generation = models.CharField(max_length=40)
    product_line = models.CharField(max_length=20)
    form_factor = models.CharField(max_length=20)
    aliases = models.JSONField(default=list, blank=True, help_text="Other names it goes by.")
    memory_bytes = models.BigIntegerField()
    memory_basis = models.CharField(max_length=20, help_text="driver, framework, stated or assumed.")
    memory_marketing_gb = models.FloatField()
    memory_type = models.CharField(max_length=20)
    memory_bandwidth_bytes_s = models.FloatField()
    peak_class = models.CharField(max_length=40)
    peak_flops = models.JSONField(default=dict, blank=True, help_text="Dense FLOP/s by format.")
    l2_bytes = models.BigIntegerField(null=True, blank=True)
    sm_count = models.PositiveIntegerField(null=True, blank=True)
    tdp_w = models.FloatField(null=True, blank=True)
    link_kind = models.CharField(max_length=20)
    link_name = models.CharField(max_length=40)
    link_bytes_s = models.FloatField(default=0, help_text="One direction, all links; 0: no link.")
    scaleup_domain_gpus = models.PositiveIntegerField()
    pcie_gen = models.PositiveSmallIntegerField(null=True, blank=True)
    compute_capability = models.CharField(max_length=20, blank=True)
    launch_year = models.PositiveSmallIntegerField(null=True, blank=True)
    confidence = models.CharField(max_length=10)
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["key"]

    def __str__(self) -> str:
        return self.name


class InstanceType(Fact):
    """One rentable shape: a node, or part of one."""

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="instance_types")
    name = models.CharField(max_length=100)
    accelerator = models.ForeignKey(Accelerator, on_delete=models.PROTECT, related_name="instance_types")
    gpu_count = models.DecimalField(max_digits=10, decimal_places=6, help_text="Fractional for shared cards.")
    vcpus = models.FloatField(null=True, blank=True)
    ram_bytes = models.BigIntegerField(null=True, blank=True)
    local_disk_bytes = models.BigIntegerField(null=True, blank=True)
    intra_node_link = models.CharField(max_length=20)
    link_domain_gpus = models.PositiveIntegerField()
    fabric = models.CharField(max_length=20)
    fabric_name = models.CharField(max_length=80, blank=True)
    network_bytes_s = models.FloatField(null=True, blank=True, help_text="One direction; empty: not stated.")
    basis = models.CharField(max_length=10, help_text="listed: a machine list; offer: only an offer names it.")
    assumption = models.TextField(blank=True, help_text="What the source does not say and was taken as.")
    as_of_precision = models.CharField(max_length=12, choices=DatePrecision, default=DatePrecision.DAY)
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["provider__code", "name"]
        constraints = [models.UniqueConstraint(fields=["provider", "name"], name="catalog_instance_type_key")]

    def __str__(self) -> str:
        return f"{self.provider.code} {self.name}"
