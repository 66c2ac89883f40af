"""Whole requests in batches, as Triton's dynamic batcher forms them (vision, embedding, rerank models).

An idle instance takes the largest preferred size that the queue can fill. If none can be filled, the
oldest request is held back for up to the maximum queue delay so that others may join; then what is
there goes, up to the maximum batch. A batch of b requests with n tokens takes
``batch_s + item_s b + token_s n``; padded batches count b times the longest.
"""

from __future__ import annotations

import math

from planner.engine.simulate.codes import CANCELLED, NONE, PREFILLING, QUEUE_TIMEOUT
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import State
from planner.engine.simulate.queues import leave_waiting, pop_finish, push_finish, set_next
from planner.engine.simulate.recording import leave_served, leave_unserved
from planner.engine.simulate.records import MAX_PREFERRED


@inner
def dispatch(st: State, r: int, t: float) -> None:
    """Start as many batches as instances and the queue allow, and set when to look again."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    accrue(st, r, t)
    _expire(st, r, t)
    again = math.inf
    while rep.heap_n < kind.instances and rep.waiting > 0:
        size = _batch_size(st, r, t)
        if size == 0:
            again = st.slots[rep.wait_head].ready + kind.max_delay_s
            break
        _start_batch(st, r, t, size)
    rep.busy = 1 if rep.heap_n > 0 else 0
    ends = st.heap_key[r, 0] if rep.heap_n > 0 else math.inf
    set_next(st, r, min(ends, again))


@inner
def _batch_size(st: State, r: int, t: float) -> int:
    """Requests to send now; 0 while it pays to wait for more."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    if rep.waiting >= kind.max_batch:
        return kind.max_batch  # type: ignore[no-any-return]
    best = 0
    for i in range(MAX_PREFERRED):
        size = kind.preferred[i]
        if size <= rep.waiting and size > best:
            best = size
    if best == 0 and t >= st.slots[rep.wait_head].ready + kind.max_delay_s:
        return rep.waiting  # type: ignore[no-any-return]
    return best


@inner
def _start_batch(st: State, r: int, t: float, size: int) -> None:
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    head = NONE
    tokens = 0
    longest = 0
    for _ in range(size):
        s = leave_waiting(st, r)
        request = st.slots[s]
        request.queued = head
        request.state = PREFILLING
        if math.isnan(request.scheduled):
            request.scheduled = t
        head = s
        tokens += request.input
        longest = max(longest, request.input)
    if kind.padded:
        tokens = size * longest
    rep.running += size
    rep.iterations += 1
    duration = kind.batch_s + kind.item_s * size + kind.token_s * tokens
    push_finish(st, r, t + duration, head)


@inner
def accrue(st: State, r: int, t: float) -> None:
    """Count the time up to now: the share of instances that held a batch since the last count."""
    rep = st.replicas[r]
    rep.busy_s += (t - rep.run_start) * rep.heap_n / st.kinds[rep.kind].instances
    rep.run_start = t


@inner
def complete_batches(st: State, r: int, t: float) -> None:
    """Let every request of the batches that end by ``t`` leave."""
    rep = st.replicas[r]
    accrue(st, r, t)
    while rep.heap_n > 0 and st.heap_key[r, 0] <= t:
        s = pop_finish(st, r)
        while s != NONE:
            request = st.slots[s]
            following = request.queued
            request.first = t
            rep.running -= 1
            rep.outstanding -= 1
            rep.done += 1
            st.fleet[0].drain = 1
            if request.cancelled:
                leave_unserved(st, s, t, CANCELLED)
            else:
                leave_served(st, s, t)
            s = following


@inner
def _expire(st: State, r: int, t: float) -> None:
    rep = st.replicas[r]
    limit = st.kinds[rep.kind].queue_timeout_s
    while rep.wait_head != NONE and t - st.slots[rep.wait_head].arrival > limit:
        s = leave_waiting(st, r)
        rep.outstanding -= 1
        st.fleet[0].drain = 1
        leave_unserved(st, s, t, QUEUE_TIMEOUT)
