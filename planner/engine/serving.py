"""Steady state of continuous batching, for every candidate at once.

How to use it::

    coefficients = build_coefficients(arch, candidates, profiles)          # serving_candidates
    limits = AdmissionLimits(max_sequences=..., max_num_batched_tokens=...)
    load = ServingLoad(kind="open", input_tokens=1000, output_tokens=250, requests_s=rate_per_replica)
    estimate = steady_state(coefficients, load, limits)                    # arrays of length n
    capacity = capacity_within_slo(coefficients, load, limits, ttft_s=1.0, tpot_s=0.05, percentile="p95")

The model is one cycle. While ``S`` requests are resident on a replica, each is prefilled once and decoded for
O tokens, and every other resident's prefill takes its time from the decoding ones:

    cycle T = O t_dec(N) + S p        X = S / T  requests/s
    decode  D = (O - 1) t_dec(N) + (S - k) p        N = S D / T        TPOT = D / (O - 1)
    TTFT      = k p + t_dec(N) (+ waiting)

``p`` is what one prompt adds to the iterations that carry it, ``k`` how many prompts are prefilled in one's own
way (those that share the token budget). Closed loops fix S, open loops fix X, offline runs fill S to its limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import exponential_quantile, many_server_wait, single_server_wait
from planner.engine.serving_candidates import ServingCoefficients
from planner.engine.step_time import TERMS, step_terms, step_time

FloatArray = NDArray[np.float64]
LoadKind = Literal["closed", "open", "offline", "static"]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
NORMAL_QUANTILES = {"p50": 0.0, "p90": 1.2816, "p95": 1.6449, "p99": 2.3263}
LIMITS = ("none", "decode", "prefill", "kv_memory", "batch_limit", "saturated")
FIXED_POINT_ROUNDS = 6
BISECTIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What one replica is asked to do; numbers or arrays of length ``n``.

    ``closed``: ``concurrency`` clients, each waiting for its answer; ``requests`` in all where all clients
    start together (None: steady state). ``open``: ``requests_s`` with gaps of ``arrival_cv``. ``offline``:
    everything queued at once. ``static``: batches of ``concurrency``, prefilled together, drained together.
    """

    kind: LoadKind
    input_tokens: Any
    output_tokens: Any
    concurrency: Any = 1.0
    requests: Any = None
    requests_s: Any = 0.0
    arrival_cv: Any = 1.0
    length_cv: Any = 0.0
    """Coefficient of variation of the work of a request."""
    prefix_cache_hit: Any = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionLimits:
    """What one replica admits; numbers or arrays of length ``n``."""

    kv_sequences: Any
    """Requests of the asked lengths that the KV memory holds."""
    max_num_seqs: Any
    max_num_batched_tokens: Any

    @property
    def sequences(self) -> Any:
        return np.maximum(np.minimum(self.kv_sequences, self.max_num_seqs), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEstimate:
    """Speed of one replica of every candidate: arrays of length ``n``."""

    ttft_s: dict[str, FloatArray]
    """By statistic: mean, p50, p90, p95, p99; infinite where an open loop never settles."""
    tpot_s: dict[str, FloatArray]
    output_tok_s: FloatArray
    requests_s: FloatArray
    running: FloatArray
    """Requests resident on the replica."""
    max_sequences: FloatArray
    capacity_requests_s: FloatArray
    """Throughput with every admitted place taken."""
    utilization: FloatArray
    """Demand over what is admitted (closed loop) or served at most (open loop); above 1 it waits."""
    limit: NDArray[np.int64]
    """Index into ``LIMITS``."""
    terms: dict[str, FloatArray]
    """Seconds of one decode iteration by part; the parts sum to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One request's cycle on a replica with ``S`` residents; seconds."""

    cycle_s: Any
    decode_s: Any
    """From first token to last."""
    iteration_s: Any
    """One decode iteration without prompt tokens."""
    prompt_s: Any
    """What one prompt adds to the iterations that carry it."""
    decoding: Any
    """Sequences decoding on average."""
    cohort: Any
    """Prompts prefilled in one's own way."""


def cycle(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, residents: Any) -> Cycle:
    """The cycle of a replica with ``residents`` requests, by fixed point over the decoding batch."""
    prompt = np.maximum(load.input_tokens * (1.0 - load.prefix_cache_hit), 1.0)
    decodes = np.maximum(load.output_tokens - 1.0, 0.0)
    context = load.input_tokens + load.output_tokens / 2.0
    sharing = np.clip(limits.max_num_batched_tokens / prompt, 1.0, np.maximum(residents, 1.0))
    cohort = np.minimum(1.0 + c.cohort * (sharing - 1.0), np.maximum(residents, 1.0))
    mean_attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    decoding = residents * 0.9
    for _ in range(FIXED_POINT_ROUNDS):
        iteration = step_time(c.step, decoding, decoding * context, 0.0, 0.0)
        room = np.maximum(limits.max_num_batched_tokens - decoding, 16.0)
        chunk = np.minimum(cohort * prompt, room)
        mixed = step_time(c.step, decoding, decoding * context, chunk, chunk * mean_attended)
        prompt_s = (mixed - iteration) * prompt / chunk
        whole = (decodes + 1.0) * iteration + residents * prompt_s
        decode = decodes * iteration + np.maximum(residents - cohort, 0.0) * prompt_s
        decoding = residents * decode / whole
    return Cycle(
        cycle_s=whole,
        decode_s=decode,
        iteration_s=iteration,
        prompt_s=prompt_s,
        decoding=decoding,
        cohort=cohort,
    )


def steady_state(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits) -> ServingEstimate:
    """Speed of one replica of every candidate under ``load``.

    Saturation is a cliff: beyond the admitted places the decode speed stays, and all further load waits.
    """
    places = limits.sequences
    full = cycle(c, load, limits, places)
    capacity = places / full.cycle_s
    if load.kind == "open":
        return _open_loop(c, load, limits, capacity, full)
    if load.kind == "static":
        return _static_batches(c, load, limits, capacity)
    wanted = places if load.kind == "offline" else np.maximum(load.concurrency, 1.0)
    residents = np.minimum(wanted, places)
    one = cycle(c, load, limits, residents)
    stretch = c.drain if load.kind == "offline" else 1.0
    rate = residents / (one.cycle_s * stretch)
    waiting = np.maximum(wanted - residents, 0.0) / rate
    ttft = _closed_ttft(c, load, one, residents, waiting)
    tpot_mean = one.decode_s * stretch / np.maximum(load.output_tokens - 1.0, 1.0)
    tpot = _tpot_spread(load, one, tpot_mean, rate)
    return _estimate(c, load, limits, ttft, tpot, rate, residents, capacity, one, wanted / places)


def _closed_ttft(
    c: ServingCoefficients, load: ServingLoad, one: Cycle, residents: Any, waiting: Any
) -> dict[str, FloatArray]:
    """TTFT of a closed loop; where all clients start together, the first wave queues for its prefill."""
    later = one.cohort * one.prompt_s + one.iteration_s + c.request_s
    last = residents * one.prompt_s + one.iteration_s + c.request_s
    first = np.maximum((last + later) / 2.0, later)
    waves = np.inf if load.requests is None else np.maximum(load.requests / np.maximum(load.concurrency, 1.0), 1.0)
    share = 1.0 / waves
    mean = share * first + (1.0 - share) * (later + waiting) + share * waiting / 2.0
    ttft = {"mean": mean}
    for name, quantile in PERCENTILES.items():
        in_first = np.clip((quantile - (1.0 - share)) / np.maximum(share, 1e-9), 0.0, 1.0)
        ttft[name] = np.where(in_first > 0, later + in_first * (last - later), later) + waiting
    return ttft


def _tpot_spread(load: ServingLoad, one: Cycle, mean: FloatArray, rate: FloatArray) -> dict[str, FloatArray]:
    """TPOT by statistic: the prompts that interrupt one answer vary as Poisson counts."""
    decodes = np.maximum(load.output_tokens - 1.0, 1.0)
    interruptions = rate * mean * decodes
    deviation = np.sqrt(np.maximum(interruptions, 0.0)) * one.prompt_s / decodes
    bounded = np.minimum(deviation, mean)
    return {"mean": mean, **{name: mean + z * bounded for name, z in NORMAL_QUANTILES.items()}}


def _open_loop(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, capacity: FloatArray, full: Cycle
) -> ServingEstimate:
    rate = load.requests_s + np.zeros_like(capacity)
    decodes = np.maximum(load.output_tokens - 1.0, 0.0)
    residents = np.ones_like(capacity)
    one = full
    for _ in range(FIXED_POINT_ROUNDS):
        one = cycle(c, load, limits, np.minimum(residents + 1.0, limits.sequences))
        busy = np.minimum(rate * one.prompt_s, 0.999)
        decode = decodes * one.iteration_s / (1.0 - busy)
        variation = (load.arrival_cv**2, load.length_cv**2)
        prefill_wait = single_server_wait(rate, busy / np.maximum(rate, 1e-12), *variation)
        service = one.prompt_s + 1.5 * one.iteration_s + prefill_wait + decode
        residents = np.minimum(rate * service, limits.sequences)
    utilization = rate / capacity
    saturated = utilization >= 1.0
    admission_wait = many_server_wait(np.minimum(utilization, 0.999), full.cycle_s, limits.sequences, *variation)
    own = one.prompt_s + 1.5 * one.iteration_s + c.request_s
    wait = np.where(saturated, np.inf, prefill_wait + admission_wait)
    if load.requests is not None:
        backlog = load.requests / 2.0 * np.maximum(1.0 / capacity - 1.0 / rate, 0.0)
        wait = np.where(saturated, backlog, np.minimum(wait, load.requests / 2.0 / capacity))
    ttft = {"mean": own + wait}
    for name, quantile in PERCENTILES.items():
        tail = exponential_quantile(wait, np.minimum(utilization, 1.0), quantile)
        ttft[name] = own + np.where(np.isinf(wait), wait, tail)
    decode_now = np.where(saturated, full.decode_s, decode)
    tpot_mean = decode_now / np.maximum(decodes, 1.0)
    served = np.minimum(rate, capacity)
    tpot = _tpot_spread(load, one, tpot_mean, served)
    return _estimate(c, load, limits, ttft, tpot, served, residents, capacity, one, utilization)


def _static_batches(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, capacity: FloatArray
) -> ServingEstimate:
    """A batch is prefilled whole, then decoded to its longest answer; what doesn't fit runs after it."""
    batch = np.maximum(load.concurrency, 1.0) + np.zeros_like(capacity)
    at_once = np.minimum(batch, limits.sequences)
    prompt = np.maximum(load.input_tokens * (1.0 - load.prefix_cache_hit), 0.0)
    chunk = np.maximum(np.minimum(at_once * prompt, np.maximum(limits.max_num_batched_tokens, prompt)), 1.0)
    prefill = at_once * prompt / chunk * step_time(c.step, 0.0, 0.0, chunk, chunk * load.input_tokens / 2.0)
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


def _estimate(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    ttft: dict[str, FloatArray],
    tpot: dict[str, FloatArray],
    rate: FloatArray,
    residents: FloatArray,
    capacity: FloatArray,
    one: Cycle,
    utilization: FloatArray,
) -> ServingEstimate:
    context = load.input_tokens + load.output_tokens / 2.0
    parts = step_terms(c.step, one.decoding, one.decoding * context, 0.0, 0.0)
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
        terms=dict(zip(TERMS, parts, strict=True)),
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
