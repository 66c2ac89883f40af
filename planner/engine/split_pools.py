"""Pools that prefill and pools that decode: what each is made of, and what passes between them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from planner.engine.serving_cycle import Cycle
from planner.engine.sizing import Sizing

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillPools:
    """The prefill side of each candidate: equal lengths; no replicas where a candidate isn't split."""

    tensor: IntArray
    pipeline: IntArray
    expert: IntArray
    replicas: IntArray
    capacity_replicas: IntArray
    """What capacity and headroom alone ask for."""
    gpus_per_replica: IntArray
    prompt_s: FloatArray
    transfer_bytes: FloatArray
    """KV cache of one prompt on one GPU of the side that holds more of it a GPU."""
    transfer_s: FloatArray
    utilization: FloatArray

    def take(self, rows: IntArray) -> PrefillPools:
        """Some candidates only, in the order of ``rows``."""
        return PrefillPools(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @staticmethod
    def none(count: int) -> PrefillPools:
        """Of ``count`` candidates that are not split."""
        zero, nothing = np.zeros(count, dtype=np.int64), np.zeros(count)
        return PrefillPools(
            tensor=zero,
            pipeline=zero,
            expert=zero,
            replicas=zero,
            capacity_replicas=zero,
            gpus_per_replica=zero,
            prompt_s=nothing,
            transfer_bytes=nothing,
            transfer_s=nothing,
            utilization=nothing,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransferRates:
    """Bytes of KV of one prompt on a GPU, and bytes a second a GPU moves: arrays over candidates."""

    prompt_bytes: FloatArray
    network_bytes_s: FloatArray
    link_bytes_s: FloatArray
    domain_gpus: FloatArray
    """GPUs joined by the link: both pools inside one such group use it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitSizing:
    """Pairs of layouts, sized; equal lengths."""

    rows: IntArray
    """The decode side's candidate."""
    sizing: Sizing
    """Of the decode side; its estimate is one decode replica's share."""
    prefill: PrefillPools
    cycle: Cycle
