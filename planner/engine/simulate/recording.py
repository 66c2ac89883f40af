"""What leaves the simulation: totals, histograms, time bins, samples and, where asked, one row a request."""

from __future__ import annotations

import math
from typing import Any

from planner.engine.simulate.codes import BATCHED, DONE, NONE, QUEUE_FULL, RELEASE
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import (
    COARSE,
    E2E,
    FINE,
    FIRST_OCTAVE,
    HEAT_ROWS,
    OCTAVES,
    TIME_BINS,
    TPOT,
    TTFT,
    State,
)
from planner.engine.simulate.queues import push_event
from planner.engine.simulate.rng import uniform


@inner
def log_bin(value: float, per_octave: int) -> int:
    """The logarithmic histogram bin of a duration: linear inside each power of two, hence exact everywhere."""
    if value <= 0.0:
        return 0
    mantissa, exponent = math.frexp(value)
    i = (exponent - 1 - FIRST_OCTAVE) * per_octave + int((mantissa - 0.5) * 2 * per_octave)
    return min(max(i, 0), OCTAVES * per_octave - 1)


@inner
def time_bin(st: State, time_s: float) -> int:
    """The time bin of ``time_s``; when the run outgrows the bins, pairs merge and the bin doubles."""
    fleet = st.fleet[0]
    while time_s >= TIME_BINS * fleet.bin_s:
        _merge_bins(st)
    return int(time_s / fleet.bin_s)


@inner
def reach(st: State, end_s: float) -> None:
    """Widen the time bins until they hold a run that ends at ``end_s``."""
    while end_s > TIME_BINS * st.fleet[0].bin_s:
        _merge_bins(st)


@inner
def _merge_bins(st: State) -> None:
    for i in range(TIME_BINS):
        into = st.bins[i]
        if i < TIME_BINS // 2:
            a = st.bins[2 * i]
            b = st.bins[2 * i + 1]
            into.arrived, into.done, into.lost = a.arrived + b.arrived, a.done + b.done, a.lost + b.lost
            into.input_tokens = a.input_tokens + b.input_tokens
            into.output_tokens = a.output_tokens + b.output_tokens
            into.hit_tokens = a.hit_tokens + b.hit_tokens
            for column in range(st.bin_histogram.shape[1]):
                for what in range(2):
                    pair = st.bin_histogram[4 * i + what, column] + st.bin_histogram[4 * i + 2 + what, column]
                    st.bin_histogram[2 * i + what, column] = pair
        else:
            into.arrived, into.done, into.lost = 0, 0, 0
            into.input_tokens, into.output_tokens, into.hit_tokens = 0, 0, 0
            st.bin_histogram[2 * i] = 0
            st.bin_histogram[2 * i + 1] = 0
    st.fleet[0].bin_s *= 2


@inner
def _row(st: State, s: int, last_s: float, outcome: int) -> None:
    fleet = st.fleet[0]
    if not fleet.keep_rows:
        return
    request = st.slots[s]
    row = st.rows[fleet.rows]
    fleet.rows += 1
    row.request = request.request
    row.arrival = request.arrival
    row.scheduled = request.scheduled
    row.first = request.first + request.extra
    row.last = last_s + request.extra
    row.replica = request.replica
    row.outcome = outcome


@inner
def _free_slot(st: State, s: int, t: float) -> None:
    fleet = st.fleet[0]
    fleet.last_left = t
    st.slots[s].request = NONE
    st.slots[s].next = fleet.free_slot
    fleet.free_slot = s
    fleet.live -= 1


@inner
def leave_unserved(st: State, s: int, t: float, outcome: int) -> None:
    """Count a request that got no full answer, and free its slot."""
    fleet = st.fleet[0]
    fleet.outcomes[outcome] += 1
    st.bins[time_bin(st, t)].lost += 1
    _row(st, s, math.nan, outcome)
    if fleet.closed:
        # Who is turned away tries again as a refused request would, so that time passes.
        _release_client(st, s, t + fleet.retry_s)
    _free_slot(st, s, t)


