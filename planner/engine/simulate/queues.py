"""Orders of things: lists threaded through the slots, heaps, and the tournament of next events."""

from __future__ import annotations

from typing import Any

from planner.engine.simulate.codes import NONE
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import State


@inner
def set_next(st: State, r: int, time_s: float) -> None:
    """When replica ``r`` next needs attention; the winner of every tournament round above it is renewed."""
    tree = st.tree
    i = len(tree) // 2 + r
    tree[i] = time_s
    while i > 1:
        i //= 2
        left = tree[2 * i]
        right = tree[2 * i + 1]
        tree[i] = left if left <= right else right


@inner
def next_replica(st: State) -> int:
    """The replica whose event is the earliest; the lowest number where several tie."""
    tree = st.tree
    half = len(tree) // 2
    i = 1
    while i < half:
        i = 2 * i if tree[2 * i] <= tree[2 * i + 1] else 2 * i + 1
    return i - half


@inner
def push_finish(st: State, r: int, key: float, slot: int) -> None:
    """Add a running request to the replica's heap of finishing times (or steps)."""
    rep = st.replicas[r]
    keys = st.heap_key[r]
    slots = st.heap_slot[r]
    i = rep.heap_n
    rep.heap_n += 1
    while i > 0:
        up = (i - 1) // 2
        if keys[up] <= key:
            break
        keys[i] = keys[up]
        slots[i] = slots[up]
        i = up
    keys[i] = key
    slots[i] = slot


@inner
def pop_finish(st: State, r: int) -> int:
    """Take the request that finishes first off the replica's heap."""
    slot = st.heap_slot[r, 0]
    _remove_at(st, r, 0)
    return slot  # type: ignore[no-any-return]


@inner
def remove_finish(st: State, r: int, slot: int) -> None:
    """Take one request off the heap, wherever it stands (preemption, loss: rare)."""
    slots = st.heap_slot[r]
    for i in range(st.replicas[r].heap_n):
        if slots[i] == slot:
            _remove_at(st, r, i)
            return


@inner
def _remove_at(st: State, r: int, i: int) -> None:
    rep = st.replicas[r]
    keys = st.heap_key[r]
    slots = st.heap_slot[r]
    rep.heap_n -= 1
    n = rep.heap_n
    key = keys[n]
    slot = slots[n]
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i] = keys[(i - 1) // 2]
        slots[i] = slots[(i - 1) // 2]
        i = (i - 1) // 2
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i] = keys[child]
        slots[i] = slots[child]
        i = child
    keys[i] = key
    slots[i] = slot


@inner
def push_event(st: State, time_s: float, kind: int, slot: int) -> None:
    """Schedule a timed event; events of one time keep the order in which they were made."""
    fleet = st.fleet[0]
    events = st.events
    i = fleet.events
    fleet.events += 1
    fleet.sequence += 1
    while i > 0 and events[(i - 1) // 2].time > time_s:
        events[i] = events[(i - 1) // 2]
        i = (i - 1) // 2
    event = events[i]
    event.time = time_s
    event.sequence = fleet.sequence
    event.kind = kind
    event.slot = slot
    event.request = st.slots[slot].request


@inner
def _before(a: Any, b: Any) -> bool:
    return a.time < b.time or (a.time == b.time and a.sequence < b.sequence)  # type: ignore[no-any-return]


@inner
def drop_event(st: State) -> None:
    """Remove the earliest event."""
    fleet = st.fleet[0]
    events = st.events
    fleet.events -= 1
    n = fleet.events
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and _before(events[child + 1], events[child]):
            child += 1
        if not _before(events[child], events[n]):
            break
        events[i] = events[child]
        i = child
    events[i] = events[n]


@inner
def wait_last(st: State, r: int, slot: int) -> None:
    """Join the end of the replica's waiting queue."""
    rep = st.replicas[r]
    st.slots[slot].queued = NONE
    if rep.wait_tail == NONE:
        rep.wait_head = slot
    else:
        st.slots[rep.wait_tail].queued = slot
    rep.wait_tail = slot
    rep.waiting += 1
    rep.waiting_tokens += st.slots[slot].input


@inner
def wait_first(st: State, r: int, slot: int) -> None:
    """Go to the head of the waiting queue: a preempted request is the next to run."""
    rep = st.replicas[r]
    st.slots[slot].queued = rep.wait_head
    if rep.wait_tail == NONE:
        rep.wait_tail = slot
    rep.wait_head = slot
    rep.waiting += 1
    rep.waiting_tokens += st.slots[slot].input


@inner
def leave_waiting(st: State, r: int) -> int:
    """Take the head of the waiting queue."""
    rep = st.replicas[r]
    slot = rep.wait_head
    rep.wait_head = st.slots[slot].queued
    if rep.wait_head == NONE:
        rep.wait_tail = NONE
    rep.waiting -= 1
    rep.waiting_tokens -= st.slots[slot].input
    return slot  # type: ignore[no-any-return]


@inner
def remove_waiting(st: State, r: int, slot: int) -> None:
    """Take one request out of the waiting queue, wherever it stands (its client gave up: rare)."""
    rep = st.replicas[r]
    before = NONE
    at = rep.wait_head
    while at != slot:
        before = at
        at = st.slots[at].queued
    after = st.slots[slot].queued
    if before == NONE:
        rep.wait_head = after
    else:
        st.slots[before].queued = after
    if after == NONE:
        rep.wait_tail = before
    rep.waiting -= 1
    rep.waiting_tokens -= st.slots[slot].input


@inner
def join_prefilling(st: State, r: int, slot: int) -> None:
    """Join the end of the requests whose prompt is being processed."""
    rep = st.replicas[r]
    st.slots[slot].queued = NONE
    if rep.pre_tail == NONE:
        rep.pre_head = slot
    else:
        st.slots[rep.pre_tail].queued = slot
    rep.pre_tail = slot


@inner
def leave_prefilling(st: State, r: int, slot: int) -> None:
    """Take one request out of those being prefilled."""
    rep = st.replicas[r]
    before = NONE
    at = rep.pre_head
    while at != slot:
        before = at
        at = st.slots[at].queued
    after = st.slots[slot].queued
    if before == NONE:
        rep.pre_head = after
    else:
        st.slots[before].queued = after
    if after == NONE:
        rep.pre_tail = before


@inner
def join_running(st: State, r: int, slot: int) -> None:
    """Become the newest running request: the first to be preempted."""
    rep = st.replicas[r]
    request = st.slots[slot]
    request.prev = rep.run_tail
    request.next = NONE
    if rep.run_tail == NONE:
        rep.run_head = slot
    else:
        st.slots[rep.run_tail].next = slot
    rep.run_tail = slot
    rep.running += 1


@inner
def leave_running(st: State, r: int, slot: int) -> None:
    """Stop running: finished, preempted or lost."""
    rep = st.replicas[r]
    request = st.slots[slot]
    if request.prev == NONE:
        rep.run_head = request.next
    else:
        st.slots[request.prev].next = request.next
    if request.next == NONE:
        rep.run_tail = request.prev
    else:
        st.slots[request.next].prev = request.prev
    rep.running -= 1
