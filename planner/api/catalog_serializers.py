"""How the catalog's facts are written: units in the names, money as decimal texts, unknown as null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from catalog.models import Accelerator, InstanceType, ModelArchitecture, PriceObservation, TokenPrice
from planner.api.components import MONEY
from planner.engine.arch_spec import arch_from_spec
from planner.engine.cost import HOURLY, quantize
from planner.engine.param_count import count_parameters
from planner.engine.units import bytes_to_gib

_FACT = ["source", "as_of"]


class CountryField(serializers.CharField):
    """A country code; null where the source states none."""

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


class GpuSerializer(serializers.ModelSerializer[Accelerator]):
    """One accelerator. FLOP/s are dense, link rates are of one direction."""

    memory_gib = serializers.SerializerMethodField(help_text="What the driver shows, in GiB (2^30).")
    peak_flops = serializers.DictField(child=serializers.FloatField(), help_text="Dense FLOP/s by format.")
    aliases = serializers.ListField(child=serializers.CharField(), help_text="Other names it goes by.")

    class Meta:
        model = Accelerator
        fields = [
            "key",
            "name",
            "vendor",
            "generation",
            "product_line",
            "form_factor",
            "aliases",
            "memory_bytes",
            "memory_gib",
            "memory_basis",
            "memory_marketing_gb",
            "memory_type",
            "memory_bandwidth_bytes_s",
            "peak_flops",
            "l2_bytes",
            "sm_count",
            "tdp_w",
            "link_kind",
            "link_name",
            "link_bytes_s",
            "scaleup_domain_gpus",
            "pcie_gen",
            "compute_capability",
            "launch_year",
            "confidence",
            "notes",
            *_FACT,
        ]

    def get_memory_gib(self, row: Accelerator) -> float:
        return bytes_to_gib(row.memory_bytes)


class InstanceTypeSerializer(serializers.ModelSerializer[InstanceType]):
    """One rentable node, or part of one."""

    provider = serializers.CharField(source="provider.code")
    accelerator = serializers.CharField(source="accelerator.key", help_text="The key of a GPU in catalog/gpus.")
    gpu_count = serializers.FloatField(help_text="Fractional for shared cards.")

    class Meta:
        model = InstanceType
        fields = [
            "provider",
            "name",
            "accelerator",
            "gpu_count",
            "vcpus",
            "ram_bytes",
            "local_disk_bytes",
            "intra_node_link",
            "link_domain_gpus",
            "fabric",
            "fabric_name",
            "network_bytes_s",
            "basis",
            "assumption",
            "as_of_precision",
            "notes",
            *_FACT,
        ]


class OfferSerializer(serializers.ModelSerializer[PriceObservation]):
    """One instance type in one region bought one way, at its current price.

    ``context["age_limits"]`` are the days after which a price is stale, by provider kind and purchase option.
    """

    id = serializers.CharField(source="list_key", help_text="Stays the same when the price changes.")
    provider = serializers.CharField(source="offer.instance_type.provider.code")
    instance_type = serializers.CharField(source="offer.instance_type.name")
    accelerator = serializers.CharField(
        source="offer.instance_type.accelerator.key", help_text="The key of a GPU in catalog/gpus."
    )
    gpu_count = serializers.FloatField(source="offer.instance_type.gpu_count", help_text="On one node.")
    region = serializers.CharField(source="offer.region.code")
    country = CountryField(
        source="offer.region.country", allow_null=True, help_text="ISO 3166 alpha-2; null: not stated."
    )
    purchase_option = serializers.CharField(source="offer.purchase_option")
    usd_per_gpu_hour = serializers.SerializerMethodField(help_text="The node's price over its GPUs.")
    as_of = serializers.DateField(source="observed_on", help_text="The day the price was read; the oldest it can mean.")
    as_of_precision = serializers.CharField(source="observed_precision", help_text="How exactly the day is known.")
    age_days = serializers.SerializerMethodField(help_text="Days since then, today.")
    is_stale = serializers.SerializerMethodField(help_text="Older than the limit of its provider and purchase option.")
    flags = serializers.ListField(child=serializers.CharField(), help_text="What is odd about it.")

    class Meta:
        model = PriceObservation
        fields = [
            "id",
            "provider",
            "instance_type",
            "accelerator",
            "gpu_count",
            "region",
            "country",
            "purchase_option",
            "usd_per_gpu_hour",
            "usd_per_node_hour",
            "currency",
            "amount_per_node_hour",
            "tax_included",
            "as_of",
            "as_of_precision",
            "age_days",
            "is_stale",
            "flags",
            "source",
            "notes",
        ]

    @extend_schema_field(MONEY)
    def get_usd_per_gpu_hour(self, row: PriceObservation) -> str:
        return format(quantize(row.usd_per_node_hour / row.offer.instance_type.gpu_count, HOURLY), "f")

    def get_age_days(self, row: PriceObservation) -> int:
        return (timezone.localdate() - row.observed_on).days

    def get_is_stale(self, row: PriceObservation) -> bool:
        limits: Mapping[tuple[str, str], int] = self.context["age_limits"]
        return self.get_age_days(row) > limits[row.offer.instance_type.provider.kind, row.offer.purchase_option]


class ModelArchitectureSerializer(serializers.ModelSerializer[ModelArchitecture]):
    """One model that can be planned by its name, its Hugging Face id or an alias."""

    aliases = serializers.ListField(child=serializers.CharField())
    total_params = serializers.SerializerMethodField(help_text="Exact: what memory holds.")
    active_params = serializers.SerializerMethodField(help_text="Used by one token: what computing takes.")
    spec = serializers.DictField(help_text="The layers, as the engine reads them.")

    class Meta:
        model = ModelArchitecture
        fields = ["name", "hf_id", "aliases", "total_params", "active_params", "license", "release", "spec", *_FACT]

    def get_total_params(self, row: ModelArchitecture) -> int:
        return count_parameters(arch_from_spec(row.spec)).total

    def get_active_params(self, row: ModelArchitecture) -> int:
        return count_parameters(arch_from_spec(row.spec)).active


class TokenPriceSerializer(serializers.ModelSerializer[TokenPrice]):
    """What a token API asks for one model: USD per million tokens. Null is unknown, never free."""

    flags = serializers.ListField(child=serializers.CharField(), help_text="What is odd about it.")

    class Meta:
        model = TokenPrice
        fields: list[Any] = [
            "provider",
            "model_key",
            "provider_model_id",
            "weights",
            "input_usd_per_mtok",
            "output_usd_per_mtok",
            "cached_input_usd_per_mtok",
            "tier_above_input_tokens",
            "tier_input_usd_per_mtok",
            "tier_output_usd_per_mtok",
            "flags",
            "pricing_page",
            "as_of_precision",
            "notes",
            *_FACT,
        ]