@inner
def turn_away(st: State, number: int, home: int, t: float) -> None:
    """Count a request that comes while there are as many as there may be, and never gets a slot."""
    fleet = st.fleet[0]
    if fleet.arrived == 0:
        fleet.first_arrival = t
    fleet.arrived += 1
    fleet.outcomes[QUEUE_FULL] += 1
    fleet.last_left = t
    st.pools[home].arrived += 1
    b = time_bin(st, t)
    st.bins[b].arrived += 1
    st.bins[b].lost += 1
    if fleet.keep_rows:
        row = st.rows[fleet.rows]
        fleet.rows += 1
        row.request, row.arrival, row.replica, row.outcome = number, t, NONE, QUEUE_FULL
        row.scheduled, row.first, row.last = math.nan, math.nan, math.nan


@inner
def leave_served(st: State, s: int, t: float) -> None:
    """Count a finished request: TTFT, TPOT, E2E, tokens, SLO; and free its slot."""
    fleet = st.fleet[0]
    request = st.slots[s]
    ttft = request.first - request.arrival + request.extra
    e2e = t - request.arrival + request.extra
    fleet.outcomes[DONE] += 1
    fleet.sum_ttft_us += int(ttft * 1e6 + 0.5)
    fleet.sum_e2e_us += int(e2e * 1e6 + 0.5)
    fleet.with_ttft += 1
    st.histogram[TTFT, log_bin(ttft, FINE)] += 1
    st.histogram[E2E, log_bin(e2e, FINE)] += 1
    b = time_bin(st, t)
    st.bin_histogram[2 * b + TTFT, log_bin(ttft, COARSE)] += 1
    tpot = 0.0
    has_tpot = request.output > 1 and _by_token(st, s)
    if has_tpot:
        tpot = (t - request.first) / (request.output - 1)
        fleet.sum_tpot_ns += int(tpot * 1e9 + 0.5)
        fleet.with_tpot += 1
        st.histogram[TPOT, log_bin(tpot, FINE)] += 1
        st.bin_histogram[2 * b + TPOT, log_bin(tpot, COARSE)] += 1
    good = 1 if ttft <= fleet.slo_ttft_s and tpot <= fleet.slo_tpot_s else 0
    fleet.good += good
    if len(st.pools) > 1:
        _count_at_home(st, s, ttft, tpot, good, has_tpot)
    st.bins[b].done += 1
    st.bins[b].input_tokens += request.input
    st.bins[b].output_tokens += request.output
    st.bins[b].hit_tokens += request.hits
    fleet.input_tokens += request.input
    fleet.output_tokens += request.output
    fleet.hit_tokens += request.hits
    _row(st, s, t, DONE)
    if fleet.closed:
        _release_client(st, s, t + request.extra)
    _free_slot(st, s, t)


@inner
def _by_token(st: State, s: int) -> bool:
    """Whether an answer comes token by token; a batch of whole requests gives all of it at once."""
    return st.kinds[st.replicas[st.slots[s].replica].kind].mode != BATCHED  # type: ignore[no-any-return]


@inner
def _count_at_home(st: State, s: int, ttft: float, tpot: float, good: int, has_tpot: bool) -> None:
    """The same for the pool that the request belongs to, whichever served it."""
    request = st.slots[s]
    pool = st.pools[request.home]
    pool.done += 1
    pool.good += good
    pool.sum_ttft_us += int(ttft * 1e6 + 0.5)
    st.home_histogram[2 * request.home + TTFT, log_bin(ttft, FINE)] += 1
    if has_tpot:
        pool.with_tpot += 1
        pool.sum_tpot_ns += int(tpot * 1e9 + 0.5)
        st.home_histogram[2 * request.home + TPOT, log_bin(tpot, FINE)] += 1


@inner
def _release_client(st: State, s: int, free_s: float) -> None:
    """Closed loop: the client of a request has its answer at ``free_s``, and sends its next after a pause."""
    fleet = st.fleet[0]
    if fleet.think_s > 0.0:
        free_s -= fleet.think_s * math.log(1.0 - uniform(st))
    if free_s > fleet.now:
        push_event(st, free_s, RELEASE, s)
    else:
        fleet.released += 1


