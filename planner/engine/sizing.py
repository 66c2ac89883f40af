"""How many replicas hold the peak: the smallest number that meets the limits, for every candidate at once.

Capacity gives the first guess; where a latency limit asks for more, the number is found by doubling
and bisection on the candidates concerned only. What can't be met even by an idle replica is said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.columns import alike, taken
from planner.engine.serving import (
    AdmissionLimits,
    LoadKind,
    Saturation,
    ServingEstimate,
    ServingLoad,
    saturation_of,
    steady_state,
)
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MAX_REPLICAS: Final = 2**20
SEARCH_PRECISION: Final = 0.02
"""Large fleets are sized to 2 %: far inside the error band of any speed."""
ROWS_A_PASS: Final = 1000
"""Up to which a pass of the search takes little longer than one with a few rows."""
MOST_DOUBLINGS: Final = 8
MOST_HALVINGS: Final = 4
TOO_SLOW_TTFT: Final = 1
TOO_SLOW_TPOT: Final = 2
TOO_MANY_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The traffic asked for, all replicas together."""

    mean_requests_s: float
    """0 for a closed loop, whose rate follows from the speed."""
    peak_requests_s: float
    clients: int
    """0 for an open loop."""
    is_offline: bool = False
    """All requests are queued at once; the rates are what the job's time asks for."""
    cached_share: float = 0.0
    """Of prompt tokens, those found cached in whole blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """Arrays over candidates. ``fault`` is 0 where ``replicas`` meet every limit."""

    replicas: IntArray
    """Active at the peak, spares not counted."""
    capacity_replicas: IntArray
    """What capacity and headroom alone ask for: more means that a latency limit binds."""
    estimate: ServingEstimate
    """One replica's speed at its share of the peak."""
    fault: IntArray
    best_ttft_s: FloatArray
    """With hardly any load."""
    best_tpot_s: FloatArray


