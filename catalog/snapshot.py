"""Building the engine's values from catalog rows."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from catalog.models import Accelerator as AcceleratorRow
from catalog.models import InstanceType as InstanceTypeRow
from catalog.models import PriceAgeLimit, PriceObservation
from catalog.models.base import DatePrecision
from planner.engine.hardware import Accelerator, CatalogSnapshot, InstanceType, Offer

IMPRECISE_DATE = "imprecise_date"
"""Flag of a price whose source states a month, a year or a range: its age is the oldest it can be."""


def build_snapshot(version: str) -> CatalogSnapshot:
    """The rows that are not retired, as one ``CatalogSnapshot``."""
    return CatalogSnapshot(
        version=version,
        accelerators={row.key: _accelerator(row) for row in AcceleratorRow.objects.filter(retired=False)},
        instance_types={
            (row.provider.code, row.name): _instance_type(row)
            for row in InstanceTypeRow.objects.filter(retired=False).select_related("provider", "accelerator")
        },
        offers=_current_offers(),
    )


def _accelerator(row: AcceleratorRow) -> Accelerator:
    return Accelerator(
        key=row.key,
        name=row.name,
        vendor=row.vendor,
        generation=row.generation,
        form_factor=row.form_factor,
        memory_bytes=row.memory_bytes,
        memory_bandwidth_bytes_s=row.memory_bandwidth_bytes_s,
        peak_flops=row.peak_flops,
        link=row.link_kind,
        link_name=row.link_name,
        link_bytes_s=row.link_bytes_s,
        scaleup_domain_gpus=row.scaleup_domain_gpus,
        pcie_gen=row.pcie_gen,
        sm_count=row.sm_count,
        tdp_w=row.tdp_w,
        compute_capability=row.compute_capability,
        confidence=row.confidence,
        source=row.source,
        as_of=row.as_of,
    )


def _instance_type(row: InstanceTypeRow) -> InstanceType:
    return InstanceType(
        provider=row.provider.code,
        name=row.name,
        accelerator_key=row.accelerator.key,
        gpu_count=float(row.gpu_count),
        vcpus=row.vcpus,
        ram_bytes=row.ram_bytes,
        local_disk_bytes=row.local_disk_bytes,
        intra_node_link=row.intra_node_link,  # type: ignore[arg-type]  # the loader allows no other
        link_domain_gpus=row.link_domain_gpus,
        fabric=row.fabric,  # type: ignore[arg-type]
        fabric_name=row.fabric_name,
        network_bytes_s=row.network_bytes_s,
        source=row.source,
        as_of=row.as_of,
    )


def age_limits() -> dict[tuple[str, str], int]:
    """Days after which a price is stale, by provider kind and purchase option."""
    rows = PriceAgeLimit.objects.filter(retired=False)
    return {(row.provider_kind, row.purchase_option): row.limit_days for row in rows}


def _current_offers() -> tuple[Offer, ...]:
    limits = age_limits()
    rows = (
        PriceObservation.objects.filter(retired=False, effective_to=None, offer__retired=False)
        .order_by("offer__instance_type__provider__code", "offer__instance_type__name", "offer__region__code")
        .values_list(
            "offer__instance_type__provider__code",
            "offer__instance_type__provider__kind",
            "offer__instance_type__name",
            "offer__instance_type__accelerator__key",
            "offer__instance_type__gpu_count",
            "offer__region__code",
            "offer__region__country",
            "offer__purchase_option",
            "usd_per_node_hour",
            "observed_on",
            "observed_precision",
            "flags",
            "source",
        )
    )
    return tuple(_offer(limits, *row) for row in rows)


def _offer(
    limits: Mapping[tuple[str, str], int],
    provider: str,
    kind: str,
    instance_type: str,
    accelerator: str,
    gpu_count: Decimal,
    region: str,
    country: str,
    option: str,
    price: Decimal,
    observed_on: object,
    precision: str,
    flags: list[str],
    source: str,
) -> Offer:
    extra = [] if precision == DatePrecision.DAY else [IMPRECISE_DATE]
    return Offer(
        id=offer_id(provider, instance_type, region, option),
        provider=provider,
        instance_type=instance_type,
        accelerator_key=accelerator,
        gpu_count=float(gpu_count),
        region=region,
        country=country,
        purchase_option=option,  # type: ignore[arg-type]
        price_usd_per_node_hour=price,
        as_of=observed_on,  # type: ignore[arg-type]
        flags=tuple(flags + extra),
        source=source,
        age_limit_days=limits[kind, option],
    )


def offer_id(provider: str, instance_type: str, region: str, option: str) -> str:
    """An offer's stable id, the same for every price it ever had.

    >>> offer_id("aws", "p5.48xlarge", "us-east-1", "on_demand")
    'aws/p5.48xlarge/us-east-1/on_demand'
    """
    return f"{provider}/{instance_type}/{region}/{option}"