@inner
def take_sample(st: State, time_s: float) -> None:
    """Read queues, batches and KV of every replica now; pairs of samples merge when the run outgrows them."""
    fleet = st.fleet[0]
    while time_s >= TIME_BINS * fleet.sample_s:
        _merge_samples(st)
    i = int(time_s / fleet.sample_s)
    sample = st.samples[i]
    waiting, running, ready, billed, kv = 0.0, 0.0, 0.0, 0.0, 0.0
    paid = NONE
    for r in range(len(st.replicas)):
        rep = st.replicas[r]
        if rep.billed and rep.unit != paid:
            billed += rep.unit_room
            paid = rep.unit
        if not rep.alive:
            continue
        used = kv_used(st, r, time_s)
        ready += 1
        waiting += rep.waiting
        running += rep.running
        kv += used
        row = r * st.heat_kv.shape[1] // len(st.replicas) if len(st.replicas) > HEAT_ROWS else r
        st.heat_kv[i, row] = max(st.heat_kv[i, row], used)
        st.heat_waiting[i, row] = max(st.heat_waiting[i, row], rep.waiting)
    for p in range(len(st.pools)):
        waiting += st.pools[p].held
    kv = kv / ready if ready > 0 else 0.0
    _add_sample(sample, waiting, running, kv, ready, billed)


@inner
def _add_sample(sample: Any, waiting: float, running: float, kv: float, ready: float, billed: float) -> None:
    sample.ready_min = min(sample.ready_min, ready) if sample.count else ready
    sample.count += 1
    sample.waiting += waiting
    sample.waiting_max = max(sample.waiting_max, waiting)
    sample.running += running
    sample.running_max = max(sample.running_max, running)
    sample.kv += kv
    sample.kv_max = max(sample.kv_max, kv)
    sample.ready += ready
    sample.billed += billed
    sample.billed_max = max(sample.billed_max, billed)


@inner
def _merge_samples(st: State) -> None:
    for i in range(TIME_BINS):
        into = st.samples[i]
        if i >= TIME_BINS // 2:
            into.count = 0
            into.waiting, into.waiting_max, into.running, into.running_max = 0.0, 0.0, 0.0, 0.0
            into.kv, into.kv_max, into.ready, into.ready_min = 0.0, 0.0, 0.0, 0.0
            into.billed, into.billed_max = 0.0, 0.0
            st.heat_kv[i] = 0.0
            st.heat_waiting[i] = 0.0
            continue
        a = st.samples[2 * i]
        b = st.samples[2 * i + 1]
        lowest = min(a.ready_min, b.ready_min) if a.count and b.count else max(a.ready_min, b.ready_min)
        into.count = a.count + b.count
        into.waiting, into.waiting_max = a.waiting + b.waiting, max(a.waiting_max, b.waiting_max)
        into.running, into.running_max = a.running + b.running, max(a.running_max, b.running_max)
        into.kv, into.kv_max = a.kv + b.kv, max(a.kv_max, b.kv_max)
        into.ready, into.ready_min = a.ready + b.ready, lowest
        into.billed, into.billed_max = a.billed + b.billed, max(a.billed_max, b.billed_max)
        for row in range(st.heat_kv.shape[1]):
            st.heat_kv[i, row] = max(st.heat_kv[2 * i, row], st.heat_kv[2 * i + 1, row])
            st.heat_waiting[i, row] = max(st.heat_waiting[2 * i, row], st.heat_waiting[2 * i + 1, row])
    st.fleet[0].sample_s *= 2


@inner
def kv_used(st: State, r: int, time_s: float) -> float:
    """Share of the replica's KV blocks in use at ``time_s``, growth inside a decode run included."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    if kind.blocks == 0:
        return 0.0
    grown = 0.0
    if rep.busy and rep.run_steps > 1 and rep.run_first > 0:
        steps = min((time_s - rep.run_start) / rep.run_first, rep.run_steps)
        grown = max(0.0, steps) * rep.growth / kind.block_tokens
    return min(1.0, (kind.blocks - rep.free + grown) / kind.blocks)  # type: ignore[no-any-return]
