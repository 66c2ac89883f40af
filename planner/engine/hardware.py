"""Hardware and prices as values: what the catalog hands to the engine.

Peaks are dense FLOP/s, link and network rates are bytes per second in one direction, memory is what
the driver shows. ``None`` means unknown or unsupported: it is never treated as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

IntraNodeLink = Literal["nvlink", "nvlink_bridge", "xgmi", "pcie", "ici", "neuronlink", "none"]
Fabric = Literal["infiniband", "roce", "efa", "ethernet", "none"]
PurchaseOption = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "marketplace", "monthly", "capacity_block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as the driver sees it."""

    key: str
    name: str
    vendor: str
    generation: str
    """Architecture: Hopper, Blackwell, CDNA3 ..."""
    form_factor: str
    memory_bytes: int
    """Driver-visible."""
    memory_bandwidth_bytes_s: float
    peak_flops: Mapping[str, float]
    """Dense FLOP/s by format: fp32, tf32, bf16, fp16, fp8, int8, fp6, fp4. A missing key: no such path."""
    link: str
    """Scale-up link as an ``IntraNodeLink``: nvlink, nvlink_bridge, xgmi, ici, neuronlink or none."""
    link_bytes_s: float
    """Scale-up link, one direction, all links of one accelerator together; 0 where there is none."""
    scaleup_domain_gpus: int
    pcie_gen: int | None
    sm_count: int | None
    """SMs, CUs, tensor cores of a TPU or NeuronCores: what one kernel wave fills."""
    tdp_w: float | None
    compute_capability: str
    confidence: str
    source: str
    as_of: date
    link_name: str = ""
    """The link's own name, e.g. ``NVLink4``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One rentable shape: a node, or part of one."""

    provider: str
    name: str
    accelerator_key: str
    gpu_count: float
    """Fractional for shared cards."""
    vcpus: float | None
    ram_bytes: int | None
    local_disk_bytes: int | None
    intra_node_link: IntraNodeLink
    link_domain_gpus: int
    """Accelerators that share the scale-up link: the node's, or 72 for a rack-scale domain; 1 without."""
    fabric: Fabric
    fabric_name: str
    network_bytes_s: float | None
    """Node to network, one direction; None where the provider doesn't say."""
    source: str
    as_of: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One price: an instance type in a region, by purchase option, on a date."""

    id: str
    provider: str
    instance_type: str
    accelerator_key: str
    gpu_count: float
    region: str
    country: str
    """ISO 3166 alpha-2; empty where the provider doesn't say."""
    purchase_option: PurchaseOption
    price_usd_per_node_hour: Decimal
    as_of: date
    flags: tuple[str, ...]
    source: str
    age_limit_days: int = 90
    """Older than this, the price is called stale: days for spot, weeks for list prices."""
    available_nodes: int | None = None
    """Most nodes to be had at this price; None: not stated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CatalogSnapshot:
    """Everything one plan reads, as of one catalog version; compared and hashed by identity."""

    version: str
    accelerators: Mapping[str, Accelerator]
    instance_types: Mapping[tuple[str, str], InstanceType]
    """Keyed by (provider, name)."""
    offers: tuple[Offer, ...]
    prices: str = "list prices"
    """What the prices are, in a sentence's words."""
