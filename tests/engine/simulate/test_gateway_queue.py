"""The gateway's own queue, where replicas take so many requests at a time: how long it gets, and whom it refuses."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.codes import QUEUE_FULL
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica, ClosedLoop, Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, lognormal_traffic, one_pool, replica, rows_of

SECOND = BatchedReplica(item_s=1.0)


def fleet(kind: Any, replicas: int = 1, **pool: Any) -> Fleet:
    return Fleet(pools=[Pool(kind=kind, replicas=replicas, **pool)])


def plainly_refused(arrival_s: Sequence[float], servers: int, room: int) -> list[bool]:
    """Whom ``servers`` of 1 s each with ``room`` places to wait turn away."""
    free_s = [0.0] * servers
    begins_s: list[float] = []
    refused = []
    for at_s in arrival_s:
        waiting = sum(begin_s > at_s for begin_s in begins_s)
        refused.append(free_s[0] > at_s and waiting >= room)
        if not refused[-1]:
            begins_s.append(max(at_s, heapq.heappop(free_s)))
            heapq.heappush(free_s, begins_s[-1] + 1.0)
    return refused


def test_a_full_queue_at_the_gateway_refuses() -> None:
    """Two of a second each at a time and room for three: five of ten that come together are refused at once."""
    kind = replica(coefficients=STEADY, lookahead=False)
    traffic = batch(np.zeros(10), np.ones(10), np.full(10, 1000))
    rows, outcome = rows_of(fleet(kind, max_outstanding=2, max_held=3), traffic)
    assert (outcome.left["done"], outcome.left["queue_full"]) == (5, 5)
    assert (rows["outcome"] == QUEUE_FULL).tolist() == [False] * 5 + [True] * 5
    np.testing.assert_allclose(rows["last"][:5], [1.0, 1.0, 2.0, 2.0, 3.0], atol=0.01)


@pytest.mark.parametrize("room", [0, 1, 7, 40])
@pytest.mark.parametrize("rate", [2.0, 3.0, 9.0])
def test_whom_it_refuses_is_as_in_a_plain_loop(rate: float, room: int) -> None:
    rng = np.random.default_rng(5)
    arrival_s = np.cumsum(rng.exponential(1 / rate, 3000))
    traffic = batch(arrival_s, np.ones(3000), np.ones(3000))
    rows, outcome = rows_of(fleet(SECOND, 3, max_outstanding=1, max_held=room), traffic)
    refused = plainly_refused(arrival_s.tolist(), 3, room)
    assert (rows["outcome"] == QUEUE_FULL).tolist() == refused
    assert outcome.left["queue_full"] == sum(refused)
    # Three a second are served, so nobody waits longer than those before him take.
    served = rows[~np.array(refused)]
    assert (served["first"] - served["arrival"]).max() <= 1.0 + math.ceil(room / 3) + 1e-9


def test_a_queue_that_never_gets_so_long_changes_nothing() -> None:
    traffic = lognormal_traffic(3000, 60.0)
    kind = replica(kv_blocks=3000)
    free, unlimited = rows_of(fleet(kind, 2, max_outstanding=40), traffic)
    kept, limited = rows_of(fleet(kind, 2, max_outstanding=40, max_held=3000), traffic)
    assert (free == kept).all()
    assert limited.left == unlimited.left
    assert unlimited.samples.waiting_max.max() > 40


def test_with_nobody_to_serve_the_gateway_keeps_no_more_than_the_limit() -> None:
    traffic = batch(np.arange(10.0), np.ones(10), np.ones(10))
    outcome = simulate(fleet(SECOND, 0, max_held=4), [traffic])
    assert (outcome.left["unfinished"], outcome.left["queue_full"]) == (4, 6)


def test_clients_that_are_refused_come_again() -> None:
    traffic = batch(np.zeros(400), np.ones(400), np.ones(400))
    asked = Fleet(
        pools=[Pool(kind=SECOND, replicas=1, max_outstanding=1, max_held=2)], loop=ClosedLoop(clients=4), retry_s=0.1
    )
    outcome = simulate(asked, [traffic])
    # One is served and two wait: the fourth asks every 0.1 s until one of those places is free.
    assert outcome.left["done"] + outcome.left["queue_full"] == 400
    assert outcome.left["done"] == pytest.approx(400 / 11, abs=5)


def test_no_limit_unless_given() -> None:
    traffic = batch(np.zeros(500), np.ones(500), np.ones(500))
    outcome = simulate(one_pool(SECOND, max_outstanding=1), [traffic])
    assert outcome.left["done"] == 500
    assert outcome.end_s == pytest.approx(500.0)
