"""Fleets that change while they run: autoscaling, cold starts, failures, spot, upgrades."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.autoscaling import Hpa, Keda
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
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, lognormal_traffic, replica

MINUTE = 60.0
STEADY_REPLICA = replica(coefficients=STEADY, max_num_seqs=1024)


def run(pool: Pool, life: PoolLife, traffic: Any, **fleet: Any) -> tuple[Outcome, tuple[Incident, ...]]:
    control = FleetControl([life], seed=fleet.get("seed", 0))
    outcome = simulate(Fleet(pools=[pool], **fleet), [traffic], control=control)
    return outcome, control.incidents


def steady_stream(rate: float, seconds: float, tokens: int) -> Any:
    count = int(rate * seconds)
    return batch(np.arange(count) / rate, np.ones(count), np.full(count, tokens))


def test_hpa_doubles_then_waits_for_what_is_starting() -> None:
    """38 or 39 requests in flight on 2 replicas with a target of 10 each: ratio 1.9, so 4 at the first sync."""
    scaler = Autoscaler(settings=Hpa(target=10.0), metric="concurrency")
    life = PoolLife(start=ColdStart(provision_s=20.0), autoscaler=scaler)
    pool = Pool(kind=STEADY_REPLICA, replicas=2, max_replicas=10)
    outcome, incidents = run(pool, life, steady_stream(40.0, 200.0, 950))
    scaled = [(incident.at_s, incident.replicas) for incident in incidents if incident.kind == "scaled"]
    assert scaled == [(15.0, 4)]
    assert [incident.at_s for incident in incidents if incident.kind == "ready"] == [35.0, 35.0]
    assert outcome.left["done"] == 8000
    assert outcome.samples.ready.min() == 2
    assert outcome.samples.ready.max() == 4
    assert outcome.samples.billed_max.max() == 4


def test_down_scaling_waits_five_minutes_and_drains() -> None:
    scaler = Autoscaler(settings=Hpa(target=10.0), metric="concurrency")
    pool = Pool(kind=STEADY_REPLICA, replicas=4, max_replicas=10)
    traffic = steady_stream(10.0, 1000.0, 950)
    outcome, incidents = run(pool, PoolLife(autoscaler=scaler, grace_s=30.0), traffic)
    scaled = [(incident.at_s, incident.replicas) for incident in incidents if incident.kind == "scaled"]
    # One is enough from the first sync (15 s) on; the four it began with count for 300 s more.
    assert scaled == [(315.0, 1)]
    assert outcome.left["done"] == 10_000
    assert outcome.retries == 0
    assert outcome.gpu_hours == pytest.approx((1001 + 3 * 316) / 3600, rel=0.01)


def test_a_dip_shorter_than_the_window_scales_nothing_down() -> None:
    scaler = Autoscaler(settings=Hpa(target=10.0), metric="concurrency")
    pool = Pool(kind=STEADY_REPLICA, replicas=4, max_replicas=10)
    busy, quiet = steady_stream(40.0, 100.0, 1000), steady_stream(5.0, 200.0, 1000)
    arrival_s = np.concatenate([busy.arrival_s, 100.0 + quiet.arrival_s, 300.0 + busy.arrival_s])
    traffic = batch(arrival_s, np.ones(len(arrival_s)), np.full(len(arrival_s), 1000))
    _, incidents = run(pool, PoolLife(autoscaler=scaler), traffic)
    assert [incident for incident in incidents if incident.kind == "scaled"] == []


def test_keda_serves_from_zero_and_goes_back() -> None:
    scaler = Autoscaler(settings=Keda(target=5.0, max_replicas=4), metric="concurrency", scrape_s=15.0)
    life = PoolLife(
        start=ColdStart(provision_s=60.0, weights_gib=16, weights_gib_s=2.0, warm_up_s=22.0), autoscaler=scaler
    )
    pool = Pool(kind=STEADY_REPLICA, replicas=0, max_replicas=4)
    # Nobody until 100 s; then one request, and one more long after.
    traffic = batch(np.array([100.0, 700.0]), np.ones(2), np.array([1000, 1000]))
    outcome, incidents = run(pool, life, traffic)
    scaled = [(incident.at_s, incident.replicas) for incident in incidents if incident.kind == "scaled"]
    # Seen at the poll of 120 s; 90 s of cold start; last seen active at 210 s, so zero at 510 s.
    assert scaled[:2] == [(120.0, 1), (510.0, 0)]
    assert scaled[2] == (720.0, 1)
    assert outcome.left["done"] == 2
    assert outcome.ttft.mean_s == pytest.approx(110.0, abs=0.01)


def test_without_any_replica_ever_the_run_still_ends() -> None:
    outcome, _ = run(Pool(kind=STEADY_REPLICA, replicas=0), PoolLife(), steady_stream(1.0, 10.0, 10))
    assert outcome.left["unfinished"] == 10


def test_a_failed_node_loses_its_requests_and_others_take_them() -> None:
    life = PoolLife(
        start=ColdStart(provision_s=120.0, warm_up_s=60.0),
        failures=Failures(mean_hours=0.5, repair_s=600.0, detect_s=10.0),
    )
    pool = Pool(kind=replica(), replicas=8, max_replicas=10, replicas_per_unit=2)
    traffic = lognormal_traffic(30_000, 12.0)
    outcome, incidents = run(pool, life, traffic, max_retries=1000)
    failed = [incident for incident in incidents if incident.kind == "failed"]
    assert len(failed) >= 4
    assert len(failed) % 2 == 0
    assert {first.at_s == second.at_s for first, second in zip(failed[::2], failed[1::2], strict=True)} == {True}
    lost = sum(incident.lost_requests for incident in failed)
    assert lost > 0
    assert outcome.retries > lost
    assert outcome.left["done"] == 30_000
    assert outcome.samples.ready_min.min() < 8


def test_refusals_until_the_health_check_fails_a_request_without_retries() -> None:
    life = PoolLife(failures=Failures(mean_hours=0.1, repair_s=1e6, detect_s=30.0))
    outcome, _ = run(Pool(kind=replica(), replicas=3), life, lognormal_traffic(3000, 6.0), max_retries=0)
    assert outcome.left["replica_lost"] > 0
    assert sum(outcome.left.values()) == 3000


def test_a_dead_replica_is_not_asked_twice_in_a_row() -> None:
    """It has nothing in flight, so least-outstanding would send everything there until it is found out."""
    life = PoolLife(failures=Failures(mean_hours=0.2, repair_s=1e6, detect_s=60.0))
    outcome, incidents = run(
        Pool(kind=replica(), replicas=3), life, lognormal_traffic(2500, 6.0), max_retries=1, seed=4
    )
    first = next(incident for incident in incidents if incident.kind == "failed")
    second = [incident for incident in incidents if incident.kind == "failed"][1:2]
    assert not second or second[0].at_s > first.at_s + 60.0
    assert outcome.retries > 50
    assert outcome.left["replica_lost"] == 0 or second


def test_spot_with_enough_notice_loses_nothing() -> None:
    start = ColdStart(provision_s=60.0)
    spot = SpotInterruptions(per_unit_hour=6.0, notice_s=120.0)
    pool = Pool(kind=STEADY_REPLICA, replicas=3, max_replicas=6)
    traffic = steady_stream(3.0, 3600.0, 5000)
    outcome, incidents = run(pool, PoolLife(start=start, spot=spot), traffic)
    interrupted = [incident for incident in incidents if incident.kind == "interrupted"]
    assert len(interrupted) > 5
    assert sum(incident.lost_requests for incident in interrupted) == 0
    assert outcome.retries == 0
    assert outcome.left["done"] == len(traffic.arrival_s)
    assert outcome.gpu_hours > 3.0


def test_spot_with_short_notice_loses_what_runs_longer() -> None:
    spot = SpotInterruptions(per_unit_hour=6.0, notice_s=2.0)
    pool = Pool(kind=STEADY_REPLICA, replicas=3, max_replicas=6)
    traffic = steady_stream(3.0, 3600.0, 5000)
    outcome, incidents = run(pool, PoolLife(spot=spot), traffic, max_retries=50)
    lost = sum(incident.lost_requests for incident in incidents if incident.kind == "interrupted")
    # 5 s requests at 1/s a replica: 3 of the 5 in flight outlive 2 s of notice.
    assert lost / len([i for i in incidents if i.kind == "interrupted"]) == pytest.approx(3, abs=1.0)
    assert outcome.left["done"] == len(traffic.arrival_s)


@pytest.mark.parametrize(("surge", "unavailable", "fewest"), [(1, 0, 4), (0, 1, 3), (2, 1, 3)])
def test_rolling_upgrade_keeps_enough_serving(surge: int, unavailable: int, fewest: int) -> None:
    upgrade = RollingUpgrade(at_s=100.0, max_surge=surge, max_unavailable=unavailable)
    life = PoolLife(start=ColdStart(warm_up_s=30.0), upgrade=upgrade, grace_s=20.0)
    pool = Pool(kind=STEADY_REPLICA, replicas=4, max_replicas=8)
    outcome, incidents = run(pool, life, steady_stream(8.0, 600.0, 2000))
    assert [incident.kind for incident in incidents].count("ready") == 4
    assert [incident.kind for incident in incidents].count("upgraded") == 1
    assert outcome.samples.ready_min.min() == fewest
    assert outcome.samples.billed_max.max() <= 4 + surge + unavailable + 1
    assert outcome.left["done"] == 4800
    assert outcome.retries == 0


def test_upgrade_one_at_a_time_takes_one_start_each() -> None:
    life = PoolLife(start=ColdStart(warm_up_s=30.0), upgrade=RollingUpgrade(at_s=100.0))
    _, incidents = run(Pool(kind=STEADY_REPLICA, replicas=3, max_replicas=5), life, steady_stream(1.0, 400.0, 100))
    assert [incident.at_s for incident in incidents if incident.kind == "ready"] == [130.0, 160.0, 190.0]


def test_same_seed_same_incidents() -> None:
    life = PoolLife(failures=Failures(mean_hours=0.3), spot=SpotInterruptions(per_unit_hour=2.0))
    pool = Pool(kind=replica(), replicas=4, max_replicas=6)
    results = [run(pool, life, lognormal_traffic(5000, 8.0), seed=seed) for seed in (1, 1, 2)]
    assert results[0][1] == results[1][1]
    assert (results[0][0].e2e.histogram == results[1][0].e2e.histogram).all()
    assert results[0][1] != results[2][1]


def test_units_are_billed_while_any_replica_is_up() -> None:
    """Two replicas a node: 3 replicas are 2 nodes of 8 GPUs."""
    pool = Pool(kind=STEADY_REPLICA, replicas=3, replicas_per_unit=2, unit_gpus=8.0)
    outcome, _ = run(pool, PoolLife(), steady_stream(1.0, 3600.0, 1))
    assert outcome.gpu_hours == pytest.approx(16.0, rel=0.001)
    assert outcome.unit_hours[0] == pytest.approx(2.0, rel=0.001)
