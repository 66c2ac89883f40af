"""How long ranks take to exchange data, by topology: in-node links, PCIe trees, and networks between nodes.

Laws (B bytes a rank, n ranks): all-reduce ``latency(n) + B / (share(n) x link)``; where the group spans
nodes, a hierarchical all-reduce adds ``2 (k - 1)/k x B / (network share)`` over k nodes. ``latency`` and
``share`` are measured by link class and group size, because no law gives them: eight PCIe cards reach 1 GB/s
where two reach 20 (no peer-to-peer across sockets), so a bandwidth that scales with the group is a trap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.units import GB

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LINK_CLASSES: Final = ("nvlink", "nvlink_bridge", "xgmi", "pcie", "ici", "neuronlink", "none")
"""As ``hardware.IntraNodeLink``; ``none`` is treated as PCIe."""


PCIE_BYTES_S_BY_GEN: Final = {3: 16.0 * GB, 4: 32.0 * GB, 5: 64.0 * GB, 6: 128.0 * GB}
"""A x16 slot, one direction, by generation (PCI-SIG)."""
UNSTATED_PCIE_GEN: Final = 4


def pcie_bytes_s(generation: int | None) -> float:
    """One direction of an accelerator's slot; the fourth generation's where none is stated.

    >>> pcie_bytes_s(5)
    64000000000.0
    """
    return PCIE_BYTES_S_BY_GEN.get(generation or UNSTATED_PCIE_GEN, PCIE_BYTES_S_BY_GEN[UNSTATED_PCIE_GEN])


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLaw:
    """One link class, measured at group sizes ``ranks`` (ascending powers of two, from 2)."""

    ranks: tuple[int, ...]
    latency_s: tuple[float, ...]
    share: tuple[float, ...]
    """Algorithm bandwidth (message bytes over time) of large messages over the link's one-way rate."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLaws:
    """Every link class, and the network between nodes."""

    links: Mapping[str, LinkLaw]
    network_latency_s: float
    network_share: float
    """Reached share of the line rate."""
    point_to_point_latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Links of candidates: equal-length arrays."""

    link_class: IntArray
    """Index into ``LINK_CLASSES``."""
    link_bytes_s: FloatArray
    """One direction, one accelerator (the PCIe slot where there is no scale-up link)."""
    domain_gpus: IntArray
    """Accelerators joined by that link."""
    network_bytes_s: FloatArray
    """One accelerator's share of its node's network, one direction."""


def group_rates(laws: CollectiveLaws, topology: Topology, ranks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Latency (s) and algorithm bandwidth (bytes/s) of an all-reduce over ``ranks`` in one domain.

    Between measured sizes both are linear in log2(ranks); beyond the largest they stay.
    """
    latency = np.zeros_like(ranks)
    share = np.ones_like(ranks)
    size = np.log2(np.maximum(ranks, 1.0))
    for index in np.unique(topology.link_class):
        law = laws.links[LINK_CLASSES[index]]
        here = topology.link_class == index
        steps = np.log2(np.asarray(law.ranks, dtype=np.float64))
        latency[here] = np.interp(size[here], steps, law.latency_s)
        share[here] = np.interp(size[here], steps, law.share)
    return latency, share * topology.link_bytes_s


def all_reduce(laws: CollectiveLaws, topology: Topology, ranks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One all-reduce over ``ranks`` GPUs: (latency in s, seconds a message byte); zero for one rank."""
    local = np.minimum(ranks, topology.domain_gpus)
    nodes = np.ceil(ranks / topology.domain_gpus)
    latency, rate = group_rates(laws, topology, local)
    byte_s = 1.0 / rate
    across = nodes > 1
    network_byte_s = 2.0 * (nodes - 1.0) / nodes / (laws.network_share * topology.network_bytes_s * local)
    latency = latency + np.where(across, laws.network_latency_s * np.ceil(np.log2(np.maximum(nodes, 1.0))), 0.0)
    byte_s = byte_s + np.where(across, network_byte_s, 0.0)
    alone = ranks <= 1
    return np.where(alone, 0.0, latency), np.where(alone, 0.0, byte_s)


def all_to_all(laws: CollectiveLaws, topology: Topology, ranks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One exchange of expert inputs or outputs: (latency in s, seconds for each byte a rank sends).

    Of a rank's bytes, the share ``1 - 1/n`` leaves it and ``1 - local/n`` leaves its domain. An all-reduce
    moves every byte twice (2 (n - 1)/n), so one way runs at twice its algorithm bandwidth.
    """
    local = np.minimum(ranks, topology.domain_gpus)
    latency, rate = group_rates(laws, topology, local)
    leaving = np.maximum(1.0 - local / ranks, 0.0)
    byte_s = (1.0 - 1.0 / np.maximum(ranks, 1.0)) / (2.0 * rate)
    network = leaving / (laws.network_share * topology.network_bytes_s)
    byte_s = np.where(leaving > 0, np.maximum(byte_s, network), byte_s)
    latency = latency + np.where(leaving > 0, laws.network_latency_s, 0.0)
    alone = ranks <= 1
    return np.where(alone, 0.0, latency), np.where(alone, 0.0, byte_s)


def point_to_point(
    laws: CollectiveLaws, topology: Topology, ranks_per_stage: FloatArray, stages: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Hand activations through every pipeline stage once: (latency in s, seconds a byte)."""
    inside = ranks_per_stage * stages <= topology.domain_gpus
    rate = np.where(inside, topology.link_bytes_s, laws.network_share * topology.network_bytes_s)
    hops = stages - 1.0
    hop_latency = np.where(inside, laws.point_to_point_latency_s, laws.network_latency_s)
    return hops * hop_latency, hops / np.maximum(rate, 1.0)
