"""Clients that wait for their answers: against a plain loop, against theory, and where answers never come."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.layout import Array, Traffic, zeros
from planner.engine.simulate.lifecycle import Failures, PoolLife
from planner.engine.simulate.reference import plain_replicas, plain_requests, simulate_plainly
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica, ClosedLoop, Fleet, Pool
from planner.engine.simulate.state import (
    FIRST_SLOTS,
    close_loop,
    grow_events,
    grow_slots,
    kind_records,
    new_state,
    pool_records,
)
from planner.engine.simulate.traffic import batch, in_batches
from tests.engine.simulate.fleets import EIGHT_B, STEADY, assert_as_plain, one_pool, replica, rows_of


def lengths(requests: int, seed: int = 2) -> Traffic:
    rng = np.random.default_rng(seed)
    return batch(np.zeros(requests), rng.integers(50, 2000, requests), rng.integers(1, 300, requests))


def endless(size: int = 500, seed: int = 2) -> Iterator[Traffic]:
    rng = np.random.default_rng(seed)
    for made in itertools.count(0, size):
        yield batch(np.zeros(size), rng.integers(50, 2000, size), rng.integers(1, 300, size), first_request=made)


CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "one client": (1, 1, {}),
    "fewer clients than replicas": (2, 3, {}),
    "many": (64, 2, {}),
    "without lookahead": (64, 2, {"lookahead": False}),
    "batch limit": (64, 1, {"max_num_seqs": 24, "max_num_batched_tokens": 2048}),
    "preemption": (64, 2, {"kv_blocks": 1500, "max_num_batched_tokens": 2048, "reserve_prompt": False}),
    "two stages": (16, 1, {"coefficients": EIGHT_B._replace(pipeline=2.0), "max_num_batched_tokens": 512}),
}


@pytest.mark.parametrize("policy", ["round_robin", "least_outstanding"])
@pytest.mark.parametrize("case", CASES)
def test_every_request_as_in_the_plain_loop(case: str, policy: str) -> None:
    clients, replicas, changes = CASES[case]
    traffic = lengths(400)
    kind = replica(**changes)
    rows, outcome = rows_of(one_pool(kind, replicas, policy=policy, loop=ClosedLoop(clients=clients)), traffic)
    requests, plain = plain_requests(traffic), plain_replicas(kind, replicas)
    simulate_plainly(plain, requests, least_outstanding=policy == "least_outstanding", clients=clients)
    assert_as_plain(rows, outcome, requests, plain)


def in_flight(rows: Array) -> Array:
    """How many requests are out just after each arrival."""
    last = np.sort(rows["last"])
    arrival = np.sort(rows["arrival"])
    return np.arange(1, len(arrival) + 1) - np.searchsorted(last, arrival, side="right")


@pytest.mark.parametrize("request_s", [0.0, 0.05])
def test_never_more_requests_than_clients_and_none_idle(request_s: float) -> None:
    """What a request takes outside the engine, the client waits for too."""
    fleet = one_pool(replica(request_s=request_s), 2, loop=ClosedLoop(clients=20))
    rows, outcome = rows_of(fleet, lengths(3000))
    assert outcome.left["done"] == 3000
    assert in_flight(rows).max() <= 20
    sent = np.sort(rows["arrival"])
    assert (sent[:20] == 0.0).all()
    # The k-th answer lets the k-th further request go.
    np.testing.assert_allclose(sent[20:], np.sort(rows["last"])[: len(sent) - 20], atol=1e-9)


def machine_repair(clients: int, servers: int, think_s: float, service_s: float) -> float:
    """Throughput of M/M/c with ``clients`` sources that pause exponentially (Gross and Harris, finite source)."""
    ratio = service_s / think_s
    weights = [1.0]
    for n in range(1, clients + 1):
        weights.append(weights[-1] * (clients - n + 1) * ratio / min(n, servers))
    total = math.fsum(weights)
    busy = math.fsum(min(n, servers) * weight for n, weight in enumerate(weights)) / total
    return busy / service_s


@pytest.mark.parametrize(("clients", "servers", "think_s"), [(4, 1, 2.0), (20, 1, 30.0), (30, 4, 5.0), (5, 2, 0.5)])
def test_pauses_as_theory_has_them(clients: int, servers: int, think_s: float) -> None:
    """Exponential service of a second on average: throughput within 1 % of the machine-repair model."""
    jobs = 400_000
    microseconds = np.maximum(np.random.default_rng(4).exponential(1e6, jobs).astype(np.int64), 1)
    fleet = one_pool(
        BatchedReplica(token_s=1e-6, instances=servers), loop=ClosedLoop(clients=clients, think_s=think_s), seed=9
    )
    outcome = simulate(fleet, in_batches(batch(np.zeros(jobs), microseconds, np.ones(jobs))))
    expected = machine_repair(clients, servers, think_s, microseconds.mean() * 1e-6)
    assert outcome.left["done"] == jobs
    assert jobs / outcome.duration_s == pytest.approx(expected, rel=0.01)
    # Little's law with the pauses: N = X (R + Z).
    assert jobs / outcome.duration_s * (outcome.e2e.mean_s + think_s) == pytest.approx(clients, rel=0.01)


@pytest.mark.parametrize("think_s", [0.0, 0.5])
def test_closes_on_time_and_answers_what_was_sent(think_s: float) -> None:
    fleet = one_pool(replica(), 2, loop=ClosedLoop(clients=16, think_s=think_s, until_s=30.0))
    kept: list[Array] = []
    outcome = simulate(fleet, endless(), rows=lambda rows: kept.append(rows.copy()))
    rows = np.concatenate(kept)
    assert outcome.left["done"] == outcome.requests == len(rows) > 200
    assert rows["arrival"].max() < 30.0
    assert rows["arrival"].max() + 3.0 > 30.0
    assert 30.0 < outcome.end_s < 45.0


def test_the_same_seed_gives_the_same_run_however_it_is_fed() -> None:
    def run(size: int, seed: int) -> Outcome:
        loop = ClosedLoop(clients=40, think_s=0.2)
        fleet = one_pool(replica(kv_blocks=1500), 3, policy="power_of_two", seed=seed, loop=loop)
        return simulate(fleet, in_batches(lengths(4000), size))

    one, other, different = run(4000, 5), run(77, 5), run(77, 6)
    assert (one.e2e.histogram == other.e2e.histogram).all()
    assert one.e2e.total == other.e2e.total != different.e2e.total
    assert (one.busy_s == other.busy_s).all()
    assert one.duration_s == other.duration_s


REFUSED: dict[str, dict[str, Any]] = {
    "queue_full": {"kind": {"max_waiting": 0}},
    "too_long": {"kind": {"max_context_tokens": 10}},
    "cancelled": {"client_timeout_s": 0.01},
    "queue_timeout": {"kind": {"queue_timeout_s": 0.0, "max_num_seqs": 2}},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_who_is_turned_away_tries_again_later(reason: str) -> None:
    """Never at the same instant again and again: time passes between a client's requests."""
    given = dict(REFUSED[reason])
    kind = replica(**given.pop("kind", {}))
    fleet = one_pool(kind, retry_s=0.1, loop=ClosedLoop(clients=8, until_s=20.0), **given)
    outcome = simulate(fleet, endless())
    assert outcome.left[reason] > 0
    assert outcome.left["unfinished"] == 0
    assert outcome.requests <= 8 * (20.0 / 0.1 + 1) + outcome.left["done"]


