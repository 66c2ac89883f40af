"""The catalog in the admin: to look things up and to see where they come from.

Everything is read only: the data files are the source of truth, and a row edited here would be undone
by the next load while its version still claimed to be the files' own.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import F, Model, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from catalog.models import (
    Accelerator,
    CarbonFactor,
    CatalogVersion,
    FxRate,
    InstanceType,
    ModelArchitecture,
    Offer,
    PriceAgeLimit,
    PriceObservation,
    Provider,
    Region,
    TaxRule,
    TokenPrice,
)
from planner.engine.units import GB, GIB, TERA

if TYPE_CHECKING:
    TableAdmin = admin.ModelAdmin[Any]
    PriceTable = admin.TabularInline[PriceObservation, Offer]
else:
    # Generic for the type checker only.
    TableAdmin = admin.ModelAdmin
    PriceTable = admin.TabularInline

UNKNOWN = "-"


class FactAdmin(TableAdmin):
    """A table to read, with its provenance."""

    list_per_page = 50
    show_full_result_count = False

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """The row first, where it comes from last."""
        fields = list(self.get_fields(request, obj))
        origin = [name for name in ("source", "as_of", "as_of_precision", "notes", "retired") if name in fields]
        rest = [name for name in fields if name not in origin]
        return [(None, {"fields": rest}), ("Provenance", {"fields": origin})]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _amount(value: float | None, unit: float) -> str:
    return UNKNOWN if value is None else f"{value / unit:,.4g}"


@admin.register(CatalogVersion)
class CatalogVersionAdmin(FactAdmin):
    list_display = ["version", "loaded_at", "content_hash"]


@admin.register(Provider)
class ProviderAdmin(FactAdmin):
    list_display = ["name", "code", "kind", "retired"]
    list_filter = ["kind", "retired"]
    search_fields = ["name", "code"]


@admin.register(Region)
class RegionAdmin(FactAdmin):
    list_display = ["provider", "code", "country", "kind", "as_of"]
    list_filter = ["kind", "provider", "country"]
    list_select_related = ["provider"]
    search_fields = ["code", "country", "provider__name"]


@admin.register(Accelerator)
class AcceleratorAdmin(FactAdmin):
    list_display = [
        "name",
        "vendor",
        "generation",
        "form_factor",
        "memory_gib",
        "bandwidth_tb_s",
        "bf16_tflops",
        "fp8_tflops",
        "link_gb_s",
        "confidence",
        "as_of",
    ]
    list_filter = ["vendor", "generation", "product_line", "form_factor", "link_kind", "confidence", "retired"]
    search_fields = ["key", "name", "aliases"]

    @admin.display(description="memory, GiB", ordering="memory_bytes")
    def memory_gib(self, row: Accelerator) -> str:
        return _amount(row.memory_bytes, GIB)

    @admin.display(description="bandwidth, TB/s", ordering="memory_bandwidth_bytes_s")
    def bandwidth_tb_s(self, row: Accelerator) -> str:
        return _amount(row.memory_bandwidth_bytes_s, TERA)

    @admin.display(description="bf16 dense, TFLOP/s", ordering="peak_flops__bf16")
    def bf16_tflops(self, row: Accelerator) -> str:
        return _amount(row.peak_flops.get("bf16"), TERA)

    @admin.display(description="fp8 dense, TFLOP/s", ordering="peak_flops__fp8")
    def fp8_tflops(self, row: Accelerator) -> str:
        return _amount(row.peak_flops.get("fp8"), TERA)

    @admin.display(description="link one way, GB/s", ordering="link_bytes_s")
    def link_gb_s(self, row: Accelerator) -> str:
        return _amount(row.link_bytes_s or None, GB)


@admin.register(InstanceType)
class InstanceTypeAdmin(FactAdmin):
    list_display = [
        "name",
        "provider",
        "accelerator",
        "gpus",
        "vcpus",
        "ram_gib",
        "intra_node_link",
        "link_domain_gpus",
        "network",
        "basis",
        "as_of",
    ]
    list_filter = ["provider", "basis", "intra_node_link", "fabric", "accelerator", "retired"]
    list_select_related = ["provider", "accelerator"]
    search_fields = ["name", "accelerator__name", "accelerator__key", "provider__name"]

    @admin.display(description="accelerators", ordering="gpu_count")
    def gpus(self, row: InstanceType) -> str:
        return f"{row.gpu_count:.4g}"

    @admin.display(description="RAM, GiB", ordering="ram_bytes")
    def ram_gib(self, row: InstanceType) -> str:
        return _amount(row.ram_bytes, GIB)

    @admin.display(description="network one way, GB/s", ordering="network_bytes_s")
    def network(self, row: InstanceType) -> str:
        return f"{row.fabric_name}, {_amount(row.network_bytes_s, GB)}"


class PriceInline(PriceTable):
    """An offer's price history, newest first."""

    model = PriceObservation
    extra = 0
    can_delete = False
    ordering = ["-observed_on"]
    fields = ["observed_on", "usd_per_node_hour", "currency", "effective_to", "flags", "source", "retired"]


