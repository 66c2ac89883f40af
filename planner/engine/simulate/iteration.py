"""Continuous batching: what one replica runs next, and what changes when an iteration ends.

The order of vLLM's V1 scheduler: running sequences first (a decode takes one token of the budget, an
unfinished prompt as much as is left), then waiting requests in order of arrival while the token budget,
the batch limit and the KV blocks allow. When running sequences need a block and none is free, the
newest running request is preempted: its blocks are freed and it waits at the head of the queue, to be
recomputed. With ``lookahead`` the next batch is put together while the current one still runs, so a
request that comes during an iteration joins the one after the next.
"""

from __future__ import annotations

import math

from planner.engine.simulate.codes import (
    CANCELLED,
    DECODING,
    MOVING,
    NONE,
    PREFILL,
    PREFILLING,
    QUEUE_TIMEOUT,
    ROUTE,
    WAITING,
)
from planner.engine.simulate.compiled import inner, step_time
from planner.engine.simulate.decode_run import decode_step_s, plan_run, run_s, steps_reaching
from planner.engine.simulate.kv_blocks import blocks_of, crossing, own_blocks, steps_within
from planner.engine.simulate.layout import State
from planner.engine.simulate.prefix_cache import give, hold_units, leading_hits, release, take
from planner.engine.simulate.queues import (
    join_prefilling,
    join_running,
    leave_prefilling,
    leave_running,
    leave_waiting,
    pop_finish,
    push_event,
    push_finish,
    remove_finish,
    set_next,
    wait_first,
)
from planner.engine.simulate.recording import leave_served, leave_unserved
from planner.engine.simulate.rng import uniform


@inner
def arrive(st: State, r: int, t: float) -> None:
    """A request has joined the queue: start at once when idle, else end the decode run where it can join."""
    rep = st.replicas[r]
    if not rep.busy:
        compose(st, r, t)
        return
    kind = st.kinds[rep.kind]
    if not rep.blocked and rep.running < kind.max_seqs:
        cut_run(st, r, t, kind.lookahead)


@inner
def cut_run(st: State, r: int, t: float, more: int) -> None:
    """End the decode run at its first boundary from ``t`` on, or ``more`` iterations later."""
    rep = st.replicas[r]
    if rep.run_steps <= 1:
        return
    steps = steps_reaching(rep.run_first, rep.run_slope, t - rep.run_start) + more
    if steps < rep.run_steps:
        rep.run_steps = steps
        set_next(st, r, rep.run_start + run_s(rep.run_first, rep.run_slope, steps))


