"""The event loop: the earliest of a replica's boundary, a timed event and an arrival, one after another."""

from __future__ import annotations

import math

from planner.engine.simulate.codes import (
    BATCHED,
    CANCEL,
    CANCELLED,
    FINISHED,
    FLUSH_ROWS,
    GROW_CACHE,
    GROW_EVENTS,
    GROW_SLOTS,
    HELD,
    MOVING,
    NEED_TRAFFIC,
    NONE,
    PAUSED,
    REACHED,
    RELEASE,
    ROUTE,
    UNHOLD,
    WAITING,
)
from planner.engine.simulate.compiled import entry, inner
from planner.engine.simulate.dynamic_batch import accrue, complete_batches, dispatch
from planner.engine.simulate.gateway import arrive, next_arrival
from planner.engine.simulate.handle import open_state
from planner.engine.simulate.iteration import complete, compose, cut_run
from planner.engine.simulate.layout import Array, State, Traffic
from planner.engine.simulate.prefix_cache import empty_cache, release
from planner.engine.simulate.queues import (
    drop_event,
    leave_waiting,
    next_replica,
    pop_finish,
    remove_waiting,
    set_next,
)
from planner.engine.simulate.recording import leave_unserved, reach, take_sample
from planner.engine.simulate.routing import drain_held, expire_held, remove_held, route, send_again
from planner.engine.simulate.sequences import stop_running


@entry
def advance(table: Array, traffic: Traffic, until_s: float, last_batch: bool, most_events: int) -> int:
    """Simulate up to ``until_s``, until more is needed or for so many events; says which (``codes.REACHED`` ...)."""
    st = open_state(table)
    fleet = st.fleet[0]
    handled = 0
    while True:
        if handled >= most_events:
            return PAUSED
        short = _short_of(st)
        if short != NONE:
            return short
        if fleet.drain:
            fleet.drain = 0
            drain_held(st, fleet.now)
        exhausted = fleet.cursor >= len(traffic.arrival_s)
        if exhausted and not last_batch:
            return NEED_TRAFFIC
        arrival = next_arrival(st, traffic)
        event = st.events[0].time if fleet.events > 0 else math.inf
        replica = st.tree[1]
        t = min(arrival, event, replica)
        served = fleet.live == 0 and (exhausted or (fleet.closed and t >= fleet.closes_s))
        # A loop that has run out of requests ends there, whatever time is left.
        if served and (fleet.now >= fleet.lasts_s or (fleet.closed and exhausted)):
            return FINISHED
        next_s = min(t, until_s)
        ends = fleet.now < fleet.lasts_s <= next_s and (served or next_s == math.inf)
        horizon = fleet.lasts_s if ends else next_s
        if fleet.next_sample < horizon < math.inf:
            take_sample(st, fleet.next_sample)
            fleet.next_sample += fleet.sample_s
            handled += 1
            continue
        if ends:
            fleet.now = horizon
            reach(st, horizon)
            return FINISHED
        if t == math.inf or t > until_s:
            return REACHED
        fleet.now = t
        handled += 1
        if event <= t:
            _handle_event(st, t)
        elif replica <= t:
            _boundary(st, next_replica(st), t)
        else:
            arrive(st, traffic, t)


@inner
def _short_of(st: State) -> int:
    """What must grow before the next event can be handled; none usually."""
    fleet = st.fleet[0]
    if fleet.free_slot == NONE and fleet.live < fleet.most_live:
        return GROW_SLOTS
    if fleet.events + fleet.live + 64 > len(st.events):
        return GROW_EVENTS
    if fleet.keep_rows and fleet.rows + fleet.live + 64 > len(st.rows):
        return FLUSH_ROWS
    if fleet.entry_margin > 0 and fleet.entries + fleet.entry_margin > len(st.entries):
        return GROW_CACHE
    return NONE


@inner
def _boundary(st: State, r: int, t: float) -> None:
    """A run or batch of replica ``r`` ends, or a batch has waited long enough."""
    rep = st.replicas[r]
    if st.kinds[rep.kind].mode == BATCHED:
        complete_batches(st, r, t)
        dispatch(st, r, t)
    else:
        complete(st, r, t)
        compose(st, r, t)


