"""Split pools in the search: how many replicas prefill, how many decode, and what the KV between them costs.

Prompts queue for one of ``n_p`` prefill replicas, their KV cache moves over the network, decoding runs undisturbed
on ``n_d`` replicas (DistServe, arXiv 2401.09670; Splitwise, arXiv 2311.18677):

    TTFT = wait + prefill + bytes / rate + front end        n_p >= L p / rho
    TPOT = t(N) / tokens a step                             N = L D / n_d <= places

so TTFT alone sizes one pool, TPOT and memory alone the other. Each decode layout is paired with itself and with
the layout of its node that prefills most prompts a GPU within the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from planner.engine.columns import replaced
from planner.engine.inference_evaluate import Evaluated
from planner.engine.queueing import exponential_quantile, many_server_wait
from planner.engine.serving import LIMITS, NORMAL_QUANTILES, PERCENTILES, ServingEstimate
from planner.engine.serving_cycle import Cycle, ServingLoad
from planner.engine.sizing import (
    MAX_REPLICAS,
    TOO_MANY_REPLICAS,
    TOO_SLOW_TPOT,
    TOO_SLOW_TTFT,
    Demand,
    Sizing,
    load_of,
    places_planned,
)
from planner.engine.split_pairs import pool_pairs, prompt_s
from planner.engine.split_pools import (
    BoolArray,
    FloatArray,
    IntArray,
    PrefillPools,
    SplitSizing,
    TransferRates,
)
from planner.engine.workload import InferenceQuestion

ROUNDS: Final = 5
HALVINGS: Final = 8
"""Of the load up to which limits hold, between the peak's and all that is served."""


def size_split(evaluated: Evaluated, question: InferenceQuestion, demand: Demand, rates: TransferRates) -> SplitSizing:
    """Size every pair of pools: by the link where both fit one group of it, else by the network."""
    decode, prefill = pool_pairs(evaluated, question, demand)
    load = load_of(question, demand, 1.0)
    network = _Pairs(evaluated, question, demand, load, decode, prefill, rates, inside=False).size()
    near = network.prefill.gpus_per_replica * network.prefill.replicas
    near = near + evaluated.gpus_per_replica[decode] * network.sizing.replicas
    inside = np.flatnonzero(near <= rates.domain_gpus[decode])
    if not len(inside):
        return network
    close = _Pairs(evaluated, question, demand, load, decode[inside], prefill[inside], rates, inside=True).size()
    found: SplitSizing = replaced(network, inside, close)
    return found


