"""Load balancing: which of a pool's replicas gets a request.

Loads are what the gateway itself knows: requests it sent that haven't come back; and, for the KV policies, what
replicas report.
"""

from __future__ import annotations

import math

from planner.engine.simulate.codes import (
    LEAST_KV,
    NONE,
    POWER_OF_TWO,
    PREFIX_AWARE,
    ROUND_ROBIN,
    SESSION_AFFINITY,
)
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import State
from planner.engine.simulate.prefix_cache import leading_hits
from planner.engine.simulate.recording import kv_used
from planner.engine.simulate.records import MAX_AVOIDED
from planner.engine.simulate.rng import mix, uniform


@inner
def choose(st: State, p: int, s: int, t: float, spilling: bool) -> int:
    """The pool's replica for this request, or none if all are full (or, ``spilling``, busier than its limit).

    Those that failed the request are passed over while there are others; once all have, all but the last to do so are
    asked again, after the pools that it may spill to.
    """
    pool = st.pools[p]
    n = pool.members
    if n == 0:
        return NONE
    limit = pool.max_outstanding
    if spilling and pool.spill > 0:
        limit = min(limit, pool.spill) if limit > 0 else pool.spill
    r = _by_policy(st, p, s, t, limit)
    if _has_failed(st, s, r) and (n > 1 or spilling):
        r = _least_of_others(st, p, s)
        if r == NONE and spilling:
            return NONE
        if r == NONE:
            r = _least_outstanding(st, p, _last_failed(st, s))
    if limit > 0 and st.replicas[r].outstanding >= limit:
        r = _least_of_others(st, p, s) if st.slots[s].retries > 0 else _least_outstanding(st, p, NONE)
        if r == NONE or st.replicas[r].outstanding >= limit:
            return NONE
    return r


@inner
def _by_policy(st: State, p: int, s: int, t: float, limit: int) -> int:
    """Whom the pool's policy would have it."""
    pool = st.pools[p]
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
    return r


@inner
def _has_failed(st: State, s: int, r: int) -> bool:
    """Whether a replica has refused or lost the request before, as far as that is remembered."""
    request = st.slots[s]
    found = False
    for i in range(min(request.retries, MAX_AVOIDED)):
        found |= request.avoid[i] == r
    return found


@inner
def _last_failed(st: State, s: int) -> int:
    """The last replica that did."""
    request = st.slots[s]
    return request.avoid[(request.retries - 1) % MAX_AVOIDED]  # type: ignore[no-any-return]


@inner
def _least_of_others(st: State, p: int, s: int) -> int:
    """The fewest requests out of those that haven't failed the request; none where all have. Ties go round."""
    pool = st.pools[p]
    n = pool.members
    pool.turn = pool.turn + 1 if pool.turn + 1 < n else 0
    best = NONE
    fewest = 0
    for i in range(n):
        at = pool.turn + i
        r = st.members[p, at if at < n else at - n]
        out = st.replicas[r].outstanding
        if (best == NONE or out < fewest) and not _has_failed(st, s, r):
            best = r
            fewest = out
    return best


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