@admin.register(Offer)
class OfferAdmin(FactAdmin):
    list_display = ["instance_type", "region", "purchase_option", "retired"]
    list_filter = ["purchase_option", "instance_type__provider", "instance_type__accelerator", "retired"]
    list_select_related = ["instance_type__provider", "region__provider"]
    search_fields = ["instance_type__name", "region__code", "region__country"]
    inlines = [PriceInline]


@admin.register(PriceObservation)
class PriceObservationAdmin(FactAdmin):
    list_display = [
        "instance_type",
        "region",
        "option",
        "usd_per_node_hour",
        "usd_per_gpu_hour",
        "observed_on",
        "age",
        "is_current",
        "flag_list",
    ]
    list_filter = [
        "offer__purchase_option",
        "offer__instance_type__provider",
        "currency",
        "observed_precision",
        ("effective_to", admin.EmptyFieldListFilter),
        "retired",
    ]
    search_fields = ["offer__instance_type__name", "offer__region__code", "source", "flags"]
    date_hierarchy = "observed_on"
    list_select_related = ["offer__instance_type__provider", "offer__region__provider"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PriceObservation]:
        per_gpu = F("usd_per_node_hour") / F("offer__instance_type__gpu_count")
        limit = PriceAgeLimit.objects.filter(
            provider_kind=OuterRef("offer__instance_type__provider__kind"),
            purchase_option=OuterRef("offer__purchase_option"),
            retired=False,
        )
        return PriceObservation.objects.annotate(per_gpu=per_gpu, limit_days=Subquery(limit.values("limit_days")[:1]))

    @admin.display(description="instance type", ordering="offer__instance_type__name")
    def instance_type(self, row: PriceObservation) -> str:
        return str(row.offer.instance_type)

    @admin.display(description="region", ordering="offer__region__code")
    def region(self, row: PriceObservation) -> str:
        return row.offer.region.code

    @admin.display(description="option", ordering="offer__purchase_option")
    def option(self, row: PriceObservation) -> str:
        return row.offer.purchase_option

    @admin.display(description="USD per GPU-hour", ordering="per_gpu")
    def usd_per_gpu_hour(self, row: PriceObservation) -> Decimal:
        return round(row.usd_per_node_hour / row.offer.instance_type.gpu_count, 6)

    @admin.display(description="price age", ordering="-observed_on")
    def age(self, row: PriceObservation) -> SafeString:
        days = (timezone.localdate() - row.observed_on).days
        limit: int | None = getattr(row, "limit_days", None)
        if limit is not None and days > limit:
            return format_html('<strong title="older than {} days">{}&nbsp;d,&nbsp;stale</strong>', limit, days)
        return format_html("{}&nbsp;d", days)

    @admin.display(description="current", boolean=True)
    def is_current(self, row: PriceObservation) -> bool:
        return row.effective_to is None and not row.retired

    @admin.display(description="flags")
    def flag_list(self, row: PriceObservation) -> str:
        return ", ".join(row.flags)


@admin.register(TokenPrice)
class TokenPriceAdmin(FactAdmin):
    list_display = [
        "provider_model_id",
        "provider",
        "model_key",
        "input_usd_per_mtok",
        "output_usd_per_mtok",
        "cached_input_usd_per_mtok",
        "weights",
        "as_of",
    ]
    list_filter = ["provider", "weights", "retired"]
    search_fields = ["provider_model_id", "model_key", "provider"]


@admin.register(ModelArchitecture)
class ModelArchitectureAdmin(FactAdmin):
    list_display = ["name", "hf_id", "published_total_params_b", "license", "release", "as_of"]
    list_filter = ["license", "retired"]
    search_fields = ["name", "hf_id", "aliases"]


@admin.register(FxRate)
class FxRateAdmin(FactAdmin):
    list_display = ["base", "quote", "rate", "rate_date", "source"]
    list_filter = ["base", "quote"]


@admin.register(TaxRule)
class TaxRuleAdmin(FactAdmin):
    list_display = ["country", "name", "rate", "base_numerator", "base_denominator", "valid_from", "valid_to"]
    list_filter = ["country"]


@admin.register(CarbonFactor)
class CarbonFactorAdmin(FactAdmin):
    list_display = ["kind", "country", "provider", "region", "name", "method", "value", "unit", "data_year"]
    list_filter = ["kind", "method", "country", "provider"]
    search_fields = ["country", "provider", "region", "name"]


@admin.register(PriceAgeLimit)
class PriceAgeLimitAdmin(FactAdmin):
    list_display = ["provider_kind", "purchase_option", "limit_days", "as_of"]
    list_filter = ["provider_kind", "purchase_option"]
