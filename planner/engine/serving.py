"""Steady state of continuous batching, for every candidate at once.

How to use it::

    coefficients = build_coefficients(arch, candidates, profiles)          # serving_candidates
    limits = AdmissionLimits(max_sequences=..., max_num_batched_tokens=...)
    load = ServingLoad(kind="open", input_tokens=1000, output_tokens=250, requests_s=rate_per_replica)
    estimate = steady_state(coefficients, load, limits)                    # arrays of length n
    capacity = capacity_within_slo(coefficients, load, limits, ttft_s=1.0, tpot_s=0.05, percentile="p95")

The model is one cycle (``serving_cycle``). Closed loops fix the residents, open loops fix the rate, offline runs
fill the residents to their limit; static batches are prefilled together and drained together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.engine.drained_batches import batch_s, batches_state
from planner.engine.queueing import many_server_wait, waiting_share
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, Cycle, LoadKind, ServingLoad, cycle
from planner.engine.serving_open import Saturation, open_loop, saturation_of
from planner.engine.serving_spread import TimesToFirstToken, token_times
from planner.engine.serving_statistics import Statistics
from planner.engine.step_time import step_time

__all__ = [
    "LIMITS",
    "PERCENTILES",
    "AdmissionLimits",
    "Cycle",
    "LoadKind",
    "Saturation",
    "ServingEstimate",
    "ServingLoad",
    "capacity_within_slo",
    "cycle",
    "replica_cycle",
    "saturation_of",
    "steady_state",
]

FloatArray = NDArray[np.float64]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
NORMAL_QUANTILES = {"p50": 0.0, "p90": 1.2816, "p95": 1.6449, "p99": 2.3263}
LIMITS = ("none", "decode", "prefill", "kv_memory", "batch_limit", "saturated")
BISECTIONS = 10
MOST_TAKEN = 0.999
"""Of the places, for the wait of a queue that gets through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEstimate:
    """Speed of one replica of every candidate: arrays of length ``n``."""

    ttft_s: Mapping[str, FloatArray]
    """By statistic: mean, p50, p90, p95, p99; infinite where an open loop never settles."""
    tpot_s: dict[str, FloatArray]
    output_tok_s: FloatArray
    requests_s: FloatArray
    running: FloatArray
    """Requests resident on the replica."""
    max_sequences: FloatArray
    capacity_requests_s: FloatArray
    """Throughput with every admitted place taken; of a closed loop that gets through more with fewer clients, that."""
    utilization: FloatArray
    """Demand over what is admitted (closed loop) or served at most (open loop); above 1 it waits."""
    limit: NDArray[np.int64]
    """Index into ``LIMITS``."""
    terms: dict[str, FloatArray]
    """Seconds of one decode iteration by part; the parts sum to it."""


def steady_state(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, saturation: Saturation | None = None
) -> ServingEstimate:
    """Speed of one replica of every candidate under ``load``; ``saturation`` is worked out where it isn't given.

    Saturation is a cliff: beyond the admitted places the decode speed stays, and all further load waits.
    """
    if load.batching != "continuous":
        return _drained_batches(c, load, limits)
    saturation = saturation_of(c, load, limits) if saturation is None else saturation
    places, capacity = limits.sequences, saturation.requests_s
    if load.kind == "open":
        return _open_loop(c, load, limits, capacity, saturation.cycle)
    if load.kind == "static":
        return _static_batches(c, load, limits, capacity)
    wanted = places if load.kind == "offline" else np.maximum(load.concurrency, 1.0)
    residents = np.minimum(wanted, places)
    waves = _waves(load)
    one = cycle(c, load, limits, residents, waves)
    stretch = c.drain if load.kind == "offline" else 1.0
    # A client is in the front end too, and on its way through the pipeline, where it holds no place.
    outside = c.request_s + (one.fill - 1.0) * one.prompt_s if load.kind == "closed" else 0.0
    rate = np.minimum(residents / (one.cycle_s * stretch), wanted / (one.cycle_s * stretch + outside))
    waiting = np.maximum(wanted / rate - one.cycle_s * stretch - outside, 0.0)
    capacity = np.maximum(capacity / stretch, rate)
    ttft = _closed_ttft(c, one, residents, waiting, 1.0 / waves)
    tpot_mean = one.decode_s * stretch / np.maximum(load.output_tokens - 1.0, 1.0)
    tpot = _tpot_spread(load, one.prompt_s, tpot_mean, rate)
    # What a queue that runs dry gets through, its last answers among few others included, is all there is.
    return _estimate(c, load, limits, ttft, tpot, rate, residents, capacity, one, wanted / places)


