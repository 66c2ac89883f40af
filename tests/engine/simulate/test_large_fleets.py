"""Fleets of many thousand replicas: up in linear time, told of while they come up, and stopped when asked."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from planner.engine.simulate import run as run_module
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import PoolLife
from planner.engine.simulate.run import Run, simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.warm_up import warm_up
from tests.engine.simulate.fleets import lognormal_traffic, one_pool, replica


class Stopped(Exception):
    """Raised by a report that wants no more."""


def seconds_to_start(replicas: int) -> float:
    """What two pools take to come up."""
    pools = [Pool(kind=replica(), replicas=replicas), Pool(kind=replica(), replicas=replicas)]
    began = time.perf_counter()
    control = FleetControl((PoolLife(), PoolLife()))
    run = Run(Fleet(pools=pools))
    control.start(run)
    took = time.perf_counter() - began
    assert run.state.pools["members"].tolist() == [replicas, replicas]
    assert run.state.members[1, :replicas].tolist() == list(range(replicas, 2 * replicas))
    return took


def test_twice_the_fleet_takes_about_twice_as_long_to_start() -> None:
    warm_up()
    seconds_to_start(100)
    small, large = (min(seconds_to_start(count) for _ in range(2)) for count in (3000, 12_000))
    # Members made anew for each replica: sixteen times.
    assert large / small < 9
    assert large < 10


def test_a_fleet_that_is_not_wanted_any_more_stops_while_it_comes_up() -> None:
    told: list[int] = []

    def progress(requests: int, _now_s: float) -> None:
        told.append(requests)
        if len(told) == 3:
            raise Stopped

    with pytest.raises(Stopped):
        simulate(
            one_pool(replica(), replicas=5000),
            [lognormal_traffic(10, 5)],
            control=FleetControl((PoolLife(),)),
            progress=progress,
        )
    assert told == [0, 0, 0]


def test_pauses_change_nothing_and_come_within_one_batch_of_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    def served(told: list[float]) -> tuple[object, ...]:
        out = simulate(
            replace(one_pool(replica(), replicas=3), client_timeout_s=20.0),
            [lognormal_traffic(500, 20)],
            progress=lambda _requests, now_s: told.append(now_s),
        )
        return (out.duration_s, out.iterations, out.ttft.mean_s, out.samples.waiting.tolist(), out.samples.kv.tolist())

    few: list[float] = []
    many: list[float] = []
    whole = served(few)
    monkeypatch.setattr(run_module, "MOST_EVENTS", 10)
    assert served(many) == whole
    assert len(many) > 40 > len(few)
    assert np.all(np.diff(many) >= 0)


def test_members_stay_in_order_however_replicas_come_and_go() -> None:
    run = Run(one_pool(replica(), replicas=8))
    there: set[int] = set()
    for step in np.random.default_rng(3).integers(0, 8, 200).tolist():
        (run.exclude if step in there else run.include)(step)
        there ^= {step}
        run.include(min(there)) if there else None
        count = int(run.state.pools["members"][0])
        assert run.state.members[0, :count].tolist() == sorted(there)
