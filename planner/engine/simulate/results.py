"""What a run says: totals, latency distributions, timelines, per-replica work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.engine.simulate.billing import Bill
from planner.engine.simulate.codes import OUTCOMES
from planner.engine.simulate.distributions import STATISTICS, Distribution, quantile
from planner.engine.simulate.layout import COARSE, E2E, TIME_BINS, TPOT, TTFT, Array, State


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Counts over time, one entry a bin of ``bin_s`` seconds."""

    bin_s: float
    arrived: Array
    done: Array
    lost: Array
    input_tokens: Array
    output_tokens: Array
    cached_input_tokens: Array
    ttft: Array
    """(bins, coarse logarithmic bins): of requests that finished in the bin."""
    tpot: Array

    @property
    def ttft_s(self) -> dict[str, Array]:
        """Quantiles of each bin, to 3 %; nan where nothing finished."""
        return _quantiles(self.ttft)

    @property
    def tpot_s(self) -> dict[str, Array]:
        """Quantiles of each bin, to 3 %; nan where nothing finished."""
        return _quantiles(self.tpot)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Queues, batches, KV and replicas over time: mean and extreme of each bin of ``bin_s`` seconds."""

    bin_s: float
    waiting: Array
    waiting_max: Array
    running: Array
    running_max: Array
    kv: Array
    kv_max: Array
    ready: Array
    ready_min: Array
    billed: Array
    """Replicas that what is rented has room for: a node is paid for whole."""
    billed_max: Array
    heat_kv: Array
    """(bins, rows): the fullest KV cache of each replica, or of each row of replicas."""
    heat_waiting: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Everything a run says about its requests and replicas."""

    requests: int
    begins_s: float
    """0 where the run was to last so long, else the first arrival; everything is paid for from 0 on."""
    duration_s: float
    """From there to the last departure, and to the end of the time asked for."""
    left: dict[str, int]
    """Requests by how they left; ``unfinished`` never did."""
    ttft: Distribution
    tpot: Distribution
    e2e: Distribution
    good: int
    """Requests within every limit asked for."""
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    preemptions: int
    retries: int
    iterations: int
    busy_s: Array
    """By replica: time spent in iterations."""
    prefill_s: Array
    """By replica: the part of it that prompts added."""
    work_s: Array
    """By pool: what its replicas spent in iterations, and the part of it that prompts added; (pools, 2)."""
    rented_s: Array
    """By replica: time paid for, coming up included."""
    rented: Array
    """By replica: 1 where it is still paid for at the end."""
    served: Array
    unit_hours: Array
    """By pool: hours of rented units (nodes), idle ones too."""
    gpu_hours: float
    """Paid for."""
    units_up: Array
    """By pool: units still rented at the end."""
    gpus_up: float
    timeline: Timeline
    samples: Samples
    home_counts: Array
    """By pool, requests that belong to it, wherever they were served: came, answered, within every limit."""
    home_sums: Array
    """By pool: their TTFT (microseconds), their TPOT (nanoseconds), and how many have one."""
    home_histogram: Array
    """(pools x (TTFT, TPOT), bins)."""

    @property
    def end_s(self) -> float:
        """When all has left and the time asked for is over: so long everything is paid for."""
        return self.begins_s + self.duration_s

    @property
    def utilization(self) -> float:
        """Share of the time paid for in which replicas compute; nan where nothing is paid for."""
        paid_s = float(self.rented_s.sum())
        return float(self.busy_s.sum()) / paid_s if paid_s > 0 else math.nan

    @property
    def done(self) -> int:
        """Requests answered in full."""
        return self.left["done"]

    def at_home(self, pool: int) -> AtHome:
        """The requests that belong to a pool."""
        came, done, good = (int(count) for count in self.home_counts[pool])
        ttft_us, tpot_ns, with_tpot = (int(value) for value in self.home_sums[pool])
        ttft, tpot = self.home_histogram[2 * pool + TTFT], self.home_histogram[2 * pool + TPOT]
        return AtHome(
            requests=came,
            done=done,
            good=good,
            ttft=Distribution(count=done, total=ttft_us, unit_s=1e-6, histogram=ttft),
            tpot=Distribution(count=with_tpot, total=tpot_ns, unit_s=1e-9, histogram=tpot),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtHome:
    """How the requests of one pool went, wherever they were served."""

    requests: int
    done: int
    good: int
    """Within every limit asked for."""
    ttft: Distribution
    tpot: Distribution


def read_outcome(state: State, bill: Bill, last_arrival_s: float) -> Outcome:
    """The outcome of a finished run; units still rented are billed until its end."""
    fleet = state.fleet[0]
    # Requests that leave without an answer keep replicas busy too: until they give up, or are turned away.
    asked = bool(fleet["lasts_s"] > 0)
    begins_s = 0.0 if asked else float(fleet["first_arrival"])
    end_s = max(float(fleet["last_left"]), last_arrival_s, min(float(fleet["lasts_s"]), float(fleet["now"])))
    counts = [int(count) for count in fleet["outcomes"]]
    requests = int(fleet["arrived"])
    left = dict(zip(OUTCOMES, counts, strict=True)) | {"unfinished": requests - sum(counts)}
    return Outcome(
        requests=requests,
        begins_s=begins_s,
        duration_s=end_s - begins_s,
        left=left,
        ttft=_distribution(state, TTFT, fleet["sum_ttft_us"], 1e-6, fleet["with_ttft"]),
        tpot=_distribution(state, TPOT, fleet["sum_tpot_ns"], 1e-9, fleet["with_tpot"]),
        e2e=_distribution(state, E2E, fleet["sum_e2e_us"], 1e-6, fleet["with_ttft"]),
        good=int(fleet["good"]),
        input_tokens=int(fleet["input_tokens"]),
        output_tokens=int(fleet["output_tokens"]),
        cached_input_tokens=int(fleet["hit_tokens"]),
        preemptions=int(fleet["preemptions"]),
        retries=int(fleet["retries"]),
        iterations=int(state.replicas["iterations"].sum()),
        busy_s=state.replicas["busy_s"].copy(),
        prefill_s=state.replicas["prefill_s"].copy(),
        work_s=_work(state),
        rented_s=bill.replica_s(end_s),
        rented=bill.replicas_up(),
        served=state.replicas["done"].copy(),
        unit_hours=bill.unit_hours(end_s),
        gpu_hours=bill.gpu_hours(end_s),
        units_up=bill.units_up(),
        gpus_up=bill.gpus_up(),
        timeline=_timeline(state, end_s if asked else 0.0),
        samples=_samples(state),
        **_homes(state),
    )


def _work(state: State) -> Array:
    """Seconds of every pool's replicas, all of them together: in iterations, and added by prompts."""
    work: Array = np.zeros((len(state.pools), 2))
    for column, name in enumerate(("busy_s", "prefill_s")):
        np.add.at(work[:, column], state.replicas["pool"], state.replicas[name])
    return work


def _homes(state: State) -> dict[str, Array]:
    """What is counted by the pool that requests belong to; the one pool's is everybody's."""
    fleet, pools = state.fleet[0], state.pools
    if len(pools) > 1:
        counts = [pools[name] for name in ("arrived", "done", "good")]
        sums = [pools[name] for name in ("sum_ttft_us", "sum_tpot_ns", "with_tpot")]
        histogram = state.home_histogram.copy()
    else:
        counts = [np.array([value]) for value in (fleet["arrived"], fleet["with_ttft"], fleet["good"])]
        sums = [np.array([fleet[name]]) for name in ("sum_ttft_us", "sum_tpot_ns", "with_tpot")]
        histogram = state.histogram[[TTFT, TPOT]]
    return {
        "home_counts": np.stack(counts, axis=1),
        "home_sums": np.stack(sums, axis=1),
        "home_histogram": histogram,
    }


def _distribution(state: State, row: int, total: int, unit_s: float, count: int) -> Distribution:
    return Distribution(count=int(count), total=int(total), unit_s=unit_s, histogram=state.histogram[row].copy())


def _timeline(state: State, end_s: float) -> Timeline:
    """Bins until the last in which anything came or left, and until ``end_s``."""
    bins = state.bins
    bin_s = float(state.fleet["bin_s"][0])
    used = max(_used(bins["arrived"] + bins["done"] + bins["lost"]), min(math.ceil(end_s / bin_s), TIME_BINS))
    spread = state.bin_histogram.reshape(TIME_BINS, 2, -1)[:used]
    return Timeline(
        bin_s=bin_s,
        arrived=bins["arrived"][:used].copy(),
        done=bins["done"][:used].copy(),
        lost=bins["lost"][:used].copy(),
        input_tokens=bins["input_tokens"][:used].copy(),
        output_tokens=bins["output_tokens"][:used].copy(),
        cached_input_tokens=bins["hit_tokens"][:used].copy(),
        ttft=spread[:, TTFT].copy(),
        tpot=spread[:, TPOT].copy(),
    )


def _quantiles(histograms: Array) -> dict[str, Array]:
    return {
        name: np.array([quantile(histogram, share, COARSE) for histogram in histograms])
        for name, share in STATISTICS.items()
    }


def _samples(state: State) -> Samples:
    samples = state.samples
    used = _used(samples["count"])
    count = np.maximum(samples["count"][:used], 1)
    columns: dict[str, Any] = {
        name: samples[name][:used] / count for name in ("waiting", "running", "kv", "ready", "billed")
    }
    for name in ("waiting_max", "running_max", "kv_max", "ready_min", "billed_max"):
        columns[name] = samples[name][:used].copy()
    return Samples(
        bin_s=float(state.fleet["sample_s"][0]),
        heat_kv=state.heat_kv[:used].copy(),
        heat_waiting=state.heat_waiting[:used].copy(),
        **columns,
    )


def _used(counts: Array) -> int:
    filled = np.flatnonzero(counts)
    return int(filled[-1]) + 1 if len(filled) else 0