def _waves(load: ServingLoad) -> Any:
    """Requests a client sends in all; infinite in steady state."""
    if load.requests is None or load.kind != "closed":
        return np.inf
    return np.maximum(load.requests / np.maximum(load.concurrency, 1.0), 1.0)


def _closed_ttft(c: ServingCoefficients, one: Cycle, residents: Any, waiting: Any, share: Any) -> dict[str, FloatArray]:
    """TTFT of a closed loop; ``share`` of the requests are the first wave, which queues for its prefill.

    Of the prompts in one's way by chance a request meets any number from none to twice the mean, but never more than
    there are.
    """
    later = one.prefill_s + c.request_s
    last = (residents + one.fill - 1.0) * one.prompt_s + one.prefill_iterations * one.iteration_s + c.request_s
    first = np.maximum((last + one.fill * one.prompt_s + one.iteration_s + c.request_s) / 2.0, later)
    mean = share * first + (1.0 - share) * (later + waiting) + share * waiting / 2.0
    ttft = {"mean": mean}
    for name, quantile in PERCENTILES.items():
        in_first = np.clip((quantile - (1.0 - share)) / np.maximum(share, 1e-9), 0.0, 1.0)
        in_later = later + (2.0 * quantile - 1.0) * one.by_chance * one.prompt_s
        in_later = np.minimum(in_later, np.maximum(last, later))
        ttft[name] = np.maximum(later + in_first * np.maximum(last - later, 0.0), in_later) + waiting
    return ttft


def _tpot_spread(load: ServingLoad, prompt_s: Any, mean: FloatArray, rate: FloatArray) -> dict[str, FloatArray]:
    """TPOT by statistic: the prompts that interrupt one answer vary as Poisson counts."""
    decodes = np.maximum(load.output_tokens - 1.0, 1.0)
    interruptions = rate * mean * decodes
    deviation = np.sqrt(np.maximum(interruptions, 0.0)) * prompt_s / decodes
    bounded = np.minimum(deviation, mean)
    return {"mean": mean, **{name: mean + z * bounded for name, z in NORMAL_QUANTILES.items()}}


def _open_loop(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, capacity: FloatArray, full: Cycle
) -> ServingEstimate:
    rate = load.requests_s + np.zeros_like(capacity)
    variation = (load.arrival_cv**2, load.length_cv**2)
    utilization = rate / capacity
    saturated = utilization >= 1.0
    served = np.minimum(rate, capacity)
    now = open_loop(c, load, limits, served)
    # Prompts that are always under way can slow decodes down until all places are taken, at a rate that a queue of
    # requests, which prefill together, gets through.
    taken = np.minimum(np.maximum(utilization, now.decoding / limits.sequences), MOST_TAKEN)
    admission_wait = many_server_wait(taken, full.cycle_s, limits.sequences, *variation)
    settled = now.wait_s + admission_wait
    wait = np.where(saturated, np.inf, settled)
    if load.requests is not None:
        # A run that ends never builds up more than half its requests' work.
        half = load.requests / 2.0
        queued = np.where(saturated, np.maximum(1.0 / capacity - 1.0 / rate, 1e-12), 1.0 / capacity)
        wait = np.minimum(wait, half * queued)
    shortened = np.where(np.isinf(wait), 0.0, wait) / np.maximum(settled, 1e-12)
    times = TimesToFirstToken(
        own_s=now.own_s,
        wait_s=wait,
        behind_s=now.wait_s,
        admission_s=admission_wait,
        full=np.where(saturated, 1.0, waiting_share(taken, limits.sequences)),
        shortened=shortened,
        first=now.first,
    )
    ttft = Statistics(now.own_s + wait, PERCENTILES, times)
    decode_s = np.where(saturated, np.maximum(full.decode_s, now.decode_s), now.decode_s)
    one = Cycle(
        cycle_s=now.own_s + now.wait_s + decode_s,
        decode_s=decode_s,
        iteration_s=now.iteration_s,
        prompt_s=now.prompt_s,
        decoding=now.decoding,
        cohort=np.ones_like(rate),
    )
    residents = np.minimum(served * one.cycle_s, limits.sequences)
    decodes = np.maximum(load.decode_tokens, 1.0)
    tpot = token_times(decode_s / decodes, decodes, served, now.lump_s, now.batch_s, NORMAL_QUANTILES)
    return _estimate(c, load, limits, ttft, tpot, served, residents, capacity, one, utilization)


