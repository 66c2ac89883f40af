"""The gateway: which replica a request goes to, and what happens when none takes it.

Only replicas believed ready are chosen among (``members``, kept by health checks); one that is dead all
the same refuses the request, which is sent again a little later.
"""

from __future__ import annotations

import math

from planner.engine.simulate.balancing import choose
from planner.engine.simulate.codes import (
    BATCHED,
    HELD,
    MOVING,
    NONE,
    QUEUE_FULL,
    QUEUE_TIMEOUT,
    REPLICA_LOST,
    ROUTE,
    TOO_LONG,
    UNHOLD,
    WAITING,
)
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.dynamic_batch import dispatch
from planner.engine.simulate.iteration import arrive
from planner.engine.simulate.kv_blocks import blocks_of
from planner.engine.simulate.layout import State
from planner.engine.simulate.queues import push_event, wait_last
from planner.engine.simulate.recording import leave_unserved
from planner.engine.simulate.records import MAX_AVOIDED, MAX_FALLBACKS

MAX_DOUBLINGS = 6
"""Of the time between attempts."""


@inner
def route(st: State, s: int, t: float) -> None:
    """Send a request to a replica of its pool, else of a fallback, else hold it at the gateway."""
    request = st.slots[s]
    home = request.pool
    r = choose(st, home, s, t, True)
    if r == NONE:
        for i in range(MAX_FALLBACKS):
            other = st.pools[home].fallback[i]
            if other == NONE:
                break
            r = choose(st, other, s, t, True)
            if r != NONE:
                break
        if r == NONE:
            r = choose(st, home, s, t, False)
    if r == NONE:
        _hold(st, s, t)
    else:
        _send(st, r, s, t)


@inner
def _send(st: State, r: int, s: int, t: float) -> None:
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    if not rep.alive:
        send_again(st, r, s, t)
        return
    if kind.mode != BATCHED:
        tokens = request.input + request.output
        if tokens > kind.max_context or blocks_of(tokens, kind.block_tokens) > kind.blocks:
            leave_unserved(st, s, t, TOO_LONG)
            return
    if rep.waiting >= kind.max_waiting:
        leave_unserved(st, s, t, QUEUE_FULL)
        return
    request.replica = r
    request.state = WAITING
    request.ready = t
    if not request.prefilled:
        request.extra = st.distance[request.home, rep.pool] + kind.request_s
        request.pass_s = 0.0
        request.kept = 0
    rep.outstanding += 1
    rep.routed += 1
    wait_last(st, r, s)
    if kind.mode == BATCHED:
        dispatch(st, r, t)
    else:
        arrive(st, r, t)


@inner
def send_again(st: State, r: int, s: int, t: float) -> None:
    """After replica ``r`` refused it or was lost: try again, elsewhere, each time later, a limited number of times."""
    fleet = st.fleet[0]
    request = st.slots[s]
    request.avoid[request.retries % MAX_AVOIDED] = r
    request.retries += 1
    if request.retries > fleet.max_retries:
        leave_unserved(st, s, t, REPLICA_LOST)
        return
    fleet.retries += 1
    request.replica = NONE
    request.prefilled = 0
    request.generated = 0
    request.first = math.nan
    request.pool = request.home
    request.state = MOVING
    push_event(st, t + fleet.retry_s * 2.0 ** min(request.retries - 1, MAX_DOUBLINGS), ROUTE, s)


@inner
def _hold(st: State, s: int, t: float) -> None:
    request = st.slots[s]
    pool = st.pools[request.pool]
    if pool.held >= pool.max_held:
        leave_unserved(st, s, t, QUEUE_FULL)
        return
    request.state = HELD
    request.ready = t
    request.queued = NONE
    if pool.hold_tail == NONE:
        pool.hold_head = s
    else:
        st.slots[pool.hold_tail].queued = s
    pool.hold_tail = s
    pool.held += 1
    if pool.hold_s < math.inf:
        push_event(st, t + pool.hold_s, UNHOLD, s)


@inner
def _leave_hold(st: State, p: int) -> int:
    pool = st.pools[p]
    s = pool.hold_head
    pool.hold_head = st.slots[s].queued
    if pool.hold_head == NONE:
        pool.hold_tail = NONE
    pool.held -= 1
    return s  # type: ignore[no-any-return]


@inner
def remove_held(st: State, s: int) -> None:
    """Take one request out of those held, wherever it stands (its client gave up: rare)."""
    pool = st.pools[st.slots[s].pool]
    before = NONE
    at = pool.hold_head
    while at != s:
        before = at
        at = st.slots[at].queued
    after = st.slots[s].queued
    if before == NONE:
        pool.hold_head = after
    else:
        st.slots[before].queued = after
    if after == NONE:
        pool.hold_tail = before
    pool.held -= 1


@inner
def expire_held(st: State, p: int, t: float) -> None:
    """Turn away requests that the gateway has held for as long as it may."""
    pool = st.pools[p]
    while pool.hold_head != NONE and t >= st.slots[pool.hold_head].ready + pool.hold_s:
        leave_unserved(st, _leave_hold(st, p), t, QUEUE_TIMEOUT)


@inner
def drain_held(st: State, t: float) -> None:
    """Send what the gateway holds, in order, as far as replicas take it."""
    for p in range(len(st.pools)):
        while st.pools[p].hold_head != NONE:
            s = st.pools[p].hold_head
            r = choose(st, p, s, t, False)
            if r == NONE:
                break
            _leave_hold(st, p)
            _send(st, r, s, t)