def test_nothing_to_serve_with_ends_the_run() -> None:
    """Every client waits at a gateway without replicas, for ever: the run says so instead of going on."""
    pool = Pool(kind=replica(), replicas=0, max_replicas=1)
    outcome = simulate(Fleet(pools=[pool], loop=ClosedLoop(clients=3, until_s=60.0)), endless(), control=None)
    assert outcome.requests >= 3
    dead = Pool(kind=replica(), replicas=0)
    control = FleetControl([PoolLife(failures=Failures(mean_hours=1.0))])
    held = simulate(Fleet(pools=[dead], loop=ClosedLoop(clients=3, until_s=60.0)), endless(), control=control)
    assert held.left["unfinished"] == held.requests == 3


def test_lost_replicas_lose_no_clients() -> None:
    pool = Pool(kind=replica(), replicas=3)
    control = FleetControl([PoolLife(failures=Failures(mean_hours=0.02, repair_s=5.0))], seed=3)
    loop = ClosedLoop(clients=12, until_s=300.0)
    outcome = simulate(Fleet(pools=[pool], loop=loop, max_retries=1), endless(), control=control)
    assert outcome.left["replica_lost"] > 0
    assert outcome.left["unfinished"] == 0
    late = outcome.timeline.arrived[int(250 / outcome.timeline.bin_s) :]
    assert late.sum() > 0


def test_prefill_and_decode_pools_serve_clients_too() -> None:
    pools = [
        Pool(kind=replica(role="prefill", transfer_s=0.002), replicas=1, decode_pool=1),
        Pool(kind=replica(role="decode"), replicas=2),
    ]
    rows, outcome = rows_of(Fleet(pools=pools, loop=ClosedLoop(clients=24)), lengths(2000))
    assert outcome.left["done"] == 2000
    assert in_flight(rows).max() <= 24


def test_steady_steps_are_counted_exactly() -> None:
    """Four clients, 100 iterations of 1 ms a request, each request one iteration late for the next batch."""
    kind = replica(coefficients=STEADY, lookahead=False)
    outcome = simulate(one_pool(kind, loop=ClosedLoop(clients=4)), [batch(np.zeros(40), np.ones(40), np.full(40, 100))])
    assert outcome.duration_s == pytest.approx(10 * 0.1 + 9 * 0.001, abs=1.5e-3)


def test_room_for_events_grows_with_what_it_is_for() -> None:
    kinds, pools = kind_records([{"max_seqs": 1, "block_tokens": 1}]), pool_records([{}])
    state = new_state(kinds, zeros("coefficients", 1), pools, [(0, 0)], seed=0)
    clients = 1_000_000
    state = close_loop(state, ClosedLoop(clients=clients, think_s=60.0), seed=0)
    for _ in range(7):
        state = grow_slots(state)
    assert len(state.slots) == 128 * FIRST_SLOTS
    assert clients + 4 * FIRST_SLOTS <= len(state.events) < 2 * clients
    assert len(grow_events(state).events) == 2 * len(state.events)
    while len(state.slots) < clients:
        state = grow_slots(state)
    assert len(state.events) == 4 * len(state.slots)