def cached_tokens(question: InferenceQuestion, block_tokens: int) -> int:
    """Prompt tokens found cached: whole blocks, and never the last token, which is always computed.

    >>> cached_tokens(InferenceQuestion(model="m", input_tokens=1000, prefix_cache_hit=0.5), 16)
    496
    >>> cached_tokens(InferenceQuestion(model="m", input_tokens=16, prefix_cache_hit=0.99), 16)
    0
    """
    found = min(question.prefix_cache_hit * question.input_tokens, question.input_tokens - 1)
    return int(found // block_tokens) * block_tokens


def demand_of(question: InferenceQuestion, block_tokens: int = 16) -> Demand:
    """The question's traffic as mean and peak requests a second, or a number of clients.

    >>> q = InferenceQuestion(model="m", users=86_400, requests_per_user_per_day=10, peak_factor=2.5)
    >>> demand_of(q).peak_requests_s
    25.0
    >>> demand_of(InferenceQuestion(model="m", offline_requests=36_000, offline_hours=10)).peak_requests_s
    1.0
    """
    cached = cached_tokens(question, block_tokens) / question.input_tokens
    if question.concurrency is not None:
        return Demand(mean_requests_s=0.0, peak_requests_s=0.0, clients=question.concurrency, cached_share=cached)
    if question.offline_requests is not None:
        rate = question.offline_requests / ((question.offline_hours or 1.0) * SECONDS_PER_HOUR)
        return Demand(mean_requests_s=rate, peak_requests_s=rate, clients=0, is_offline=True, cached_share=cached)
    mean = question.requests_per_second
    if mean is None:
        mean = (question.users or 0.0) * (question.requests_per_user_per_day or 0.0) / SECONDS_PER_DAY
    peak = mean * question.peak_factor
    return Demand(mean_requests_s=mean, peak_requests_s=peak, clients=0, cached_share=cached)


def with_headroom(question: InferenceQuestion, demand: Demand, replicas: Any) -> ServingLoad:
    """One replica's share of the load that the limits are to hold at: the peak, and beyond it what headroom keeps free.

    A fixed number of clients doesn't grow, and a job has no limit on its wait.
    """
    grows = not demand.clients and not demand.is_offline
    return load_of(question, demand, replicas * (1.0 - question.headroom) if grows else replicas)


def load_of(question: InferenceQuestion, demand: Demand, replicas: Any) -> ServingLoad:
    """One replica's share of the peak."""
    kind: LoadKind = "offline" if demand.is_offline else "closed" if demand.clients else "open"
    return ServingLoad(
        kind=kind,
        input_tokens=float(question.input_tokens),
        output_tokens=float(question.output_tokens),
        concurrency=demand.clients / replicas,
        requests_s=demand.peak_requests_s / replicas,
        arrival_cv=question.arrival_cv,
        length_cv=question.output_cv,
        prefix_cache_hit=demand.cached_share,
        batching=question.batching,  # type: ignore[arg-type]
        batch_delay_s=question.batch_delay_ms / 1e3,
    )


def places_planned(places: FloatArray, headroom: float) -> FloatArray:
    """Places of a replica that a fixed number of clients may fill: headroom keeps whole ones free, never the only one.

    A client holds one place at most, so a share of a place kept free is no place at all.

    >>> places_planned(np.array([1.0, 4.0, 5.0, 256.0]), 0.2).tolist()
    [1.0, 4.0, 4.0, 205.0]
    """
    kept_free = np.minimum(np.floor(places * headroom + 1e-9), places - 1.0)
    return np.asarray(places - kept_free, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicas:
    """One replica of every candidate, with what doesn't depend on how much it is asked to do."""

    coefficients: ServingCoefficients
    limits: AdmissionLimits
    saturation: Saturation | None
    """None where batches are drained."""

    @classmethod
    def of(
        cls, coefficients: ServingCoefficients, limits: AdmissionLimits, question: InferenceQuestion, demand: Demand
    ) -> Replicas:
        """Replicas that any share of the demand may be asked of."""
        load = load_of(question, demand, 1.0)
        saturation = saturation_of(coefficients, load, limits) if load.batching == "continuous" else None
        return cls(coefficients=coefficients, limits=limits, saturation=saturation)

    def under(self, load: ServingLoad) -> ServingEstimate:
        """Each one's speed."""
        return steady_state(self.coefficients, load, self.limits, self.saturation)


def size_replicas(
    coefficients: ServingCoefficients, limits: AdmissionLimits, question: InferenceQuestion, demand: Demand
) -> Sizing:
    """The smallest number of replicas of each candidate that holds the peak within every limit.

    Instance types of several providers are often the same to a replica: what is alike is sized once.
    """
    first, same = alike((coefficients, limits), len(coefficients.request_s))
    each = Replicas.of(taken(coefficients, first), taken(limits, first), question, demand)
    return taken(_sized(each, question, demand), same)


def _sized(each: Replicas, question: InferenceQuestion, demand: Demand) -> Sizing:
    idle = each.under(load_of(question, demand, float(MAX_REPLICAS) * 16))
    places = np.asarray(each.limits.sequences, dtype=np.float64)
    room = 1.0 - question.headroom
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = (
            demand.clients / places_planned(places, question.headroom)
            if demand.clients
            else demand.peak_requests_s / ((idle.requests_s if demand.is_offline else idle.capacity_requests_s) * room)
        )
    needed = np.ceil(np.nan_to_num(wanted, nan=MAX_REPLICAS, posinf=MAX_REPLICAS) - 1e-9)
    capacity_replicas = np.clip(needed, 1, MAX_REPLICAS).astype(np.int64)
    fault = np.where(needed > MAX_REPLICAS, TOO_MANY_REPLICAS, 0)
    fault = np.where(_exceeds(idle.tpot_s, question.tpot_ms, question), TOO_SLOW_TPOT, fault)
    fault = np.where(_exceeds(idle.ttft_s, question.ttft_ms, question), TOO_SLOW_TTFT, fault)
    replicas = capacity_replicas.copy()
    if question.ttft_ms is not None or question.tpot_ms is not None:
        stretched = each.under(with_headroom(question, demand, replicas))
        short = np.flatnonzero(too_slow(stretched, question) & (fault == 0))
        if len(short):
            replicas[short] = _search(taken(each, short), question, demand, replicas[short])
            fault[short] = np.where(replicas[short] > MAX_REPLICAS, TOO_MANY_REPLICAS, 0)
    return Sizing(
        replicas=replicas,
        capacity_replicas=capacity_replicas,
        estimate=each.under(load_of(question, demand, replicas)),
        fault=fault,
        best_ttft_s=idle.ttft_s[question.slo_percentile],
        best_tpot_s=idle.tpot_s[question.slo_percentile],
    )


def _search(each: Replicas, question: InferenceQuestion, demand: Demand, too_few: IntArray) -> IntArray:
    """Smallest replicas above ``too_few`` that meet the limits: doubling, then bisection.

    Where few candidates are left, the next steps are all tried in one pass, whatever the first of them will say.
    """

    def slow(rows: IntArray, replicas: IntArray) -> BoolArray:
        some = taken(each, np.repeat(rows, replicas.shape[1]))
        estimate = some.under(with_headroom(question, demand, replicas.ravel()))
        return too_slow(estimate, question).reshape(replicas.shape)

    low = too_few.copy()
    rows = np.arange(len(low))
    while len(rows):
        steps = min(max(ROWS_A_PASS // len(rows), 1), MOST_DOUBLINGS)
        tried = low[rows, None] << np.arange(1, steps + 1)
        doubled = np.logical_and.accumulate(slow(rows, tried) & (tried <= MAX_REPLICAS), axis=1).sum(axis=1)
        low[rows] <<= doubled
        rows = rows[doubled == steps]
    high = 2 * low
    while len(rows := np.flatnonzero(_apart(low, high))):
        steps = min(max(int(np.log2(ROWS_A_PASS / len(rows) + 1.0)), 1), MOST_HALVINGS)
        tried = _middles(low[rows], high[rows], steps)
        slow_there = slow(rows, tried)
        for _ in range(steps):
            left, right = low[rows], high[rows]
            middle = (left + right) // 2
            is_slow = slow_there[np.arange(len(rows)), np.argmax(tried == middle[:, None], axis=1)]
            goes_on = _apart(left, right)
            low[rows] = np.where(goes_on & is_slow, middle, left)
            high[rows] = np.where(goes_on & ~is_slow, np.maximum(middle, left + 1), right)
    # With a replica each, clients wait for nobody: one more would stand idle.
    return np.minimum(high, np.maximum(demand.clients, too_few)) if demand.clients else high


def _apart(low: IntArray, high: IntArray) -> BoolArray:
    """Where it is still open how many replicas it takes."""
    apart: BoolArray = high - low > np.maximum(1, low * SEARCH_PRECISION)
    return apart


def _middles(low: IntArray, high: IntArray, steps: int) -> IntArray:
    """Every number that so many steps of a bisection may try: a column each.

    >>> _middles(np.array([0]), np.array([8]), 2).tolist()
    [[4, 2, 6]]
    """
    spans, found = [(low, high)], []
    for _ in range(steps):
        middles = [(left + right) // 2 for left, right in spans]
        found += middles
        spans = [
            span
            for (left, right), middle in zip(spans, middles, strict=True)
            for span in ((left, np.maximum(middle, left + 1)), (middle, right))
        ]
    return np.stack(found, axis=1)


def _exceeds(by_statistic: Mapping[str, FloatArray], limit_ms: float | None, question: InferenceQuestion) -> BoolArray:
    if limit_ms is None:
        return np.zeros(by_statistic["mean"].shape, dtype=np.bool_)
    value = by_statistic[question.slo_percentile]
    # NaN and infinity are no speed: they exceed any limit.
    return ~(value * 1e3 <= limit_ms)


def too_slow(estimate: ServingEstimate, question: InferenceQuestion) -> BoolArray:
    """Whether a latency limit is exceeded, at the percentile it holds for."""
    return _exceeds(estimate.ttft_s, question.ttft_ms, question) | _exceeds(estimate.tpot_s, question.tpot_ms, question)
