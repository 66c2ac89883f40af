"""A scenario's autoscaler: the real ones' defaults, and each of its settings at work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.autoscaling import Hpa, Keda
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import PoolLife
from planner.engine.simulate.planned_scaling import planned_scaling
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, replica

KIND = replica(coefficients=STEADY, max_num_seqs=1024)


def scaled(replicas: int, concurrency: float, **scenario: Any) -> list[tuple[float, int | None]]:
    """When replicas that are ready at once are scaled, and to how many: 600 s of so many requests of 1 s at a time."""
    given = {"scaling_target": 10.0, "max_replicas": 40, **scenario}
    scaler = planned_scaling(SimulationQuestion(**given), replicas)
    count = int(600 * concurrency)
    traffic = batch(np.arange(count) / concurrency, np.ones(count), np.full(count, 970))
    control = FleetControl([PoolLife(autoscaler=scaler)])
    simulate(Fleet(pools=[Pool(kind=KIND, replicas=replicas, max_replicas=40)]), [traffic], control=control)
    return [(one.at_s, one.replicas) for one in control.incidents if one.kind == "scaled" and one.at_s < 600.0]


def test_what_is_not_stated_is_as_the_real_ones_have_it() -> None:
    hpa = planned_scaling(SimulationQuestion(autoscaler="hpa", scaling_target=8.0, max_replicas=10), 4)
    assert hpa is not None
    assert hpa.settings == Hpa(target=8.0)
    keda = planned_scaling(SimulationQuestion(autoscaler="keda", scaling_target=8.0, min_replicas=0), 50)
    assert keda is not None
    assert keda.settings == Keda(target=8.0)
    assert planned_scaling(SimulationQuestion(), 4) is None


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        # 200 at a time at 10 each: 20 replicas. From 2 at most 4 more or twice as many in 15 s.
        ({}, [(15.0, 6), (30.0, 12), (45.0, 20)]),
        ({"scale_up_replicas": 0}, [(15.0, 4), (30.0, 8), (45.0, 16), (60.0, 20)]),
        ({"scale_up_percent": 0.0, "scale_up_replicas": 9}, [(15.0, 11), (30.0, 20)]),
        ({"hpa_sync_s": 60.0}, [(60.0, 6), (120.0, 12), (180.0, 20)]),
        # The lowest that was asked for in the last 120 s: 20 from then on.
        ({"scale_up_window_s": 120.0}, [(135.0, 6), (150.0, 12), (165.0, 20)]),
    ],
)
def test_up(scenario: dict[str, Any], expected: list[tuple[float, int]]) -> None:
    assert scaled(2, 200.0, autoscaler="hpa", **scenario) == expected


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        # 40 at a time at 10 each: 4 replicas, after five minutes in which 16 were enough.
        ({}, [(315.0, 4)]),
        ({"scale_down_window_s": 0.0}, [(15.0, 4)]),
        ({"scale_down_window_s": 0.0, "scale_down_percent": 50.0}, [(15.0, 8), (30.0, 4)]),
        ({"scale_down_window_s": 0.0, "scale_down_percent": 0.0}, []),
    ],
)
def test_down(scenario: dict[str, Any], expected: list[tuple[float, int]]) -> None:
    assert scaled(16, 40.0, autoscaler="hpa", **scenario) == expected


def test_a_wider_tolerance_leaves_it_as_it_is() -> None:
    """130 at a time on 10 replicas are 13 each: 30 % above the target."""
    assert scaled(10, 130.0, autoscaler="hpa") == [(15.0, 13)]
    assert scaled(10, 130.0, autoscaler="hpa", hpa_tolerance=0.35) == []


def test_keda_is_active_above_its_activation() -> None:
    """Six at a time: for an activation of four there is something to do, for one of eight there never is."""
    idle = {"autoscaler": "keda", "min_replicas": 0, "cooldown_s": 60.0}
    assert scaled(1, 6.0, keda_activation=4.0, **idle) == []
    assert scaled(1, 6.0, keda_activation=8.0, **idle)[0] == (30.0, 0)
