"""A small catalog by hand: numbers a reader can check, and knobs the laws turn."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from planner.engine.hardware import Accelerator, CatalogSnapshot, InstanceType, Offer

TODAY = date(2026, 11, 29)


def accelerator(
    key: str = "h100-sxm",
    *,
    memory_bytes: int = 85_520_809_984,
    bandwidth_bytes_s: float = 3.35e12,
    bf16_flops: float = 989e12,
    link_bytes_s: float = 450e9,
) -> Accelerator:
    return Accelerator(
        key=key,
        name=key.upper(),
        vendor="NVIDIA",
        generation="Hopper",
        form_factor="SXM",
        memory_bytes=memory_bytes,
        memory_bandwidth_bytes_s=bandwidth_bytes_s,
        peak_flops={"bf16": bf16_flops, "fp16": bf16_flops, "fp8": 2 * bf16_flops},
        link="NVLink4",
        link_bytes_s=link_bytes_s,
        scaleup_domain_gpus=8,
        pcie_gen=5,
        sm_count=132,
        tdp_w=700,
        compute_capability="9.0",
        confidence="high",
        source="test",
        as_of=TODAY,
    )


def instance(card: Accelerator, gpu_count: int, *, provider: str = "acme", fabric: str = "infiniband") -> InstanceType:
    return InstanceType(
        provider=provider,
        name=f"{card.key}x{gpu_count}",
        accelerator_key=card.key,
        gpu_count=float(gpu_count),
        vcpus=None,
        ram_bytes=None,
        local_disk_bytes=None,
        intra_node_link="nvlink" if gpu_count > 1 else "none",
        link_domain_gpus=gpu_count,
        fabric=fabric,  # type: ignore[arg-type]
        fabric_name="InfiniBand NDR",
        network_bytes_s=gpu_count * 50e9,
        source="test",
        as_of=TODAY,
    )


def offer(
    shape: InstanceType,
    usd_per_node_hour: str,
    *,
    option: str = "on_demand",
    region: str = "r1",
    country: str = "ID",
    as_of: date = TODAY,
) -> Offer:
    return Offer(
        id=f"{shape.provider}-{shape.name}-{region}-{option}",
        provider=shape.provider,
        instance_type=shape.name,
        accelerator_key=shape.accelerator_key,
        gpu_count=shape.gpu_count,
        region=region,
        country=country,
        purchase_option=option,  # type: ignore[arg-type]
        price_usd_per_node_hour=Decimal(usd_per_node_hour),
        as_of=as_of,
        flags=(),
        source="test",
    )


def snapshot(*, card: Accelerator | None = None, usd_per_gpu_hour: str = "2.5") -> CatalogSnapshot:
    """One accelerator in nodes of 1, 2, 4 and 8, in two countries, on demand and spot."""
    card = card or accelerator()
    shapes = [instance(card, count) for count in (1, 2, 4, 8)]
    price = Decimal(usd_per_gpu_hour)
    offers = []
    for shape in shapes:
        node_price = price * int(shape.gpu_count)
        offers.append(offer(shape, str(node_price)))
        offers.append(offer(shape, str(node_price * 2), region="r2", country="SG", as_of=date(2026, 1, 1)))
        offers.append(offer(shape, str(node_price / 2), option="spot"))
    return CatalogSnapshot(
        version="test",
        accelerators={card.key: card},
        instance_types={(shape.provider, shape.name): shape for shape in shapes},
        offers=tuple(offers),
    )
