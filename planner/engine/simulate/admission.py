"""What a replica takes into its next iteration: blocks reserved for decodes, chunks of prompts, new requests."""

from __future__ import annotations

import math

from planner.engine.simulate.codes import NONE, PREFILLING, QUEUE_TIMEOUT
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.kv_blocks import blocks_of, crossing, own_blocks
from planner.engine.simulate.layout import State
from planner.engine.simulate.prefix_cache import give, hold_units, leading_hits, own_kept, take
from planner.engine.simulate.queues import join_prefilling, join_running, leave_waiting
from planner.engine.simulate.recording import leave_unserved
from planner.engine.simulate.sequences import join_decode, preempt


@inner
def make_room(st: State, r: int) -> None:
    """Reserve the blocks that decodes begin in the next iteration, preempting until they are free."""
    rep = st.replicas[r]
    rep.reserved = crossing(st, r, 1) if rep.decoding > 0 else 0
    # Drafts count blocks by a mean: they may have taken a few more than there are, with nothing left to preempt.
    while rep.reserved > rep.free - rep.late_blocks and rep.run_tail != NONE:
        preempt(st, r)
        rep.reserved = crossing(st, r, 1) if rep.decoding > 0 else 0


@inner
def continue_prefills(st: State, r: int, budget: int) -> int:
    """Give unfinished prompts their next chunk; returns the token budget left."""
    rep = st.replicas[r]
    block = st.kinds[rep.kind].block_tokens
    s = rep.pre_head
    while s != NONE and budget > 0:
        request = st.slots[s]
        following = request.queued
        chunk = min(request.target - request.computed, budget, rank_budget(st, r))
        blocks = blocks_of(request.computed + chunk, block) - blocks_of(request.computed, block)
        while blocks > rep.free - rep.late_blocks - rep.reserved and request.state == PREFILLING:
            if rep.run_tail == following:
                following = NONE
            preempt(st, r)
            rep.reserved = crossing(st, r, 1) if rep.decoding > 0 else 0
        if request.state != PREFILLING:
            break
        _schedule(st, r, s, chunk, own_blocks(st, r, s, request.computed))
        budget -= chunk
        s = following
    return budget


@inner
def rank_budget(st: State, r: int) -> int:
    """Tokens one prompt may have of an iteration: its attention rank's share of the budget, decodes apart."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    ranks = st.coefficients[rep.kind].attention_ranks
    if ranks <= 1.0:
        return kind.max_tokens  # type: ignore[no-any-return]
    return max(1, int((kind.max_tokens - rep.decoding * (1 + kind.draft_tokens)) / ranks))


@inner
def _schedule(st: State, r: int, s: int, chunk: int, own: int) -> None:
    """Allocate blocks for the chunk and add it to the iteration; ``own`` blocks are the request's already."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    done = request.computed
    if kind.prefix_cache:
        own = hold_units(st, r, s, done + chunk, own)
    more = own_blocks(st, r, s, done + chunk) - own
    if more >= 0:
        take(st, r, more)
    else:
        give(st, r, -more)
    request.chunk = chunk
    rep.prefill_tokens += chunk
    rep.longest_chunk = max(rep.longest_chunk, float(chunk))
    rep.prefill_pairs += chunk * float(done) + 0.5 * chunk * (chunk + 1)


@inner
def _begin(st: State, r: int, s: int, chunk: int, t: float) -> None:
    """A waiting request starts to run: its first chunk, or at once its decode where its KV came from elsewhere."""
    rep = st.replicas[r]
    request = st.slots[s]
    if math.isnan(request.scheduled):
        request.scheduled = t
    join_running(st, r, s)
    if request.prefilled:
        if math.isnan(request.first):
            # The replica that decodes sends the first token too: when the KV is there and it has a place.
            request.first = request.ready if request.ready > rep.refused else t
        take(st, r, blocks_of(request.target, st.kinds[rep.kind].block_tokens))
        join_decode(st, r, s)
        return
    request.state = PREFILLING
    if request.kept > 0:
        # Its own blocks come from the middle of the free queue: nobody else's move up.
        rep.taken -= request.computed // st.kinds[rep.kind].block_tokens
        request.kept = 0
    else:
        request.hits += request.computed
    join_prefilling(st, r, s)
    _schedule(st, r, s, chunk, 0)


@inner
def expire_waiting(st: State, r: int, t: float) -> None:
    """Turn away waiting requests that were never scheduled within the queue's time limit."""
    rep = st.replicas[r]
    limit = st.kinds[rep.kind].queue_timeout_s
    while rep.wait_head != NONE:
        request = st.slots[rep.wait_head]
        if not (math.isnan(request.scheduled) and t - request.arrival > limit):
            return
        s = leave_waiting(st, r)
        rep.outstanding -= 1
        st.fleet[0].drain = 1
        leave_unserved(st, s, t, QUEUE_TIMEOUT)


@inner
def admit_waiting(st: State, r: int, seen: float, t: float, budget: int) -> None:
    """Admit waiting requests that had arrived by ``seen``, in order, until something runs out."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    while rep.wait_head != NONE:
        s = rep.wait_head
        request = st.slots[s]
        if rep.running + rep.late_seqs >= kind.max_seqs:
            _refuse(st, r, seen)
            return
        if request.ready > seen:
            return
        if budget <= 0 and not request.prefilled:
            _refuse(st, r, seen)
            return
        chunk = _fit(st, r, s, budget)
        if chunk == NONE:
            _refuse(st, r, seen)
            return
        if chunk == 0 and not request.prefilled:
            return
        leave_waiting(st, r)
        _begin(st, r, s, chunk, t)
        budget -= chunk


@inner
def _refuse(st: State, r: int, seen: float) -> None:
    """No place for those who had come by ``seen``."""
    rep = st.replicas[r]
    rep.blocked = 1
    rep.refused = max(rep.refused, seen)


@inner
def _fit(st: State, r: int, s: int, budget: int) -> int:
    """The first chunk a waiting request would get: none if its blocks aren't free, 0 if it must wait for budget."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    request.target = request.input + request.generated - request.prefilled
    avail = rep.free - rep.late_blocks - rep.reserved
    if request.prefilled:
        return 0 if blocks_of(request.target + 1, kind.block_tokens) <= avail else NONE
    cached = 0
    shared_blocks = 0
    if kind.prefix_cache and request.shared > 0:
        most = min(request.target - 1, request.shared) // kind.unit_tokens
        hits, held = leading_hits(st, r, s, most)
        cached = hits * kind.unit_tokens
        shared_blocks = held * (kind.unit_tokens // kind.block_tokens)
    elif kind.prefix_cache:
        cached = own_kept(st, r, s) * kind.block_tokens
    if cached == 0 and kind.found_tokens > 0 and request.shared == 0:
        request.kept = 0
        cached = min(kind.found_tokens, request.input - 1)
    chunk = request.target - cached
    if kind.chunked:
        chunk = min(chunk, budget, rank_budget(st, r))
    elif chunk > budget and rep.prefill_tokens > 0:
        return 0
    until = request.target if kind.reserve_prompt else cached + chunk
    # A cached unit that nobody holds is a free block too, so taking it costs as much as a new one.
    if blocks_of(until, kind.block_tokens) - shared_blocks > avail:
        return NONE
    request.computed = cached
    return chunk  # type: ignore[no-any-return]