@inner
def _handle_event(st: State, t: float) -> None:
    event = st.events[0]
    kind, s, request = event.kind, event.slot, event.request
    drop_event(st)
    if kind == RELEASE:
        st.fleet[0].released += 1
        return
    # The slot may serve another request by now: a timer of one that has left.
    if st.slots[s].request != request:
        return
    if kind == ROUTE and st.slots[s].state == MOVING:
        source = st.slots[s].replica
        if source != NONE:
            _kv_arrived(st, source, s, t)
        if st.slots[s].cancelled:
            leave_unserved(st, s, t, CANCELLED)
        else:
            route(st, s, t)
    elif kind == CANCEL:
        _cancel(st, s, t)
    elif kind == UNHOLD and st.slots[s].state == HELD:
        expire_held(st, st.slots[s].pool, t)


@inner
def _kv_arrived(st: State, source: int, s: int, t: float) -> None:
    """The prompt's KV is on its way in: the prefill replica may reuse its blocks."""
    rep = st.replicas[source]
    release(st, source, s, st.slots[s].target)
    rep.outstanding -= 1
    rep.done += 1
    rep.blocked = 0
    st.slots[s].replica = NONE
    st.fleet[0].drain = 1
    if not rep.busy:
        compose(st, source, t)


@inner
def _cancel(st: State, s: int, t: float) -> None:
    """The client gives up: a request in a queue leaves now, a running one when its iteration ends."""
    request = st.slots[s]
    r = request.replica
    request.cancelled = 1
    if request.state == WAITING:
        remove_waiting(st, r, s)
        st.replicas[r].outstanding -= 1
        st.fleet[0].drain = 1
        leave_unserved(st, s, t, CANCELLED)
    elif request.state == HELD:
        remove_held(st, s)
        leave_unserved(st, s, t, CANCELLED)
    elif request.state != MOVING and st.kinds[st.replicas[r].kind].mode != BATCHED:
        st.replicas[r].cancels += 1
        cut_run(st, r, t, 0)


@entry
def start_replica(table: Array, r: int, t: float) -> None:
    """Bring a replica up, empty: it serves from ``t`` on."""
    st = open_state(table)
    rep = st.replicas[r]
    rep.alive = 1
    rep.running, rep.decoding, rep.waiting, rep.waiting_tokens, rep.outstanding, rep.heap_n = 0, 0, 0, 0, 0, 0
    rep.steps, rep.context, rep.growth, rep.debt, rep.squares = 0.0, 0.0, 0.0, 0.0, 0.0
    rep.busy, rep.late_blocks, rep.late_seqs, rep.taken = 0, 0, 0, 0
    rep.run_start = t
    st.phases[r] = 0
    set_next(st, r, math.inf)
    empty_cache(st, r)
    st.fleet[0].now = t
    st.fleet[0].drain = 1


@entry
def stop_replica(table: Array, r: int, t: float) -> int:
    """A replica is gone: what it had is sent again elsewhere; returns how many requests it lost."""
    st = open_state(table)
    st.fleet[0].now = t
    rep = st.replicas[r]
    lost = 0
    rep.alive = 0
    # What it was doing is lost, but it was busy until now.
    if st.kinds[rep.kind].mode == BATCHED:
        accrue(st, r, t)
        while rep.heap_n > 0:
            s = pop_finish(st, r)
            while s != NONE:
                following = st.slots[s].queued
                send_again(st, r, s, t)
                lost += 1
                s = following
    elif rep.busy:
        rep.busy_s += t - rep.run_start
    while rep.run_head != NONE:
        s = rep.run_head
        stop_running(st, r, s)
        send_again(st, r, s, t)
        lost += 1
    while rep.wait_head != NONE:
        send_again(st, r, leave_waiting(st, r), t)
        lost += 1
    for s in range(len(st.slots)):
        request = st.slots[s]
        if request.request != NONE and request.state == MOVING and request.replica == r:
            release(st, r, s, request.target)
            request.replica = NONE
            request.prefilled = 0
            request.generated = 0
            request.first = math.nan
            request.pool = request.home
            lost += 1
    rep.outstanding = 0
    rep.running = 0
    rep.busy, rep.late_blocks, rep.late_seqs = 0, 0, 0
    set_next(st, r, math.inf)
    return lost
