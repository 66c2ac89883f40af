"""Requests that a dead replica refuses before health checks know: to whom they go then, and how many are lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.codes import POLICIES
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import ColdStart, Failures, PoolLife
from planner.engine.simulate.records import MAX_AVOIDED
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import Run, simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, lognormal_traffic, replica

KIND = replica(coefficients=STEADY, max_num_seqs=1024)
AT_S = 5.0


class Killing:
    """Everything is up; some replicas die at ``AT_S``, and the gateway doesn't know."""

    def __init__(self, *dead: int) -> None:
        self._dead = dead
        self._at_s = AT_S

    def start(self, run: Run) -> None:
        for number in range(len(run.state.replicas)):
            run.rent(number, 0.0)
            run.bring_up(number, 0.0)

    def next_s(self) -> float:
        return self._at_s

    def act(self, run: Run, now_s: float) -> None:
        self._at_s = math.inf
        for number in self._dead:
            run.take_down(number, now_s)


def serve(replicas: int, dead: int, retries: int, **pool: Any) -> Outcome:
    """Sparse requests, so that the dead, with nothing out, are the least loaded as often as can be."""
    traffic = batch(0.1 + np.arange(200) * 0.25, np.full(200, 10), np.full(200, 400))
    fleet = Fleet(pools=[Pool(kind=KIND, replicas=replicas, **pool)], max_retries=retries)
    return simulate(fleet, [traffic], control=Killing(*range(dead)))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dead", [1, 2, 4, MAX_AVOIDED])
def test_none_is_lost_while_retries_outnumber_the_dead(policy: str, dead: int) -> None:
    """Each of the dead refuses a request once at most: then it goes to one that serves."""
    outcome = serve(dead + 1, dead, dead, policy=policy)
    assert outcome.left["done"] == 200
    assert outcome.left["replica_lost"] == 0
    assert 0 < outcome.retries <= 200 * dead


def test_with_fewer_retries_than_dead_some_are_lost() -> None:
    outcome = serve(3, 2, 1)
    assert outcome.left["replica_lost"] > 0
    assert outcome.left["done"] + outcome.left["replica_lost"] == 200


def test_who_has_been_refused_by_all_goes_on_asking() -> None:
    """More dead than are remembered, none alive: every retry is used up, and nothing is waited for."""
    outcome = serve(MAX_AVOIDED + 2, MAX_AVOIDED + 2, 30)
    late = int((0.1 + np.arange(200) * 0.25 >= AT_S).sum())
    assert late <= outcome.left["replica_lost"] <= late + 8
    assert outcome.retries == outcome.left["replica_lost"] * 30
    assert sum(outcome.left.values()) == 200


def test_a_full_gateway_holds_rather_than_asks_a_dead_one_again() -> None:
    """The one that serves takes one at a time, 0.4 s each, and four a second come: who was refused waits for it."""
    outcome = serve(2, 1, 1, max_outstanding=1)
    assert outcome.left["done"] == 200
    # The 20 of the first 5 s were served as they came, the other 180 one after the other.
    assert outcome.end_s == pytest.approx(AT_S + 180 * 0.4, abs=1.0)


def test_a_pool_that_has_refused_it_is_passed_over_for_its_fallback() -> None:
    traffic = batch(0.1 + np.arange(100) * 0.25, np.full(100, 10), np.full(100, 40))
    traffic = traffic._replace(pool=np.zeros(100, np.int64))
    pools = [Pool(kind=KIND, replicas=1, fallback=(1,)), Pool(kind=KIND, replicas=1)]
    outcome = simulate(Fleet(pools=pools, max_retries=1), [traffic], control=Killing(0))
    assert outcome.left["done"] == 100
    assert outcome.retries == pytest.approx(80, abs=2)


def test_a_lost_node_of_two_drops_nothing() -> None:
    """Least outstanding, three retries, 10 s until health checks know: the others take it all."""
    life = PoolLife(start=ColdStart(provision_s=60.0), failures=Failures(mean_hours=0.5, repair_s=900.0, detect_s=10.0))
    pool = Pool(kind=replica(), replicas=8, max_replicas=10, replicas_per_unit=2)
    control = FleetControl([life], seed=2)
    outcome = simulate(Fleet(pools=[pool]), [lognormal_traffic(20_000, 10.0)], control=control)
    assert control.happened.counts["failed"] > 2
    assert outcome.retries > 100
    assert outcome.left["done"] == 20_000
