"""Rolling upgrades of replicas that share nodes: when they are over, and what of their surge is paid for afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.autoscaling import Hpa
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import (
    Autoscaler,
    ColdStart,
    Failures,
    Incident,
    PoolLife,
    RollingUpgrade,
    SpotInterruptions,
)
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.traffic import batch, empty_batch
from tests.engine.simulate.fleets import STEADY, replica

KIND = replica(coefficients=STEADY, max_num_seqs=1024)
START = ColdStart(provision_s=120.0, image_gib=10.0, image_gib_s=0.5, warm_up_s=93.0)
NODE_S, IMAGE_S, RESTART_S = 140.0, 20.0, 93.0
AT_S = 600.0
HOUR = 3600.0


def run(
    pool: Pool,
    *,
    traffic: Any = None,
    seed: int = 0,
    lasts_s: float = HOUR,
    surge: int = 1,
    unavailable: int = 0,
    **life: Any,
) -> tuple[Outcome, tuple[Incident, ...]]:
    upgrade = RollingUpgrade(at_s=AT_S, max_surge=surge, max_unavailable=unavailable)
    control = FleetControl([PoolLife(start=START, upgrade=upgrade, **life)], seed=seed)
    batches = [empty_batch() if traffic is None else traffic]
    outcome = simulate(Fleet(pools=[pool], max_retries=1000), batches, control=control, lasts_s=lasts_s)
    return outcome, control.incidents


def nodes_of(replicas: int, each: int, more: int = 2) -> Pool:
    return Pool(kind=KIND, replicas=replicas, max_replicas=replicas + more, replicas_per_unit=each, unit_gpus=8.0)


def times(incidents: tuple[Incident, ...], kind: str) -> list[tuple[float, int | None]]:
    return [(one.at_s, one.replica) for one in incidents if one.kind == kind]


def steady_stream(rate: float, seconds: float, tokens: int) -> Any:
    count = int(rate * seconds)
    return batch(np.arange(count) / rate, np.ones(count), np.full(count, tokens))


def test_a_surge_of_a_node_is_given_back_after_the_upgrade() -> None:
    """Four on two nodes, the fifth on a third: it moves to the place that the last old one has left.

    The first on each of the two pulls the new image, the second finds it.
    """
    outcome, incidents = run(nodes_of(4, 2, more=1))
    first_s = AT_S + NODE_S + RESTART_S
    at_s = [first_s + pulled * IMAGE_S + k * RESTART_S for k, pulled in ((0, 0), (1, 1), (2, 1), (3, 2), (4, 2))]
    over_s = at_s[3]
    assert times(incidents, "upgraded") == [(over_s, None)]
    assert times(incidents, "ready") == list(zip(at_s, (4, 3, 2, 1, 0), strict=True))
    surge_s = over_s + RESTART_S - AT_S
    assert outcome.unit_hours[0] == pytest.approx(2 + surge_s / HOUR, abs=1e-9)
    assert outcome.samples.ready_min.min() == 4
    assert outcome.samples.billed_max.max() == 6
    assert outcome.samples.ready[-1] == outcome.samples.billed[-1] == 4


def test_replicas_that_start_together_pull_the_new_image_once() -> None:
    """Two of the four on one node at a time; there are places to spare on it, so nothing is provisioned."""
    pool = Pool(kind=KIND, replicas=2, max_replicas=4, replicas_per_unit=4, unit_gpus=8.0)
    _, incidents = run(pool, surge=2)
    assert times(incidents, "ready") == [(AT_S + IMAGE_S + RESTART_S, 2), (AT_S + IMAGE_S + RESTART_S, 3)]
    assert times(incidents, "upgraded") == [(AT_S + IMAGE_S + RESTART_S, None)]


def test_a_node_that_an_old_replica_leaves_takes_the_next_new_one() -> None:
    """One a node: only the surge is provisioned, then each starts where the last old one was, after its image."""
    outcome, incidents = run(nodes_of(3, 1, more=1))
    first_s, again_s = AT_S + NODE_S + RESTART_S, IMAGE_S + RESTART_S
    assert times(incidents, "ready") == [(first_s + k * again_s, 3 - k) for k in (0, 1, 2)]
    over_s = first_s + 2 * again_s
    assert times(incidents, "upgraded") == [(over_s, None)]
    assert outcome.unit_hours[0] == pytest.approx(3 + (over_s - AT_S) / HOUR, abs=1e-9)


def test_without_surge_no_other_node_is_rented() -> None:
    """Two of four at a time start again where they were, both of a node with one image."""
    outcome, incidents = run(nodes_of(4, 2, more=0), surge=0, unavailable=2)
    again_s = IMAGE_S + RESTART_S
    assert [at_s for at_s, _ in times(incidents, "ready")] == [AT_S + again_s] * 2 + [AT_S + 2 * again_s] * 2
    assert times(incidents, "upgraded") == [(AT_S + 2 * again_s, None)]
    assert outcome.unit_hours[0] == pytest.approx(2.0, abs=1e-9)
    assert outcome.samples.ready_min.min() == 2


def test_an_upgrade_is_over_when_the_new_ones_serve() -> None:
    """Not when the old ones go: two on a node of their own, then two in the places that the first two have left."""
    _, incidents = run(nodes_of(4, 2), surge=0, unavailable=2)
    first_s, again_s = AT_S + NODE_S + RESTART_S, NODE_S + RESTART_S
    assert [at_s for at_s, _ in times(incidents, "ready")] == [first_s] * 2 + [first_s + again_s] * 2
    assert times(incidents, "upgraded") == [(first_s + again_s, None)]


def test_all_at_once_is_over_with_the_last_start() -> None:
    _, incidents = run(nodes_of(2, 1, more=0), surge=0, unavailable=2)
    assert times(incidents, "upgraded") == [(AT_S + IMAGE_S + RESTART_S, None)]


def test_a_node_taken_back_is_not_started_on_in_the_same_moment() -> None:
    """All notice, no spare: what replaces it comes on another node, provisioned from scratch."""
    pool = nodes_of(1, 1, more=0)
    life = PoolLife(start=START, spot=SpotInterruptions(per_unit_hour=2.0, notice_s=30.0))
    control = FleetControl([life], seed=1)
    simulate(Fleet(pools=[pool]), [empty_batch()], control=control, lasts_s=2 * HOUR)
    gone = times(control.incidents, "interrupted")
    back = times(control.incidents, "ready")
    assert len(gone) > 0
    assert [at_s for at_s, _ in back] == [at_s + NODE_S + RESTART_S for at_s, _ in gone][: len(back)]


def test_nothing_to_upgrade_is_over_at_once() -> None:
    _, incidents = run(nodes_of(0, 2))
    assert times(incidents, "upgraded") == [(AT_S, None)]


@pytest.mark.parametrize("each", [2, 3, 4, 8])
@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (2, 0), (0, 1), (3, 2), (5, 0)])
@pytest.mark.parametrize("replicas", [1, 4, 7, 12])
def test_afterwards_a_fleet_is_on_as_few_nodes_as_before(
    each: int, surge: int, unavailable: int, replicas: int
) -> None:
    pool = nodes_of(replicas, each, more=surge + unavailable)
    outcome, incidents = run(pool, surge=surge, unavailable=unavailable, lasts_s=3 * HOUR)
    longer, _ = run(pool, surge=surge, unavailable=unavailable, lasts_s=4 * HOUR)
    assert [one.kind for one in incidents].count("upgraded") == 1
    assert longer.unit_hours[0] - outcome.unit_hours[0] == pytest.approx(-(-replicas // each), abs=1e-9)
    assert outcome.samples.ready[-1] == replicas
    assert outcome.samples.ready_min.min() >= replicas - unavailable
    most = -(-(replicas + max(surge, each) + unavailable) // each) * each
    assert outcome.samples.billed_max.max() <= most


def test_requests_outlive_the_moves() -> None:
    traffic = steady_stream(8.0, 2000.0, 5000)
    outcome, incidents = run(nodes_of(4, 2, more=1), traffic=traffic, grace_s=30.0, lasts_s=0.0)
    assert outcome.left["done"] == 16_000
    assert outcome.retries == 0
    assert len(times(incidents, "ready")) == 5
    assert outcome.samples.billed[-1] == 4


@pytest.mark.parametrize("seed", range(4))
def test_what_breaks_or_scales_meanwhile_doesnt_stop_it(seed: int) -> None:
    """Whatever goes wrong, in the end all wanted serve in the new version, on no more nodes than they need."""
    scaler = Autoscaler(settings=Hpa(target=6.0, min_replicas=3, max_replicas=9), metric="concurrency")
    traffic = steady_stream(20.0, 5000.0, 1000)
    outcome, incidents = run(
        Pool(kind=KIND, replicas=4, max_replicas=14, replicas_per_unit=2, unit_gpus=8.0),
        traffic=traffic,
        seed=seed,
        lasts_s=0.0,
        autoscaler=scaler,
        failures=Failures(mean_hours=1.0, repair_s=700.0),
        spot=SpotInterruptions(per_unit_hour=1.0),
    )
    assert [one.kind for one in incidents].count("upgraded") == 1
    assert outcome.left["done"] == len(traffic.arrival_s)
    assert outcome.unit_hours[0] < 7 * 5000.0 / HOUR