@inner
def compose(st: State, r: int, t: float) -> None:
    """Choose and start the replica's next iteration, or run of decode iterations; or leave it idle."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    while True:
        _expire(st, r, t)
        rep.prefill_tokens = 0.0
        rep.prefill_pairs = 0.0
        rep.blocked = 0
        rep.paused = 0
        before = rep.preemptions
        seen = rep.last_start if rep.busy and kind.lookahead else t
        _make_room(st, r)
        budget = kind.max_tokens - rep.decoding * (1 + kind.draft_tokens) if kind.chunked else kind.max_tokens
        budget = _continue_prefills(st, r, budget)
        if rep.preemptions == before:
            _admit_waiting(st, r, seen, t, budget)
        if rep.prefill_tokens > 0 or rep.decoding > 0:
            _start(st, r, t)
            return
        if not rep.busy or rep.waiting == 0:
            break
        rep.busy = 0
    rep.busy = 0
    set_next(st, r, math.inf)


@inner
def _start(st: State, r: int, t: float) -> None:
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    rep.busy = 1
    rep.run_start = t
    if rep.prefill_tokens > 0:
        rep.paused = 0 if kind.chunked else 1
        n = 0.0 if rep.paused else float(rep.decoding)
        context = 0.0 if rep.paused else rep.context
        drafts = n * kind.draft_tokens
        rep.run_steps = 1
        rep.run_slope = 0.0
        whole = step_time(st.coefficients[rep.kind], n, context, rep.prefill_tokens + drafts, rep.prefill_pairs)
        alone = 0.0
        if n > 0:
            alone = decode_step_s(st, r, context)
            if kind.draft_tokens > 0:
                whole += drafts / n * kind.draft_share * step_time(st.coefficients[rep.kind], n, context, 0.0, 0.0)
        rep.run_first = whole
        rep.prefill_s += max(0.0, whole - alone)
    else:
        to_finish = math.ceil(st.heap_key[r, 0] - rep.steps)
        most = to_finish
        if rep.waiting > 0 and not rep.blocked:
            most = 1
        if most > 1:
            most = max(1, steps_within(st, r, rep.free, most))
        plan_run(st, r, most)
    set_next(st, r, t + run_s(rep.run_first, rep.run_slope, rep.run_steps))


@inner
def complete(st: State, r: int, t: float) -> None:
    """Apply the run that ends now: contexts grow, prompts advance, finished requests leave."""
    rep = st.replicas[r]
    steps = rep.run_steps
    rep.busy_s += t - rep.run_start
    rep.iterations += steps
    rep.last_start = rep.run_start + run_s(rep.run_first, rep.run_slope, steps - 1)
    if rep.decoding > 0 and not rep.paused:
        begun = crossing(st, r, steps)
        take(st, r, begun)
        if st.kinds[rep.kind].draft_tokens > 0:
            rep.debt += steps * rep.growth / st.kinds[rep.kind].block_tokens - begun
        rep.steps += steps
        rep.context += steps * rep.growth
    if rep.prefill_tokens > 0:
        _advance_prefills(st, r, t)
    while rep.heap_n > 0 and st.heap_key[r, 0] <= rep.steps:
        s = pop_finish(st, r)
        _leave_decoding(st, r, s)
        finish(st, r, s, t, st.slots[s].input + st.slots[s].output - 1)
    if rep.cancels > 0:
        _drop_cancelled(st, r, t)


@inner
def _drop_cancelled(st: State, r: int, t: float) -> None:
    rep = st.replicas[r]
    rep.cancels = 0
    s = rep.run_head
    while s != NONE:
        following = st.slots[s].next
        if st.slots[s].cancelled:
            stop_running(st, r, s)
            rep.outstanding -= 1
            rep.blocked = 0
            st.fleet[0].drain = 1
            leave_unserved(st, s, t, CANCELLED)
        s = following


@inner
def finish(st: State, r: int, s: int, t: float, tokens: int) -> None:
    """A request has its last token: free what it holds."""
    rep = st.replicas[r]
    leave_running(st, r, s)
    release(st, r, s, tokens)
    rep.outstanding -= 1
    rep.done += 1
    rep.blocked = 0
    st.fleet[0].drain = 1
    leave_served(st, s, t)


@inner
def _advance_prefills(st: State, r: int, t: float) -> None:
    rep = st.replicas[r]
    s = rep.pre_head
    while s != NONE:
        request = st.slots[s]
        following = request.queued
        request.computed += request.chunk
        request.chunk = 0
        if request.computed >= request.target:
            leave_prefilling(st, r, s)
            request.generated += 1
            if math.isnan(request.first):
                request.first = t
            if request.generated >= request.output:
                finish(st, r, s, t, request.target)
            elif st.kinds[rep.kind].role == PREFILL:
                _send_kv(st, r, s, t)
            else:
                join_decode(st, r, s)
        s = following


@inner
def _send_kv(st: State, r: int, s: int, t: float) -> None:
    """Prompt done on a prefill replica: its blocks stay held until the KV has reached a decode replica."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    leave_running(st, r, s)
    rep.blocked = 0
    request.state = MOVING
    request.prefilled = 1
    request.pool = st.pools[rep.pool].decode_pool
    push_event(st, t + kind.transfer_s + kind.transfer_token_s * request.target, ROUTE, s)


@inner
def join_decode(st: State, r: int, s: int) -> None:
    """Decode from the next iteration on; the first token is there already."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    left = request.output - request.generated
    context = float(request.input + request.generated)
    steps = left if kind.draft_tokens == 0 else _verify_steps(st, left, kind.draft_tokens, kind.acceptance)
    request.state = DECODING
    request.join = rep.steps
    request.rate = left / steps
    request.finish = rep.steps + steps
    rep.decoding += 1
    rep.context += context
    rep.growth += request.rate
    st.phases[r, int(context - rep.steps) % kind.block_tokens] += 1
    push_finish(st, r, request.finish, s)


@inner
def _verify_steps(st: State, tokens: int, drafts: int, acceptance: float) -> int:
    """Iterations to emit ``tokens``: each keeps its own token and drafts until the first refused one."""
    steps = 0
    while tokens > 0:
        steps += 1
        tokens -= 1
        for _ in range(drafts):
            if uniform(st) >= acceptance:
                break
            tokens -= 1
    return steps


@inner
def _leave_decoding(st: State, r: int, s: int) -> None:
    """Take a request out of the decode batch's sums (it is off the heap already)."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    grown = (rep.steps - request.join) * request.rate
    start = float(request.input + request.generated)
    rep.decoding -= 1
    rep.context -= start + grown
    rep.growth -= request.rate
    st.phases[r, int(start - request.join) % kind.block_tokens] -= 1
    if kind.draft_tokens > 0:
        block = kind.block_tokens
        held = request.input + request.generated - 1
        begun = blocks_of(held + int(grown + 0.5), block) - blocks_of(held, block)
        rep.debt += begun - grown / block
    request.generated += int(grown + 0.5)
    if rep.decoding == 0:
        rep.context = 0.0
        rep.growth = 0.0


