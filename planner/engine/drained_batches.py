"""Batches that are drained whole before the next begins: static and dynamic batching of answers.

    T(b) = prefill(b) + longest(b) t(b)          X = b / T(b)

A static batch waits until ``B`` requests are there; a dynamic one takes those that came while the last was
served, and waits at most a delay for company (Triton's dynamic batcher). Answers scatter: the batch lasts as
long as its longest, ``longest(b) = O (1 + CV sqrt(2 ln b))`` (the largest of b normal draws, an upper bound).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import exponential_quantile, single_server_wait
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad

FloatArray = NDArray[np.float64]

ROUNDS: Final = 5
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesEstimate:
    """Drained batches on one replica of every candidate; arrays of length ``n``."""

    sequences: FloatArray
    """Of one batch."""
    batch_s: FloatArray
    prefill_s: FloatArray
    iteration_s: FloatArray
    ttft_s: dict[str, FloatArray]
    tpot_s: dict[str, FloatArray]
    requests_s: FloatArray
    resident: FloatArray
    capacity_requests_s: FloatArray
    utilization: FloatArray


def batch_s(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, sequences: Any) -> tuple[Any, Any, Any]:
    """Seconds of one batch of ``sequences``: (whole, prefill, one decode iteration)."""
    prompt = load.prompt_tokens
    chunk = np.maximum(np.minimum(sequences * prompt, np.maximum(limits.max_num_batched_tokens, prompt)), 1.0)
    attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    prefill = sequences * prompt / chunk * c.carrying(sequences).iteration_s(0.0, 0.0, chunk, chunk * attended)
    iteration = c.iteration_s(sequences, sequences * load.mean_context)
    longest = 1.0 + load.length_cv * np.sqrt(2.0 * np.log(np.maximum(sequences, 1.0)))
    whole = prefill + load.decode_tokens * longest * iteration
    return whole, prefill, iteration


def batches_state(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits) -> BatchesEstimate:
    """Steady state of ``load`` (open, or closed with ``concurrency`` clients) on drained batches."""
    places = limits.sequences
    full_s, _, _ = batch_s(c, load, limits, places)
    capacity = places / full_s
    if load.kind == "closed":
        return _closed(c, load, limits, capacity)
    rate = load.requests_s + np.zeros_like(capacity)
    utilization = rate / capacity
    served = np.minimum(rate, capacity)
    sequences = places + np.zeros_like(capacity)
    if load.batching == "dynamic":
        sequences = _gathered(c, load, limits, served)
    whole, prefill, iteration = batch_s(c, load, limits, sequences)
    gathering, queue, waits = _waits(load, rate, utilization, sequences, whole)
    own = prefill + c.request_s
    settled = gathering + queue
    ttft = {"mean": own + np.where(utilization >= 1.0, np.inf, settled)}
    for name, quantile in QUANTILES.items():
        # One comes at any moment of the gathering: its quantile is that share of twice its mean.
        tail = 2.0 * quantile * gathering + exponential_quantile(queue, waits, quantile)
        ttft[name] = own + np.where(utilization >= 1.0, np.inf, tail)
    return BatchesEstimate(
        sequences=sequences,
        batch_s=whole,
        prefill_s=prefill,
        iteration_s=iteration,
        ttft_s=ttft,
        tpot_s=_tpot_s(load, iteration),
        requests_s=served,
        resident=np.minimum(served * whole, places),
        capacity_requests_s=capacity,
        utilization=utilization,
    )


def _gathered(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray) -> FloatArray:
    """Sequences of a dynamic batch: those that come while the last is served, or within the delay."""

    def met(sequences: FloatArray) -> FloatArray:
        whole, _, _ = batch_s(c, load, limits, sequences)
        gathered = np.maximum(rate * whole, 1.0 + rate * load.batch_delay_s)
        return np.asarray(np.clip(gathered, 1.0, limits.sequences), dtype=np.float64)

    sequences = np.ones_like(rate)
    for _ in range(ROUNDS):
        # Plain iteration creeps towards saturation: every second step is extrapolated (Aitken).
        first = met(sequences)
        second = met(first)
        bend = second - 2.0 * first + sequences
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = sequences - (first - sequences) ** 2 / bend
        sequences = np.where(np.isfinite(jump), np.clip(jump, second, limits.sequences), second)
    return sequences


def _waits(
    load: ServingLoad, rate: FloatArray, utilization: FloatArray, sequences: FloatArray, whole: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean wait for company, mean wait for the batch before, and how often the latter is met."""
    busy = np.clip(rate * whole / sequences, 0.0, 0.999)
    spacing = (sequences - 1.0) / np.maximum(rate, 1e-12)
    if load.batching == "static":
        # Batches arrive as sums of ``b`` gaps, which scatter sqrt(b) times less than one.
        spread = load.arrival_cv**2 / np.maximum(sequences, 1.0)
        return spacing / 2.0, single_server_wait(busy / whole, whole, spread, 0.0), busy
    company = (1.0 - busy) * np.minimum(load.batch_delay_s, spacing) / 2.0
    # Arrivals during a batch wait for what is left of it, half on average, more where they come in bursts.
    left = busy * whole / 2.0
    full = single_server_wait(np.clip(utilization, 0.0, 0.999) / whole, whole, load.arrival_cv**2, 0.0)
    return company, left + full / np.maximum(sequences, 1.0), busy


def _tpot_s(load: ServingLoad, iteration_s: FloatArray) -> dict[str, FloatArray]:
    """By statistic: an iteration a token, and none where the prefill brings the only one."""
    return dict.fromkeys(("mean", *QUANTILES), np.where(load.decode_tokens > 0, iteration_s, 0.0))


def _closed(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, capacity: FloatArray
) -> BatchesEstimate:
    """Clients in step: as many as fit are served together, the others in the batches after."""
    clients = np.maximum(load.concurrency, 1.0) + np.zeros_like(capacity)
    sequences = np.minimum(clients, limits.sequences)
    whole, prefill, iteration = batch_s(c, load, limits, sequences)
    behind = np.maximum(clients / sequences - 1.0, 0.0) * whole
    first = prefill + c.request_s + behind
    same = dict.fromkeys(("mean", *QUANTILES), first)
    return BatchesEstimate(
        sequences=sequences,
        batch_s=whole,
        prefill_s=prefill,
        iteration_s=iteration,
        ttft_s=same,
        tpot_s=_tpot_s(load, iteration),
        requests_s=sequences / whole,
        resident=sequences,
        capacity_requests_s=capacity,
        utilization=clients / limits.sequences,
    )
