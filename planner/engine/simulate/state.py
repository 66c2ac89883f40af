"""Making and growing a run's state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.engine.simulate.codes import BATCHED, NONE, RELEASE
from planner.engine.simulate.layout import COARSE, FINE, HEAT_ROWS, OCTAVES, TIME_BINS, Array, State, zeros
from planner.engine.simulate.records import COEFFICIENTS
from planner.engine.simulate.setup import UNLIMITED, ClosedLoop

FIRST_SLOTS = 1024
FIRST_ENTRIES = 4096
PROMPT_ONLY_COEFFICIENTS = ("prefill_launch_s",)
"""What an iteration pays only because it holds a prompt; tokens verified after a draft don't."""


def new_state(kinds: Array, coefficients: Array, pools: Array, replicas: Sequence[tuple[int, int]], seed: int) -> State:
    """A run before its first request: ``replicas`` are (kind, pool), all down."""
    count = len(replicas)
    leaves = 1 << max(1, (count - 1).bit_length())
    widest = int(max(_width(kind) for kind in kinds))
    verify = coefficients.copy()
    for name in PROMPT_ONLY_COEFFICIENTS:
        verify[name] = 0.0
    state = State(
        fleet=zeros("fleet", 1),
        kinds=kinds,
        coefficients=coefficients,
        verify=verify,
        replicas=zeros("replicas", count),
        pools=pools,
        members=zeros("members", len(pools), count),
        distance=zeros("distance", len(pools), len(pools)),
        tree=np.full(2 * leaves, math.inf),
        slots=zeros("slots", 0),
        events=zeros("events", 4 * FIRST_SLOTS),
        heap_key=zeros("heap_key", count, widest),
        heap_slot=zeros("heap_slot", count, widest),
        phases=zeros("phases", count, int(max(1, kinds["block_tokens"].max()))),
        buckets=np.full(1, NONE, np.int64),
        entries=zeros("entries", 0),
        rows=zeros("rows", 0),
        histogram=zeros("histogram", 3, OCTAVES * FINE),
        home_histogram=zeros("home_histogram", 2 * len(pools) if len(pools) > 1 else 0, OCTAVES * FINE),
        bins=zeros("bins", TIME_BINS),
        bin_histogram=zeros("bin_histogram", 2 * TIME_BINS, OCTAVES * COARSE),
        samples=zeros("samples", TIME_BINS),
        heat_kv=zeros("heat_kv", TIME_BINS, min(count, HEAT_ROWS)),
        heat_waiting=zeros("heat_waiting", TIME_BINS, min(count, HEAT_ROWS)),
        hash_ids=zeros("hash_ids", 0),
    )
    _set_defaults(state, replicas, seed)
    return grow_cache(grow_slots(state))


def _width(kind: Any) -> int:
    return int(kind["instances"] if kind["mode"] == BATCHED else kind["max_seqs"])


def _set_defaults(state: State, replicas: Sequence[tuple[int, int]], seed: int) -> None:
    fleet = state.fleet[0]
    fleet["random"] = np.uint64(seed)
    fleet["free_slot"] = NONE
    fleet["entry_free"] = NONE
    fleet["bin_s"] = 1.0
    fleet["sample_s"] = 1.0
    fleet["cancel_s"] = math.inf
    fleet["slo_ttft_s"] = math.inf
    fleet["slo_tpot_s"] = math.inf
    for name in ("wait_head", "wait_tail", "pre_head", "pre_tail", "run_head", "run_tail", "lru_head", "lru_tail"):
        state.replicas[name] = NONE
    state.replicas["kind"] = [kind for kind, _pool in replicas]
    state.replicas["pool"] = [pool for _kind, pool in replicas]
    state.pools["hold_head"] = NONE
    state.pools["hold_tail"] = NONE
    cached = [kind for kind in state.kinds if kind["prefix_cache"]]
    if cached:
        fleet["entry_margin"] = 64 + max(
            2 * int(kind["blocks"]) * int(kind["block_tokens"]) // int(kind["unit_tokens"]) + int(kind["max_seqs"])
            for kind in cached
        )