@inner
def preempt(st: State, r: int) -> None:
    """Stop the newest running request, free its blocks, and put it at the head of the queue."""
    rep = st.replicas[r]
    s = rep.run_tail
    stop_running(st, r, s)
    st.slots[s].state = WAITING
    st.slots[s].ready = -math.inf
    wait_first(st, r, s)
    rep.preemptions += 1
    st.fleet[0].preemptions += 1


@inner
def stop_running(st: State, r: int, s: int) -> None:
    """Take a request off its replica in whatever state it runs, its blocks freed; its answer so far is kept."""
    request = st.slots[s]
    if request.state == DECODING:
        remove_finish(st, r, s)
        _leave_decoding(st, r, s)
        release(st, r, s, request.input + request.generated - 1)
    else:
        leave_prefilling(st, r, s)
        release(st, r, s, request.computed + request.chunk)
    leave_running(st, r, s)
    request.computed = 0
    request.chunk = 0


@inner
def _make_room(st: State, r: int) -> None:
    """Reserve the blocks that decodes begin in the next iteration, preempting until they are free."""
    rep = st.replicas[r]
    rep.reserved = crossing(st, r, 1) if rep.decoding > 0 else 0
    while rep.reserved > rep.free:
        preempt(st, r)
        rep.reserved = crossing(st, r, 1) if rep.decoding > 0 else 0


@inner
def _continue_prefills(st: State, r: int, budget: int) -> int:
    """Give unfinished prompts their next chunk; returns the token budget left."""
    rep = st.replicas[r]
    block = st.kinds[rep.kind].block_tokens
    s = rep.pre_head
    while s != NONE and budget > 0:
        request = st.slots[s]
        following = request.queued
        chunk = min(request.target - request.computed, budget)
        blocks = blocks_of(request.computed + chunk, block) - blocks_of(request.computed, block)
        while blocks > rep.free - rep.reserved and request.state == PREFILLING:
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
        take(st, r, blocks_of(request.target, st.kinds[rep.kind].block_tokens))
        join_decode(st, r, s)
        return
    request.state = PREFILLING
    request.hits += request.computed
    join_prefilling(st, r, s)
    _schedule(st, r, s, chunk, 0)


@inner
def _expire(st: State, r: int, t: float) -> None:
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
def _admit_waiting(st: State, r: int, seen: float, t: float, budget: int) -> None:
    """Admit waiting requests that had arrived by ``seen``, in order, until something runs out."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    while rep.wait_head != NONE:
        s = rep.wait_head
        request = st.slots[s]
        if rep.running >= kind.max_seqs:
            rep.blocked = 1
            return
        if request.ready > seen:
            return
        if budget <= 0 and not request.prefilled:
            rep.blocked = 1
            return
        chunk = _fit(st, r, s, budget)
        if chunk == NONE:
            rep.blocked = 1
            return
        if chunk == 0 and not request.prefilled:
            return
        leave_waiting(st, r)
        _begin(st, r, s, chunk, t)
        budget -= chunk


@inner
def _fit(st: State, r: int, s: int, budget: int) -> int:
    """The first chunk a waiting request would get: none if its blocks aren't free, 0 if it must wait for budget."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    request.target = request.input + request.generated - request.prefilled
    avail = rep.free - rep.reserved
    if request.prefilled:
        return 0 if blocks_of(request.target + 1, kind.block_tokens) <= avail else NONE
    cached = 0
    shared_blocks = 0
    if kind.prefix_cache and request.shared > 0:
        most = min(request.target - 1, request.shared) // kind.unit_tokens
        hits, held = leading_hits(st, r, s, most)
        cached = hits * kind.unit_tokens
        shared_blocks = held * (kind.unit_tokens // kind.block_tokens)
    chunk = request.target - cached
    if kind.chunked:
        chunk = min(chunk, budget)
    elif chunk > budget and rep.prefill_tokens > 0:
        return 0
    until = request.target if kind.reserve_prompt else cached + chunk
    # A cached unit that nobody holds is a free block too, so taking it costs as much as a new one.
    if blocks_of(until, kind.block_tokens) - shared_blocks > avail:
        return NONE
    request.computed = cached
    return chunk  # type: ignore[no-any-return]
