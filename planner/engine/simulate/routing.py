"""The gateway: which replica a request goes to, and what happens when none takes it.

Only replicas believed ready are chosen among (``members``, kept by health checks); one that is dead all
the same refuses the request, which is sent again a little later. Loads are what the gateway itself
knows: requests it sent that haven't come back; and, for the KV policies, what replicas report.
"""

from __future__ import annotations

import math

from planner.engine.simulate.codes import (
    BATCHED,
    HELD,
    LEAST_KV,
    MOVING,
    NONE,
    POWER_OF_TWO,
    PREFIX_AWARE,
    QUEUE_FULL,
    QUEUE_TIMEOUT,
    REPLICA_LOST,
    ROUND_ROBIN,
    ROUTE,
    SESSION_AFFINITY,
    TOO_LONG,
    UNHOLD,
    WAITING,
)
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.dynamic_batch import dispatch
from planner.engine.simulate.iteration import arrive
from planner.engine.simulate.kv_blocks import blocks_of
from planner.engine.simulate.layout import MAX_FALLBACKS, State
from planner.engine.simulate.prefix_cache import leading_hits
from planner.engine.simulate.queues import push_event, wait_last
from planner.engine.simulate.recording import kv_used, leave_unserved
from planner.engine.simulate.rng import mix, uniform

MAX_DOUBLINGS = 6
"""Of the time between attempts."""


@inner
def route(st: State, s: int, t: float) -> None:
    """Send a request to a replica of its pool, else of a fallback, else hold it at the gateway."""
    request = st.slots[s]
    home = request.pool
    r = _choose(st, home, s, t, True)
    if r == NONE:
        for i in range(MAX_FALLBACKS):
            other = st.pools[home].fallback[i]
            if other == NONE:
                break
            r = _choose(st, other, s, t, True)
            if r != NONE:
                break
        if r == NONE:
            r = _choose(st, home, s, t, False)
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
        request.avoid = r
        send_again(st, s, t)
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
def send_again(st: State, s: int, t: float) -> None:
    """After a refusal or a lost replica: try again, each time later, a limited number of times."""
    fleet = st.fleet[0]
    request = st.slots[s]
    request.retries += 1
    if request.retries > fleet.max_retries:
        leave_unserved(st, s, t, REPLICA_LOST)
        return
    fleet.retries += 1
    if request.replica != NONE:
        request.avoid = request.replica
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
            r = _choose(st, p, s, t, False)
            if r == NONE:
                break
            _leave_hold(st, p)
            _send(st, r, s, t)


@inner
def _choose(st: State, p: int, s: int, t: float, spilling: bool) -> int:
    """The pool's replica for this request, or none if all are full (or, ``spilling``, busier than its limit)."""
    pool = st.pools[p]
    n = pool.members
    if n == 0:
        return NONE
    limit = pool.max_outstanding
    if spilling and pool.spill > 0:
        limit = min(limit, pool.spill) if limit > 0 else pool.spill
    if pool.policy == ROUND_ROBIN:
        r = _round_robin(st, p, limit)
    elif pool.policy == POWER_OF_TWO:
        r = _power_of_two(st, p)
    elif pool.policy == LEAST_KV:
        r = _least_kv(st, p, t)
    elif pool.policy == PREFIX_AWARE:
        r = _longest_prefix(st, p, s)
    elif pool.policy == SESSION_AFFINITY and st.slots[s].key != NONE:
        r = _by_session(st, p, st.slots[s].key)
    else:
        r = _least_outstanding(st, p, NONE)
    if n > 1 and r == st.slots[s].avoid:
        r = _least_outstanding(st, p, r)
    if limit > 0 and st.replicas[r].outstanding >= limit:
        r = _least_outstanding(st, p, NONE)
        if st.replicas[r].outstanding >= limit:
            return NONE
    return r


@inner
def _round_robin(st: State, p: int, limit: int) -> int:
    pool = st.pools[p]
    for _ in range(pool.members):
        if pool.turn >= pool.members:
            pool.turn = 0
        r = st.members[p, pool.turn]
        pool.turn += 1
        if limit == 0 or st.replicas[r].outstanding < limit:
            break
    return r  # type: ignore[no-any-return]


@inner
def _least_outstanding(st: State, p: int, but: int) -> int:
    """The fewest requests out, one replica left aside; ties go round, so that an idle pool doesn't pile on one."""
    pool = st.pools[p]
    n = pool.members
    pool.turn = pool.turn + 1 if pool.turn + 1 < n else 0
    best = NONE
    fewest = 0
    for i in range(n):
        at = pool.turn + i
        r = st.members[p, at if at < n else at - n]
        if r == but:
            continue
        out = st.replicas[r].outstanding
        if best == NONE or out < fewest:
            best = r
            fewest = out
    return best


@inner
def _power_of_two(st: State, p: int) -> int:
    """The less loaded of two replicas drawn at random."""
    n = st.pools[p].members
    i = int(uniform(st) * n)
    if n == 1:
        return st.members[p, 0]  # type: ignore[no-any-return]
    j = int(uniform(st) * (n - 1))
    if j >= i:
        j += 1
    a = st.members[p, i]
    b = st.members[p, j]
    return a if st.replicas[a].outstanding <= st.replicas[b].outstanding else b  # type: ignore[no-any-return]


@inner
def _least_kv(st: State, p: int, t: float) -> int:
    """The smallest share of KV in use, prompts that wait there included; ties by requests out."""
    best = NONE
    lowest = math.inf
    for i in range(st.pools[p].members):
        r = st.members[p, i]
        rep = st.replicas[r]
        kind = st.kinds[rep.kind]
        queued = rep.waiting_tokens / (kind.blocks * kind.block_tokens) if kind.blocks > 0 else float(rep.waiting)
        load = kv_used(st, r, t) + queued + 1e-9 * rep.outstanding
        if load < lowest:
            best = r
            lowest = load
    return best


@inner
def _longest_prefix(st: State, p: int, s: int) -> int:
    """The replica with most of the prompt cached, unless its load is above ``load_cap`` x the mean."""
    pool = st.pools[p]
    request = st.slots[s]
    total = 0
    for i in range(pool.members):
        total += st.replicas[st.members[p, i]].outstanding
    cap = pool.load_cap * (total + 1) / pool.members
    best = NONE
    most = 0
    for i in range(pool.members):
        r = st.members[p, i]
        kind = st.kinds[st.replicas[r].kind]
        if st.replicas[r].outstanding > cap or not kind.prefix_cache:
            continue
        units = min(request.input - 1, request.shared) // kind.unit_tokens
        hits, _ = leading_hits(st, r, s, units)
        if hits > most or (hits == most and hits > 0 and st.replicas[r].outstanding < st.replicas[best].outstanding):
            best = r
            most = hits
    return best if best != NONE else _least_outstanding(st, p, NONE)


@inner
def _by_session(st: State, p: int, key: int) -> int:
    """Rendezvous hashing: a session keeps its replica as others come and go."""
    best = NONE
    highest = -1
    for i in range(st.pools[p].members):
        r = st.members[p, i]
        score = mix(key, r) & 0x7FFFFFFFFFFFFFFF
        if score > highest:
            best = r
            highest = score
    return best
