"""One kind of node as training sees it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.engine.training.profile import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHardware:
    """What training needs to know of one kind of node."""

    gpus: int
    peak_flops: float
    """Of the recipe's format."""
    peak_flops_16bit: float
    power_share: float
    memory_bytes: float
    memory_bandwidth_bytes_s: float
    link_bytes_s: float
    link_is_shared: bool
    """PCIe without peer-to-peer: the rate falls with the square of the group."""
    link_domain_gpus: int
    network_bytes_s: float
    """One GPU's share; what leaves a scale-up domain inside a lone node goes over PCIe."""
    host_bytes_s: float
    """Between one GPU and its host."""
    context: Context


def hardware_columns(node: NodeHardware) -> dict[str, float]:
    """What the candidates' columns say of a kind of node."""
    return {
        "power_share": node.power_share,
        "peak_flops": node.peak_flops,
        "peak_flops_16bit": node.peak_flops_16bit,
        "memory_bandwidth_bytes_s": node.memory_bandwidth_bytes_s,
        "memory_bytes": node.memory_bytes,
        "link_bytes_s": node.link_bytes_s,
        "link_is_shared": float(node.link_is_shared),
        "link_domain_gpus": float(node.link_domain_gpus),
        "gpus_per_node": float(max(node.gpus, node.link_domain_gpus)),
        "network_bytes_s": node.network_bytes_s,
        "host_bytes_s": node.host_bytes_s,
    }
