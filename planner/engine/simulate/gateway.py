"""Requests that reach the gateway: when the next one does, and what the simulator keeps of it."""

from __future__ import annotations

import math

from planner.engine.simulate.codes import CANCEL, NONE
from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import State, Traffic
from planner.engine.simulate.queues import push_event
from planner.engine.simulate.recording import time_bin, turn_away
from planner.engine.simulate.routing import route


@inner
def next_arrival(st: State, traffic: Traffic) -> float:
    """When the next request comes: as the trace says or, in a closed loop, when a client is free, until it closes."""
    fleet = st.fleet[0]
    if fleet.cursor >= len(traffic.arrival_s):
        return math.inf
    if not fleet.closed:
        return traffic.arrival_s[fleet.cursor]  # type: ignore[no-any-return]
    if traffic.first_request + fleet.cursor >= fleet.released:
        return math.inf
    t = max(fleet.now, traffic.arrival_s[fleet.cursor])
    return t if t < fleet.closes_s else math.inf


@inner
def arrive(st: State, traffic: Traffic, t: float) -> None:
    """The next request of the traffic takes a slot and goes to its gateway; it is turned away where none is left."""
    fleet = st.fleet[0]
    i = fleet.cursor
    fleet.cursor += 1
    if fleet.live >= fleet.most_live:
        turn_away(st, traffic.first_request + i, traffic.pool[i] if len(traffic.pool) > 0 else 0, t)
        return
    s = fleet.free_slot
    request = st.slots[s]
    fleet.free_slot = request.next
    fleet.live += 1
    if fleet.arrived == 0:
        fleet.first_arrival = t
    fleet.arrived += 1
    request.request = traffic.first_request + i
    request.arrival = t
    request.scheduled = math.nan
    request.first = math.nan
    request.extra = 0.0
    request.pass_s = 0.0
    request.input = traffic.input_tokens[i]
    request.output = traffic.output_tokens[i]
    request.generated, request.target, request.computed, request.chunk, request.units = 0, 0, 0, 0, 0
    request.hits, request.prefilled, request.retries, request.cancelled = 0, 0, 0, 0
    request.kept = 0
    request.replica = NONE
    request.home = traffic.pool[i] if len(traffic.pool) > 0 else 0
    request.pool = request.home
    request.key = traffic.key[i] if len(traffic.key) > 0 else NONE
    request.hashes = NONE
    request.shared = 0
    hashes = _hashes(traffic, i)
    if hashes >= 0:
        request.hashes = traffic.hashes[i]
        request.shared = min(hashes * st.kinds[0].unit_tokens, request.input)
    elif request.key != NONE:
        whole = request.input + request.output
        request.shared = min(traffic.shared_tokens[i], whole) if len(traffic.shared_tokens) > 0 else whole
    st.pools[request.home].arrived += 1
    st.bins[time_bin(st, t)].arrived += 1
    if fleet.cancel_s < math.inf:
        push_event(st, t + fleet.cancel_s, CANCEL, s)
    route(st, s, t)


@inner
def _hashes(traffic: Traffic, i: int) -> int:
    """How many block hashes a request has; none where its prompt goes by its key."""
    if len(traffic.hashes) == 0:
        return NONE
    if len(traffic.hash_counts) > 0:
        return traffic.hash_counts[i]  # type: ignore[no-any-return]
    return traffic.hashes[i + 1] - traffic.hashes[i]  # type: ignore[no-any-return]
