"""Continuous batching: what one replica runs next, and what changes when an iteration ends.

The order of vLLM's V1 scheduler: running sequences first (a decode takes one token of the budget, an
unfinished prompt as much as is left), then waiting requests in order of arrival while the token budget,
the batch limit and the KV blocks allow. When running sequences need a block and none is free, the
newest running request is preempted: its blocks are freed and it waits at the head of the queue, to be
recomputed. With ``lookahead`` the next batch is put together while the current one still runs, so a
request that comes during an iteration joins the one after the next, and places and blocks that an
iteration frees are taken in the one after the next.
"""

from __future__ import annotations

import math

from planner.engine.simulate.admission import admit_waiting, continue_prefills, expire_waiting, make_room
from planner.engine.simulate.codes import CANCELLED, MOVING, NONE, PREFILL, ROUTE
from planner.engine.simulate.compiled import inner, step_time
from planner.engine.simulate.decode_run import decode_step_s, fullest_rank, plan_run, run_s, steps_reaching
from planner.engine.simulate.kv_blocks import crossing, steps_within
from planner.engine.simulate.layout import State
from planner.engine.simulate.prefix_cache import take
from planner.engine.simulate.queues import leave_prefilling, leave_running, pop_finish, push_event, set_next
from planner.engine.simulate.recording import leave_unserved
from planner.engine.simulate.sequences import finish, join_decode, leave_decoding, stop_running


@inner
def arrive(st: State, r: int, t: float) -> None:
    """A request has joined the queue: start at once when idle, else end the decode run where it can join."""
    rep = st.replicas[r]
    if not rep.busy:
        compose(st, r, t)
        return
    kind = st.kinds[rep.kind]
    if not rep.blocked and rep.running < kind.max_seqs:
        # Who is there when an iteration begins is in time for the next.
        cut_run(st, r, t, kind.lookahead if t > rep.run_start else 0)
    else:
        rep.refused = t


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
        expire_waiting(st, r, t)
        rep.prefill_tokens = 0.0
        rep.prefill_pairs = 0.0
        rep.longest_chunk = 0.0
        rep.blocked = 0
        rep.paused = 0
        before = rep.preemptions
        seen = rep.last_start if rep.busy and kind.lookahead else t
        make_room(st, r)
        budget = kind.max_tokens - rep.decoding * (1 + kind.draft_tokens) if kind.chunked else kind.max_tokens
        budget = continue_prefills(st, r, budget)
        if rep.preemptions == before:
            admit_waiting(st, r, seen, t, budget)
        if rep.prefill_tokens > 0 or rep.decoding > 0:
            _start(st, r, t)
            return
        if not rep.busy or rep.waiting == 0:
            break
        _rest(st, r)
    _rest(st, r)
    set_next(st, r, math.inf)


@inner
def _rest(st: State, r: int) -> None:
    """Nothing runs: whatever has ended is known by now."""
    rep = st.replicas[r]
    rep.busy = 0
    rep.late_blocks = 0
    rep.late_seqs = 0


@inner
def _start(st: State, r: int, t: float) -> None:
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    rep.busy = 1
    rep.run_start = t
    if rep.prefill_tokens > 0:
        rep.paused = 0 if kind.chunked else 1
        n = 0.0 if rep.paused else float(rep.decoding)
        context = 0.0 if rep.paused else rep.context * fullest_rank(st, r)
        drafts = n * kind.draft_tokens
        rep.run_steps = 1
        rep.run_slope = 0.0
        _spread_prompts(st, r)
        whole = step_time(st.coefficients[rep.kind], n, context, rep.prefill_tokens, rep.prefill_pairs, drafts)
        alone = 0.0
        if n > 0:
            alone = decode_step_s(st, r, context, 1.0)
            if kind.draft_tokens > 0:
                whole += drafts / n * kind.draft_share * step_time(st.coefficients[rep.kind], n, context, 0.0, 0.0)
        rep.run_first = whole
        rep.prefill_s += max(0.0, whole - alone)
        rep.prompt_token_s = _prompt_token_s(st, r, whole, alone)
    else:
        to_finish = math.ceil(st.heap_key[r, 0] - rep.steps)
        most = to_finish
        if rep.waiting > 0 and (not rep.blocked or rep.late_seqs > 0):
            most = 1
        if most > 1:
            most = max(1, steps_within(st, r, rep.free, most))
        plan_run(st, r, most)
    set_next(st, r, t + run_s(rep.run_first, rep.run_slope, rep.run_steps))


@inner
def _spread_prompts(st: State, r: int) -> None:
    """Over how many attention ranks the iteration's prompts spread: each stays on one, and all wait for the fullest."""
    rep = st.replicas[r]
    c = st.coefficients[rep.kind]
    if c.attention_ranks > 1.0:
        c.prompt_ranks = min(rep.prefill_tokens / rep.longest_chunk, c.attention_ranks)


@inner
def _prompt_token_s(st: State, r: int, whole: float, alone: float) -> float:
    """What each prompt token of an iteration adds to it; only asked where prompts pass several stages."""
    rep = st.replicas[r]
    c = st.coefficients[rep.kind]
    if c.pipeline <= 1.0:
        return 0.0
    if alone == 0.0:
        alone = step_time(c, 0.0, 0.0, 0.0, 0.0)
    return max(0.0, whole - alone) / rep.prefill_tokens  # type: ignore[no-any-return]


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
        each = steps * rep.growth / rep.decoding
        rep.squares += 2.0 * each * rep.context + rep.decoding * each * each
        rep.steps += steps
        rep.context += steps * rep.growth
    free, running = rep.free, rep.running
    if rep.prefill_tokens > 0:
        _advance_prefills(st, r, t)
    while rep.heap_n > 0 and st.heap_key[r, 0] <= rep.steps:
        s = pop_finish(st, r)
        leave_decoding(st, r, s)
        finish(st, r, s, t, st.slots[s].input + st.slots[s].output - 1)
    if st.kinds[rep.kind].lookahead:
        # The next iteration was put together before this one ended: what it frees is for the one after.
        rep.late_blocks = max(0, rep.free - free)
        rep.late_seqs = running - rep.running
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
def _advance_prefills(st: State, r: int, t: float) -> None:
    rep = st.replicas[r]
    s = rep.pre_head
    while s != NONE:
        request = st.slots[s]
        following = request.queued
        request.computed += request.chunk
        request.pass_s = max(request.pass_s, request.chunk * rep.prompt_token_s)
        request.chunk = 0
        if request.computed >= request.target:
            leave_prefilling(st, r, s)
            request.generated += 1
            if math.isnan(request.first):
                if st.kinds[rep.kind].role != PREFILL or request.generated >= request.output:
                    request.first = t
                # Stages work on different chunks at a time, but the longest chunk passes them one after the other.
                request.extra += (st.coefficients[rep.kind].pipeline - 1.0) * request.pass_s
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