class _Pairs:
    """Pairs of pools with what their sizing needs; one pass for each way that KV moves."""

    def __init__(
        self,
        evaluated: Evaluated,
        question: InferenceQuestion,
        demand: Demand,
        load: ServingLoad,
        decode: IntArray,
        prefill: IntArray,
        rates: TransferRates,
        *,
        inside: bool,
    ) -> None:
        self.question, self.demand, self.load = question, demand, load
        self.rows = decode
        self.decode, self.prefill = evaluated.take(decode), evaluated.take(prefill)
        self.alone, self.batched = prompt_s(self.prefill, load)
        # Every GPU of either side moves its own share: the side that holds more a GPU sets the pace.
        self.bytes = np.maximum(rates.prompt_bytes[decode], rates.prompt_bytes[prefill])
        rate = (rates.link_bytes_s if inside else rates.network_bytes_s)[decode]
        self.transfer = self.bytes / rate
        self.places = np.asarray(self.decode.limits.sequences, dtype=np.float64) + np.zeros(len(decode))
        self.steps = load.decode_tokens / self.decode.coefficients.tokens_per_step
        self.room = 1.0 - question.headroom
        # Limits are to hold beyond the peak too, as far as headroom goes; a fixed number of clients doesn't grow.
        self.grows = 1.0 if demand.clients else 1.0 / self.room
        ranks = np.asarray(self.prefill.coefficients.step.attention_ranks, dtype=np.float64)
        self.ranks = ranks + np.zeros(len(decode))
        self.own = self.alone + self.transfer + np.asarray(self.prefill.coefficients.request_s)

    def size(self) -> SplitSizing:
        """Decode replicas first, then the prefill replicas that feed them."""
        idle_tpot = self.tpot(np.ones(len(self.rows)))
        capacity = self.places / (self.steps * self.iteration(self.places) + 1e-12)
        if self.demand.clients:
            wanted = self.demand.clients / places_planned(self.places, self.question.headroom)
        else:
            wanted = self.demand.peak_requests_s / (capacity * self.room)
        by_capacity = _whole(wanted)
        slow_tpot = self.exceeds(idle_tpot, self.question.tpot_ms)
        slow_ttft = self.exceeds(self.own, self.question.ttft_ms)
        hopeless = slow_tpot | slow_ttft
        decode = self.search(by_capacity, hopeless, lambda n: self.late_tpot(self.residents(n, self.grows)))
        running = self.residents(decode)
        rate = self.rate(running)
        prefill_by_capacity = _whole(rate * self.batched / (self.ranks * self.full_steps()))
        if self.demand.clients:
            # A client has one prompt at a time: more replicas than clients stand idle.
            prefill_by_capacity = np.minimum(prefill_by_capacity, self.demand.clients)
        prefill = self.search(prefill_by_capacity, hopeless, lambda n: self.late_ttft(rate * self.grows, n))
        fault = np.where((decode > MAX_REPLICAS) | (prefill > MAX_REPLICAS), TOO_MANY_REPLICAS, 0)
        fault = np.where(slow_tpot, TOO_SLOW_TPOT, fault)
        fault = np.where(slow_ttft, TOO_SLOW_TTFT, fault)
        served = np.minimum(prefill * self.ranks / self.batched, decode * capacity)
        served = self.within_limits(rate, decode, prefill, served)
        estimate, busy_s = self.estimate(rate, running, decode, prefill, served / decode)
        sizing = Sizing(
            replicas=decode,
            capacity_replicas=by_capacity,
            estimate=estimate,
            fault=fault,
            best_ttft_s=self.own,
            best_tpot_s=idle_tpot,
        )
        side = self.prefill.candidates
        pools = PrefillPools(
            tensor=side.tensor,
            pipeline=side.pipeline,
            expert=side.expert,
            replicas=prefill,
            capacity_replicas=prefill_by_capacity,
            gpus_per_replica=self.prefill.gpus_per_replica,
            prompt_s=busy_s,
            transfer_bytes=self.bytes,
            transfer_s=self.transfer,
            utilization=rate * busy_s / (prefill * self.ranks),
        )
        return SplitSizing(rows=self.rows, sizing=sizing, prefill=pools, cycle=self.cycle(running, busy_s))

    def iteration(self, running: FloatArray) -> FloatArray:
        seconds = self.decode.coefficients.iteration_s(running, running * self.load.mean_context)
        return np.asarray(seconds, dtype=np.float64)

    def tpot(self, running: FloatArray) -> FloatArray:
        return np.asarray(self.iteration(running) / self.decode.coefficients.tokens_per_step, dtype=np.float64)

    def within_limits(self, rate: FloatArray, decode: IntArray, prefill: IntArray, served: FloatArray) -> FloatArray:
        """Requests a second of the whole deployment up to which no limit breaks; at the peak's ``rate`` none does."""
        if self.demand.clients or (self.question.ttft_ms is None and self.question.tpot_ms is None):
            return served
        low, high = np.ones(len(self.rows)), np.maximum(served / rate, 1.0)
        for step in range(HALVINGS):
            tried = high if step == 0 else np.sqrt(low * high)
            late = self.late_tpot(self.residents(decode, tried)) | self.late_ttft(rate * tried, prefill)
            low, high = np.where(late, low, tried), np.where(late, tried, high)
        return np.asarray(np.minimum(rate * low, served), dtype=np.float64)

    def residents(self, replicas: IntArray, times: float | FloatArray = 1.0) -> FloatArray:
        """Sequences on one of so many decode replicas, at so many times the peak's load."""
        if self.demand.clients:
            return np.minimum(np.maximum(self.demand.clients / replicas, 1.0), self.places)
        rate = self.demand.peak_requests_s * times / replicas

        def held(running: FloatArray) -> FloatArray:
            wanted = rate * self.steps * self.iteration(running)
            return np.asarray(np.clip(wanted, 1.0, self.places), dtype=np.float64)

        running = np.ones(len(self.rows))
        for _ in range(ROUNDS):
            # Little's law by iteration, which creeps towards saturation: every second step is extrapolated (Aitken).
            first = held(running)
            second = held(first)
            bend = second - 2.0 * first + running
            with np.errstate(divide="ignore", invalid="ignore"):
                jump = running - (first - running) ** 2 / bend
            running = np.where(np.isfinite(jump), np.clip(jump, second, self.places), second)
        return running

    def rate(self, running: FloatArray) -> FloatArray:
        """Requests a second of the whole deployment, at most."""
        if not self.demand.clients:
            return np.full(len(self.rows), self.demand.peak_requests_s)
        return np.asarray(self.demand.clients / (self.own + self.steps * self.iteration(running)), dtype=np.float64)

    def late_tpot(self, running: FloatArray) -> BoolArray:
        at = self.question.slo_percentile
        return self.exceeds(self.tpot_statistics(running)[at], self.question.tpot_ms)

    def tpot_statistics(self, running: FloatArray) -> dict[str, FloatArray]:
        """The batch varies as a Poisson count, and its iterations with it."""
        spread = np.sqrt(running) if not self.demand.clients else np.zeros_like(running)
        quantiles = {
            name: self.tpot(np.minimum(running + z * spread, self.places)) for name, z in NORMAL_QUANTILES.items()
        }
        return {"mean": self.tpot(running), **quantiles}

    def prefill_s(self, rate: FloatArray, replicas: IntArray) -> FloatArray:
        """The longer the queue, the more prompts share a step."""
        busy = np.minimum(rate * self.batched / (replicas * self.ranks), 1.0)
        return np.asarray(self.alone + (self.batched - self.alone) * busy, dtype=np.float64)

    def full_steps(self) -> FloatArray:
        """Load ``x`` in full steps at which a prefill replica is busy for the share ``room`` of its time.

        With ``prefill_s`` it is busy for ``x (a + (1 - a) x)``, where a prompt alone takes ``a`` times its share of a
        full step; of the two loads that solve it, the lower.
        """
        more = np.maximum(self.alone / self.batched - 1.0, 0.0)
        root = np.sqrt(np.maximum((1.0 + more) ** 2 - 4.0 * more * self.room, 0.0))
        share: FloatArray = np.minimum(2.0 * self.room / (1.0 + more + root), 1.0)
        return share

    def ttft_statistics(self, rate: FloatArray, replicas: IntArray) -> dict[str, FloatArray]:
        prefill, servers = self.prefill_s(rate, replicas), replicas * self.ranks
        load = rate * prefill / servers
        others = 1.0 if not self.demand.clients else 1.0 - 1.0 / self.demand.clients
        variation = self.question.arrival_cv**2 if not self.demand.clients else 1.0
        wait = others * many_server_wait(np.minimum(load, 0.999), prefill, servers, variation, 0.0)
        met = np.minimum(load, 1.0) ** (np.sqrt(2.0 * (servers + 1.0)) - 1.0)
        own = prefill + self.transfer + np.asarray(self.prefill.coefficients.request_s)
        found = {"mean": wait}
        found |= {name: exponential_quantile(wait, met, quantile) for name, quantile in PERCENTILES.items()}
        return {name: np.where(load < 1.0, own + value, np.inf) for name, value in found.items()}

    def late_ttft(self, rate: FloatArray, replicas: IntArray) -> BoolArray:
        found = self.ttft_statistics(rate, replicas)
        never = ~np.isfinite(found["mean"])
        return self.exceeds(found[self.question.slo_percentile], self.question.ttft_ms) | never

    def exceeds(self, seconds: FloatArray, limit_ms: float | None) -> BoolArray:
        if limit_ms is None:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(~(seconds * 1e3 <= limit_ms))

    def search(self, fewest: IntArray, hopeless: BoolArray, late: Callable[[IntArray], BoolArray]) -> IntArray:
        """The smallest number of replicas from ``fewest`` on that isn't late; beyond ``MAX_REPLICAS`` where none is.

        What no number helps (``hopeless``) stays at ``fewest``.
        """
        high = fewest.copy()
        while (still := late(high) & ~hopeless & (high <= MAX_REPLICAS)).any():
            high = np.where(still, high * 2, high)
        low = np.where(high > fewest, high // 2, high - 1)
        while (between := high - low > 1).any():
            middle = np.maximum((low + high) // 2, 1)
            too_few = late(middle)
            low = np.where(between & too_few, middle, low)
            high = np.where(between & ~too_few, middle, high)
        return high

    def estimate(
        self, rate: FloatArray, running: FloatArray, decode: IntArray, prefill: IntArray, capacity: FloatArray
    ) -> tuple[ServingEstimate, FloatArray]:
        each = rate / decode
        at_limit = running >= self.places
        limit = np.where(at_limit, LIMITS.index("kv_memory"), LIMITS.index("decode"))
        c, context = self.decode.coefficients, self.load.mean_context
        found = ServingEstimate(
            ttft_s=self.ttft_statistics(rate, prefill),
            tpot_s=self.tpot_statistics(running),
            output_tok_s=each * self.load.output_tokens,
            requests_s=each,
            running=running,
            max_sequences=self.places,
            capacity_requests_s=capacity,
            utilization=each / capacity,
            limit=limit,
            terms={name: np.asarray(part) for name, part in c.iteration_terms(running, running * context).items()},
        )
        return found, self.prefill_s(rate, prefill)

    def cycle(self, running: FloatArray, busy_s: FloatArray) -> Cycle:
        iteration = self.iteration(running)
        ones = np.ones(len(self.rows))
        return Cycle(
            cycle_s=busy_s + self.transfer + self.steps * iteration,
            decode_s=self.steps * iteration,
            iteration_s=iteration,
            prompt_s=busy_s,
            decoding=running,
            cohort=ones,
            by_chance=0.0 * ones,
            prefill_iterations=ones,
            fill=ones,
        )


def _whole(wanted: FloatArray) -> IntArray:
    counted = np.nan_to_num(wanted, nan=MAX_REPLICAS, posinf=MAX_REPLICAS)
    return np.clip(np.ceil(counted - 1e-9), 1, MAX_REPLICAS).astype(np.int64)
