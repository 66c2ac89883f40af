"""The run, not the step: failures, checkpoints, restarts, and the share of wall time that advances it.

Waste per unit of time is ``delta / tau + tau / (2 M) + R / M``: writing checkpoints, work lost since the
last one, restarting. Young's interval ``sqrt(2 delta M)`` minimises it (CACM 17(9), 1974).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.units import SECONDS_PER_HOUR

FloatArray = NDArray[np.float64]
Num = float | FloatArray

GPU_HOURS_PER_INTERRUPTION: Final = 54 * 24 * 16_384 / 419
"""Llama 3 405B, 16,384 H100, 54 days, 419 unexpected interruptions (arXiv 2407.21783, table 5): 50,677."""
CHECKPOINT_BYTES_PER_PARAM: Final = 14.0
"""16-bit weights, fp32 master and two fp32 moments (BLOOM-176B wrote 13.07, chronicles 2022)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How often a fleet stops, and what a stop and a checkpoint cost."""

    gpu_hours_per_interruption: float = GPU_HOURS_PER_INTERRUPTION
    restart_s: float = 600.0
    checkpoint_stall_s: float = 10.0
    """Time a checkpoint stops training; asynchronous writing leaves seconds."""


def mean_time_to_interruption_s(gpus: Num, reliability: Reliability) -> Num:
    """Seconds between interruptions of a job on ``gpus`` GPUs.

    >>> round(mean_time_to_interruption_s(16_384, Reliability()) / 3600, 3)
    3.093
    """
    return reliability.gpu_hours_per_interruption * SECONDS_PER_HOUR / gpus


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


def goodput(gpus: Num, reliability: Reliability) -> Num:
    """Share of wall time that advances a run on ``gpus`` GPUs with checkpoints at Young's interval."""
    mtti = mean_time_to_interruption_s(gpus, reliability)
    interval = young_interval_s(reliability.checkpoint_stall_s, mtti)
    return np.clip(1.0 - waste(reliability.checkpoint_stall_s, interval, mtti, reliability.restart_s), 0.0, 1.0)


def checkpoint_bytes(params: Num) -> Num:
    """Bytes of one full checkpoint: about 14 a parameter.

    >>> round(checkpoint_bytes(70.55e9) / 1e12, 2)
    0.99
    """
    return CHECKPOINT_BYTES_PER_PARAM * params


def interruptions_per_day(gpus: Num, reliability: Reliability) -> Num:
    """Unexpected interruptions a day."""
    return 24.0 * gpus / reliability.gpu_hours_per_interruption