def close_loop(state: State, loop: ClosedLoop, seed: int) -> State:
    """A run before its first request whose clients wait for their answers; those that pause begin with a pause."""
    fleet = state.fleet[0]
    fleet["closed"], fleet["think_s"] = 1, loop.think_s
    fleet["most_live"] = max(int(fleet["most_live"]), loop.clients)
    fleet["closes_s"] = math.inf if loop.until_s is None else loop.until_s
    if loop.think_s == 0.0:
        fleet["released"] = loop.clients
        return state
    state = grow_events(state, len(state.events) + loop.clients)
    first = state.events[: loop.clients]
    # In order of time they are a heap as they stand.
    first["time"] = np.sort(np.random.default_rng(seed).exponential(loop.think_s, loop.clients))
    first["sequence"] = np.arange(1, loop.clients + 1)
    first["kind"] = RELEASE
    fleet["events"] = fleet["sequence"] = loop.clients
    return state


def grow_slots(state: State) -> State:
    """Twice the slots (and events and rows to match)."""
    old = len(state.slots)
    new = max(FIRST_SLOTS, 2 * old)
    slots = zeros("slots", new)
    slots[:old] = state.slots
    slots["request"][old:] = NONE
    slots["next"][old:] = np.arange(old + 1, new + 1)
    slots["next"][-1] = state.fleet["free_slot"][0]
    state.fleet["free_slot"] = old
    return grow_events(state._replace(slots=slots), 4 * new)


def grow_events(state: State, at_least: int = 0) -> State:
    """Room for ``at_least`` timed events; for twice as many as there is room for where nothing is said."""
    new = at_least or 2 * len(state.events)
    if new <= len(state.events):
        return state
    events = zeros("events", new)
    events[: len(state.events)] = state.events
    return state._replace(events=events)


def grow_cache(state: State) -> State:
    """Twice the prefix-cache entries; the hash table is built anew at half load."""
    margin = int(state.fleet["entry_margin"][0])
    if margin == 0:
        return state
    old = len(state.entries)
    new = max(FIRST_ENTRIES, 2 * old, old + margin + 1)
    entries = zeros("entries", new)
    entries[:old] = state.entries
    entries["key"][old:] = NONE
    buckets = np.full(1 << (2 * new - 1).bit_length(), NONE, np.int64)
    used = np.flatnonzero(entries["key"] != NONE)
    for e in used:
        bucket = int(entries["key"][e]) & (len(buckets) - 1)
        entries["chain"][e] = buckets[bucket]
        buckets[bucket] = e
    entries["chain"][old:] = np.arange(old + 1, new + 1)
    entries["chain"][-1] = state.fleet["entry_free"][0]
    state.fleet["entry_free"] = old
    return state._replace(entries=entries, buckets=buckets)


def with_rows(state: State, rows: int) -> State:
    """Room for ``rows`` finished requests between two flushes."""
    state.fleet["keep_rows"] = 1
    return state._replace(rows=zeros("rows", rows))


def coefficient_records(coefficients: Sequence[tuple[float, ...]]) -> Array:
    """Step-time coefficients of each kind as records.

    >>> len(coefficient_records([]))
    0
    """
    return np.array([tuple(float(value) for value in row) for row in coefficients], dtype=COEFFICIENTS)


def kind_records(kinds: Sequence[dict[str, Any]]) -> Array:
    """Replica kinds as records; what isn't given is 0."""
    records = zeros("kinds", len(kinds))
    for record, given in zip(records, kinds, strict=True):
        for name, value in given.items():
            record[name] = value
    return records


def pool_records(pools: Sequence[dict[str, Any]]) -> Array:
    """Pools as records; no decode pool and no fallback where not given."""
    records = zeros("pools", len(pools))
    records["decode_pool"] = NONE
    records["fallback"] = NONE
    records["hold_s"] = math.inf
    records["max_held"] = UNLIMITED
    records["load_cap"] = math.inf
    for record, given in zip(records, pools, strict=True):
        for name, value in given.items():
            record[name] = value
    return records
