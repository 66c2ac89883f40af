"""What a replica sustains within the latency limits: the load at which the first of them breaks.

Throughput alone is no capacity where clients wait too long for it: a fleet that a limit sizes breaks that limit long
before it is full.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.columns import taken
from planner.engine.serving import AdmissionLimits
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.sizing import Demand, Replicas, Sizing, load_of, too_slow
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOADS: Final = 12
"""Tried in one pass, between the highest load known to hold and the lowest known not to."""
PASSES: Final = 2


def capacity_within_limits(
    coefficients: ServingCoefficients,
    limits: AdmissionLimits,
    question: InferenceQuestion,
    demand: Demand,
    sizing: Sizing,
    rows: IntArray,
) -> FloatArray:
    """Requests a second of one replica, by row: all that it serves, or as many as keep within the limits.

    ``sizing`` is of the same rows as ``coefficients`` and ``limits``, of which ``rows`` are asked for; at the peak
    itself each holds.
    """
    full = np.asarray(sizing.estimate.capacity_requests_s[rows], dtype=np.float64)
    if demand.is_offline or (question.ttft_ms is None and question.tpot_ms is None):
        return full
    replicas = sizing.replicas[rows].astype(np.float64)
    places = np.asarray(limits.sequences, dtype=np.float64)[rows]
    served = np.asarray(sizing.estimate.requests_s[rows], dtype=np.float64)
    # Times the peak's load: to where all is served, or every place taken.
    most = places * replicas / demand.clients if demand.clients else full / served
    low, high = np.ones(len(rows)), np.maximum(most, 1.0)
    each = Replicas.of(taken(coefficients, rows), taken(limits, rows), question, demand)
    repeated = taken(each, np.repeat(np.arange(len(rows)), LOADS))
    for _ in range(PASSES):
        loads = low[:, None] * (high / low)[:, None] ** np.linspace(0.0, 1.0, LOADS)
        estimate = repeated.under(load_of(question, demand, np.repeat(replicas, LOADS) / loads.ravel()))
        # The first that breaks a limit ends it, whatever comes after.
        broken = np.maximum.accumulate(too_slow(estimate, question).reshape(loads.shape), axis=1)
        first = np.where(broken.any(axis=1), broken.argmax(axis=1), LOADS - 1)
        held = np.maximum(first - np.where(broken.any(axis=1), 1, 0), 0)
        row = np.arange(len(rows))
        low, high = loads[row, held], loads[row, first]
    rates = np.asarray(estimate.requests_s, dtype=np.float64).reshape(loads.shape)
    return np.minimum(rates[row, held], full) if demand.clients else np.minimum(served * low, full)