def _static_batches(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, capacity: FloatArray
) -> ServingEstimate:
    """A batch is prefilled whole, then decoded to its longest answer; what doesn't fit runs after it."""
    batch = np.maximum(load.concurrency, 1.0) + np.zeros_like(capacity)
    at_once = np.minimum(batch, limits.sequences)
    prompt = np.maximum(load.input_tokens * (1.0 - load.prefix_cache_hit), 0.0)
    chunk = np.maximum(np.minimum(at_once * prompt, np.maximum(limits.max_num_batched_tokens, prompt)), 1.0)
    prefill = (
        at_once * prompt / chunk * step_time(c.carrying(at_once).step, 0.0, 0.0, chunk, chunk * load.input_tokens / 2.0)
    )
    decodes = np.maximum(load.output_tokens - 1.0, 0.0)
    context = at_once * (load.input_tokens + load.output_tokens / 2.0)
    iteration = step_time(c.step, at_once, context, 0.0, 0.0)
    whole = prefill + c.request_s + decodes * iteration
    rounds = batch / at_once
    rate = batch / (whole * rounds)
    first = prefill + c.request_s
    one = Cycle(
        cycle_s=whole,
        decode_s=decodes * iteration,
        iteration_s=iteration,
        prompt_s=prefill / at_once,
        decoding=at_once,
        cohort=at_once,
    )
    same_ttft = dict.fromkeys(("mean", *PERCENTILES), first)
    same_tpot = dict.fromkeys(("mean", *PERCENTILES), iteration)
    return _estimate(c, load, limits, same_ttft, same_tpot, rate, at_once, capacity, one, rounds)


def replica_cycle(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, residents: Any) -> Cycle:
    """The cycle of a replica with ``residents`` requests, whichever way it batches."""
    if load.batching == "continuous":
        return cycle(c, load, limits, residents)
    whole, prefill, iteration = batch_s(c, load, limits, residents)
    return Cycle(
        cycle_s=whole,
        decode_s=whole - prefill,
        iteration_s=iteration,
        prompt_s=prefill / residents,
        decoding=residents,
        cohort=residents,
    )


def _drained_batches(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits) -> ServingEstimate:
    found = batches_state(c, load, limits)
    one = replica_cycle(c, load, limits, found.sequences)
    return _estimate(
        c, load, limits, found.ttft_s, found.tpot_s, found.requests_s, found.resident, found.capacity_requests_s,
        one, found.utilization,
    )  # fmt: skip


def _estimate(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    ttft: Mapping[str, FloatArray],
    tpot: dict[str, FloatArray],
    rate: FloatArray,
    residents: FloatArray,
    capacity: FloatArray,
    one: Cycle,
    utilization: FloatArray,
) -> ServingEstimate:
    context = load.input_tokens + load.output_tokens / 2.0
    by_memory = np.asarray(limits.kv_sequences) < limits.max_num_seqs
    at_limit = residents >= limits.sequences
    prefill_bound = residents * one.prompt_s > one.iteration_s * load.output_tokens
    limit = np.where(prefill_bound, LIMITS.index("prefill"), LIMITS.index("decode"))
    limit = np.where(at_limit, np.where(by_memory, LIMITS.index("kv_memory"), LIMITS.index("batch_limit")), limit)
    if load.kind == "open":
        limit = np.where(utilization > 1.0, LIMITS.index("saturated"), limit)
    return ServingEstimate(
        ttft_s=ttft,
        tpot_s=tpot,
        output_tok_s=rate * load.output_tokens,
        requests_s=rate,
        running=residents,
        max_sequences=limits.sequences + np.zeros_like(rate),
        capacity_requests_s=capacity,
        utilization=utilization,
        limit=limit,
        terms=c.iteration_terms(one.decoding, one.decoding * context),
    )


def capacity_within_slo(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    *,
    ttft_s: float | None,
    tpot_s: float | None,
    percentile: str = "p95",
) -> FloatArray:
    """Most open-loop requests a second one replica of each candidate serves within the limits; 0 where none.

    Bisection on the load, over all candidates at once; latencies never fall with load, so it is exact to
    2^-``BISECTIONS`` of the capacity.
    """
    top = steady_state(c, replace(load, kind="open", requests=None, requests_s=1e-6), limits).capacity_requests_s
    low, high = np.zeros_like(top), np.ones_like(top)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        estimate = steady_state(c, replace(load, kind="open", requests=None, requests_s=middle * top), limits)
        met = np.isfinite(top)
        if ttft_s is not None:
            met &= estimate.ttft_s[percentile] <= ttft_s
        if tpot_s is not None:
            met &= estimate.tpot_s[percentile] <= tpot_s
        low, high = np.where(met, middle, low), np.where(met, high, middle)
    return low * top
