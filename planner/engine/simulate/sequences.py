"""One running request: joining the decode batch, leaving it finished, preempted or lost."""

from __future__ import annotations

import math

from planner.engine.simulate.codes import DECODING, WAITING
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.kv_blocks import blocks_of
from planner.engine.simulate.layout import State
from planner.engine.simulate.prefix_cache import keep_own, release
from planner.engine.simulate.queues import leave_prefilling, leave_running, push_finish, remove_finish, wait_first
from planner.engine.simulate.recording import leave_served
from planner.engine.simulate.rng import uniform


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
    rep.squares += context * context
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
def leave_decoding(st: State, r: int, s: int) -> None:
    """Take a request out of the decode batch's sums (it is off the heap already)."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    request = st.slots[s]
    grown = (rep.steps - request.join) * request.rate
    start = float(request.input + request.generated)
    rep.decoding -= 1
    rep.context -= start + grown
    rep.squares -= (start + grown) ** 2
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
        rep.squares = 0.0


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
def stop_running(st: State, r: int, s: int) -> None:
    """Take a request off its replica in whatever state it runs, its blocks freed; its answer so far is kept."""
    request = st.slots[s]
    if request.state == DECODING:
        remove_finish(st, r, s)
        leave_decoding(st, r, s)
        release(st, r, s, request.input + request.generated - 1)
    else:
        leave_prefilling(st, r, s)
        release(st, r, s, request.computed + request.chunk)
    leave_running(st, r, s)
    request.computed = 0
    request.chunk = 0


@inner
def preempt(st: State, r: int) -> None:
    """Stop the newest running request, free its blocks, and put it at the head of the queue."""
    rep = st.replicas[r]
    s = rep.run_tail
    request = st.slots[s]
    held = request.computed
    if request.state == DECODING:
        held = request.input + request.generated + int((rep.steps - request.join) * request.rate + 0.5) - 1
    keep_own(st, r, s, held)
    stop_running(st, r, s)
    st.slots[s].state = WAITING
    st.slots[s].ready = -math.inf
    wait_first(st, r, s)
    rep.preemptions += 1
    st.fleet[0].preemptions += 1
