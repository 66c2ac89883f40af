"""The prefix cache: freed blocks whose content is known stay findable until they are needed.

Free blocks stand in a queue ordered by when they were freed; taking blocks eats it from its old end.
A *unit* is what one hash covers: one block, or several where a trace hashes longer stretches. Blocks
of unknown content form anonymous runs, one entry each; of a preempted request it is enough to know how many
blocks have been taken since. Replicas without the cache only count.
"""

from __future__ import annotations

from planner.engine.simulate.codes import NONE
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.kv_blocks import own_blocks
from planner.engine.simulate.layout import State
from planner.engine.simulate.rng import mix


@inner
def take(st: State, r: int, blocks: int) -> None:
    """Allocate ``blocks``: from the old end of the free queue where a prefix cache keeps one."""
    rep = st.replicas[r]
    rep.free -= blocks
    if not st.kinds[rep.kind].prefix_cache:
        return
    rep.taken += blocks
    left = blocks
    while left > 0 and rep.lru_head != NONE:
        e = rep.lru_head
        entry = st.entries[e]
        if entry.blocks > left:
            if entry.key != NONE:
                _forget(st, e)
            entry.blocks -= left
            return
        left -= entry.blocks
        _unlink(st, r, e)
        if entry.key != NONE:
            _forget(st, e)
        _drop(st, e)


@inner
def give(st: State, r: int, blocks: int) -> None:
    """Free ``blocks`` of unknown content."""
    rep = st.replicas[r]
    rep.free += blocks
    if not st.kinds[rep.kind].prefix_cache or blocks <= 0:
        return
    tail = rep.lru_tail
    if tail != NONE and st.entries[tail].key == NONE:
        st.entries[tail].blocks += blocks
        return
    _link_last(st, r, _new(st, r, NONE, blocks))


@inner
def unit_key(st: State, r: int, s: int, unit: int) -> int:
    """The name of a request's ``unit``-th unit in replica ``r``'s cache."""
    request = st.slots[s]
    content = mix(request.key, unit) if request.hashes == NONE else st.hash_ids[request.hashes + unit]
    return mix(content, r) & 0x7FFFFFFFFFFFFFFF


@inner
def find(st: State, key: int) -> int:
    """The cache entry of ``key``, or none."""
    e = st.buckets[key & (len(st.buckets) - 1)]
    while e != NONE and st.entries[e].key != key:
        e = st.entries[e].chain
    return e  # type: ignore[no-any-return]


@inner
def leading_hits(st: State, r: int, s: int, most: int) -> tuple[int, int]:
    """How many of the request's first ``most`` units replica ``r`` has, and how many of those are held."""
    hits = 0
    held = 0
    while hits < most:
        e = find(st, unit_key(st, r, s, hits))
        if e == NONE:
            break
        hits += 1
        if st.entries[e].refs > 0:
            held += 1
    return hits, held


@inner
def hold_units(st: State, r: int, s: int, tokens: int, own: int) -> int:
    """Hold, as shared units, all whole units of the request's first ``tokens`` tokens.

    ``own`` blocks of the request are there to become units; returns how many of them are left.
    """
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    size = kind.unit_tokens // kind.block_tokens
    covered = min(tokens, request.shared) // kind.unit_tokens
    while request.units < covered:
        key = unit_key(st, r, s, request.units)
        e = find(st, key)
        if e == NONE:
            handed = min(own, size)
            own -= handed
            take(st, r, size - handed)
            e = _new(st, r, key, size)
            _remember(st, e)
        elif st.entries[e].refs == 0:
            _unlink(st, r, e)
            rep.free -= size
        st.entries[e].refs += 1
        request.units += 1
    return own


@inner
def release(st: State, r: int, s: int, tokens: int) -> None:
    """Free all that a request with ``tokens`` tokens in the cache holds; known units stay findable."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    own = own_blocks(st, r, s, tokens)
    if not kind.prefix_cache:
        rep.free += own
        return
    # The answer's blocks become findable too: the next turn of a session starts with them.
    own = hold_units(st, r, s, tokens, own)
    give(st, r, own)
    size = kind.unit_tokens // kind.block_tokens
    for unit in range(request.units - 1, -1, -1):
        e = find(st, unit_key(st, r, s, unit))
        st.entries[e].refs -= 1
        if st.entries[e].refs == 0:
            rep.free += size
            _link_last(st, r, e)
    request.units = 0


@inner
def keep_own(st: State, r: int, s: int, tokens: int) -> None:
    """Note what a preempted request without a name for its content leaves behind; asked before its blocks are freed.

    They go to the new end of the free queue, the request's last block first: all blocks that are free now are taken
    before them, then they are, from the back.
    """
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    request.kept = 0
    if kind.prefix_cache and request.shared == 0:
        request.kept = tokens // kind.block_tokens
        request.kept_until = rep.taken + rep.free


@inner
def own_kept(st: State, r: int, s: int) -> int:
    """Leading blocks of its own that a preempted request still finds."""
    request = st.slots[s]
    if request.kept == 0:
        return 0
    lost = max(0, st.replicas[r].taken - request.kept_until)
    return max(0, min(request.kept - lost, (request.target - 1) // st.kinds[st.replicas[r].kind].block_tokens))  # type: ignore[no-any-return]


@inner
def empty_cache(st: State, r: int) -> None:
    """Forget everything of a replica that starts anew; its blocks are all free."""
    rep = st.replicas[r]
    while rep.lru_head != NONE:
        e = rep.lru_head
        _unlink(st, r, e)
        if st.entries[e].key != NONE:
            _forget(st, e)
        _drop(st, e)
    rep.free = 0
    give(st, r, st.kinds[rep.kind].blocks)


@inner
def _new(st: State, r: int, key: int, blocks: int) -> int:
    fleet = st.fleet[0]
    e = fleet.entry_free
    fleet.entry_free = st.entries[e].chain
    fleet.entries += 1
    entry = st.entries[e]
    entry.key = key
    entry.replica = r
    entry.refs = 0
    entry.blocks = blocks
    return e  # type: ignore[no-any-return]


@inner
def _drop(st: State, e: int) -> None:
    fleet = st.fleet[0]
    st.entries[e].key = NONE
    st.entries[e].chain = fleet.entry_free
    fleet.entry_free = e
    fleet.entries -= 1


@inner
def _remember(st: State, e: int) -> None:
    bucket = st.entries[e].key & (len(st.buckets) - 1)
    st.entries[e].chain = st.buckets[bucket]
    st.buckets[bucket] = e


@inner
def _forget(st: State, e: int) -> None:
    bucket = st.entries[e].key & (len(st.buckets) - 1)
    at = st.buckets[bucket]
    if at == e:
        st.buckets[bucket] = st.entries[e].chain
    else:
        while st.entries[at].chain != e:
            at = st.entries[at].chain
        st.entries[at].chain = st.entries[e].chain
    st.entries[e].key = NONE


@inner
def _link_last(st: State, r: int, e: int) -> None:
    rep = st.replicas[r]
    st.entries[e].prev = rep.lru_tail
    st.entries[e].next = NONE
    if rep.lru_tail == NONE:
        rep.lru_head = e
    else:
        st.entries[rep.lru_tail].next = e
    rep.lru_tail = e


@inner
def _unlink(st: State, r: int, e: int) -> None:
    rep = st.replicas[r]
    entry = st.entries[e]
    if entry.prev == NONE:
        rep.lru_head = entry.next
    else:
        st.entries[entry.prev].next = entry.next
    if entry.next == NONE:
        rep.lru_tail = entry.prev
    else:
        st.entries[entry.next].prev = entry.prev
