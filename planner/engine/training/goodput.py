"""The run, not the step: failures, checkpoints, restarts, and the share of wall time that advances it.

Waste per unit of time is ``delta / tau + tau / (2 M) + R / M``: writing checkpoints, work lost since the
last one, restarting. Young's interval ``sqrt(2 delta M)`` minimises it (CACM 17(9), 1974). Spot nodes taken back
are interruptions too; where a node is lost and no spare is ready, the job waits for a replacement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

FloatArray = NDArray[np.float64]
Num = float | FloatArray

GPU_HOURS_PER_INTERRUPTION: Final = 54 * 24 * 16_384 / 419
"""Llama 3 405B, 16,384 H100, 54 days, 419 unexpected interruptions (arXiv 2407.21783, table 5): 50,677."""
LOST_NODE_SHARE: Final = 0.78
"""Of interruptions that take a node out: confirmed or suspected hardware (the same table)."""
CHECKPOINT_BYTES_PER_PARAM: Final = 14.0
"""16-bit weights, fp32 master and two fp32 moments (BLOOM-176B wrote 13.07, chronicles 2022)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How often a fleet stops, and what a stop and a checkpoint cost."""

    gpu_hours_per_interruption: float = GPU_HOURS_PER_INTERRUPTION
    restart_s: float = 600.0
    checkpoint_stall_s: float = 10.0
    """Time a checkpoint stops training; asynchronous writing leaves seconds."""
    checkpoint_interval_s: float | None = None
    """None: Young's, which wastes least."""
    spot_per_node_day: float = 0.0
    """Times a day that one node is taken back."""
    spare_nodes: int = 0
    """Rented and idle until a node is lost."""
    replacement_s: float = 0.0
    """Until a lost node is replaced."""


def mean_time_to_interruption_s(gpus: Num, reliability: Reliability, nodes: Num = 0.0) -> Num:
    """Seconds between interruptions of a job on ``gpus`` GPUs of ``nodes`` nodes (nodes count where they are spot).

    >>> round(float(mean_time_to_interruption_s(16_384, Reliability())) / 3600, 3)
    3.093
    """
    return 1.0 / _interruptions_per_s(gpus, reliability, nodes)[0]


def _interruptions_per_s(gpus: Num, reliability: Reliability, nodes: Num) -> tuple[FloatArray, FloatArray]:
    """(all interruptions, those that take a node out) a second."""
    failures = np.asarray(gpus, dtype=np.float64) / (reliability.gpu_hours_per_interruption * SECONDS_PER_HOUR)
    taken = np.asarray(nodes, dtype=np.float64) * reliability.spot_per_node_day / SECONDS_PER_DAY
    return failures + taken, LOST_NODE_SHARE * failures + taken


def stop_s(gpus: Num, reliability: Reliability, nodes: Num = 0.0) -> FloatArray:
    """Mean seconds that one interruption stops a job beyond the work it undoes: restart, and waiting for a node.

    A lost node is waited for where the spares are out: the nodes being replaced are Poisson with mean
    rate x replacement time, and there is a wait where they are at least as many as the spares.

    >>> round(float(stop_s(1024, Reliability(replacement_s=3600))))  # 78 % of stops wait an hour
    3408
    >>> round(float(stop_s(1024, Reliability(replacement_s=3600, spare_nodes=1))))
    644
    """
    every, lost = _interruptions_per_s(gpus, reliability, nodes)
    mean = lost * reliability.replacement_s
    has_spare = _poisson_below(reliability.spare_nodes, mean)
    wait = reliability.replacement_s * (1.0 - has_spare) * lost / every
    return np.asarray(reliability.restart_s + wait)


def _poisson_below(count: int, mean: FloatArray) -> FloatArray:
    """Probability that a Poisson variable is less than ``count``, in logarithms: powers of a large mean overflow."""
    log_mean = np.log(np.maximum(mean, np.finfo(np.float64).tiny))
    terms = [np.exp(k * log_mean - mean - math.lgamma(k + 1)) for k in range(count)]
    return np.sum(terms, axis=0) if terms else np.zeros_like(mean)


def young_interval_s(stall_s: Num, mtti_s: Num) -> Num:
    """Seconds between checkpoints that waste least: ``sqrt(2 delta M)``.

    >>> int(young_interval_s(10.0, 3.093 * 3600))
    471
    """
    return np.sqrt(2.0 * np.asarray(stall_s) * mtti_s)


def daly_interval_s(stall_s: float, mtti_s: float) -> float:
    """Daly's interval (FGCS 22(3), 2006): Young's with its higher-order terms, less the stall."""
    if stall_s >= 2.0 * mtti_s:
        return mtti_s
    ratio = stall_s / (2.0 * mtti_s)
    return float(np.sqrt(2.0 * stall_s * mtti_s) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - stall_s)


def waste(stall_s: Num, interval_s: Num, mtti_s: Num, restart_s: Num) -> Num:
    """Share of time lost to checkpoints, to work done twice and to restarts.

    >>> round(float(waste(10.0, young_interval_s(10.0, 11_134.8), 11_134.8, 600.0)), 3)
    0.096
    """
    return stall_s / interval_s + interval_s / (2.0 * np.asarray(mtti_s)) + restart_s / np.asarray(mtti_s)


def interval_s(gpus: Num, reliability: Reliability, nodes: Num = 0.0) -> FloatArray:
    """Seconds between checkpoints: as asked, else Young's."""
    if reliability.checkpoint_interval_s is not None:
        return np.full_like(np.asarray(gpus, dtype=np.float64), reliability.checkpoint_interval_s)
    mtti = mean_time_to_interruption_s(gpus, reliability, nodes)
    return np.asarray(young_interval_s(reliability.checkpoint_stall_s, mtti))


def goodput(gpus: Num, reliability: Reliability, nodes: Num = 0.0) -> Num:
    """Share of wall time that advances a run on ``gpus`` GPUs of ``nodes`` nodes.

    >>> round(float(goodput(16_384, Reliability())), 3)  # Llama 3 405B: more than 90 % effective
    0.904
    """
    mtti = mean_time_to_interruption_s(gpus, reliability, nodes)
    every = interval_s(gpus, reliability, nodes)
    lost = waste(reliability.checkpoint_stall_s, every, mtti, stop_s(gpus, reliability, nodes))
    return np.clip(1.0 - lost, 0.0, 1.0)


def checkpoint_bytes(params: Num) -> Num:
    """Bytes of one full checkpoint: about 14 a parameter.

    >>> round(checkpoint_bytes(70.55e9) / 1e12, 2)
    0.99
    """
    return CHECKPOINT_BYTES_PER_PARAM * params


def interruptions_per_day(gpus: Num, reliability: Reliability, nodes: Num = 0.0) -> Num:
    """Unexpected interruptions a day.

    >>> round(float(interruptions_per_day(16_384, Reliability())), 2)  # 419 in 54 days
    7.76
    """
    return SECONDS_PER_DAY * _interruptions_per_s(gpus, reliability, nodes)[0]
