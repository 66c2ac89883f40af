"""Where a run ends: with its last answer, and not before the time that it was asked to last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.autoscaling import Hpa, Keda
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import Autoscaler, ColdStart, Failures, Incident, PoolLife, RollingUpgrade
from planner.engine.simulate.merging import merge
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import EverythingUp, simulate
from planner.engine.simulate.setup import ClosedLoop, Fleet, Pool
from planner.engine.simulate.traffic import batch, empty_batch
from tests.engine.simulate.fleets import STEADY, lognormal_traffic, one_pool, replica

HOUR = 3600.0
STEADY_REPLICA = replica(coefficients=STEADY, max_num_seqs=1024)


def requests_at(*arrival_s: float, tokens: int = 1000) -> Any:
    """One second of answer each."""
    return batch(np.array(arrival_s), np.ones(len(arrival_s)), np.full(len(arrival_s), tokens))


def controlled(pool: Pool, life: PoolLife, traffic: Any, lasts_s: float) -> tuple[Outcome, tuple[Incident, ...]]:
    control = FleetControl([life], seed=3)
    return simulate(Fleet(pools=[pool]), [traffic], control=control, lasts_s=lasts_s), control.incidents


def kinds(incidents: tuple[Incident, ...]) -> list[tuple[float, str]]:
    return [(incident.at_s, incident.kind) for incident in incidents]


@pytest.mark.parametrize("control", [EverythingUp, lambda: FleetControl([PoolLife()])])
@pytest.mark.parametrize("arrivals", [(), (1500.0,), (0.0, 3598.5)])
def test_an_hour_costs_an_hour_of_the_fleet(control: Any, arrivals: tuple[float, ...]) -> None:
    """Whether nobody comes, one comes, or the last answer is there just before it is over."""
    pool = Pool(kind=STEADY_REPLICA, replicas=3, replicas_per_unit=2, unit_gpus=8.0)
    outcome = simulate(Fleet(pools=[pool]), [requests_at(*arrivals)], control=control(), lasts_s=HOUR)
    assert (outcome.begins_s, outcome.duration_s, outcome.end_s) == (0.0, HOUR, HOUR)
    assert outcome.unit_hours.tolist() == [2.0]
    assert outcome.gpu_hours == 16.0
    assert outcome.rented_s.tolist() == [HOUR] * 3
    assert outcome.left["done"] == len(arrivals)
    assert outcome.utilization == pytest.approx(len(arrivals) / (3 * HOUR), rel=0.01)


def test_no_batch_at_all_is_an_hour_too() -> None:
    assert simulate(one_pool(replica(), 2), [], lasts_s=HOUR).gpu_hours == 2.0
    assert simulate(one_pool(replica(), 2), [empty_batch()]).gpu_hours == 0.0


def test_the_last_answer_is_waited_for() -> None:
    outcome = simulate(one_pool(STEADY_REPLICA), [requests_at(0.0, 3599.5)], lasts_s=HOUR)
    assert outcome.end_s == pytest.approx(3600.5, abs=0.01)
    assert outcome.gpu_hours == pytest.approx(3600.5 / HOUR, abs=1e-5)
    assert outcome.left["done"] == 2


def test_times_of_charts_go_to_the_end() -> None:
    outcome = simulate(one_pool(STEADY_REPLICA, 2), [requests_at(10.0)], lasts_s=HOUR)
    for line in (outcome.timeline, outcome.samples):
        assert line.bin_s == 8.0
    assert len(outcome.timeline.arrived) == len(outcome.samples.ready) == HOUR / 8.0
    assert outcome.timeline.arrived.sum() == outcome.timeline.done.sum() == 1
    assert (outcome.samples.ready == 2).all()
    assert (outcome.samples.billed == 2).all()


@pytest.mark.parametrize("lasts_s", [0.5, 480.0, 480.5, 7 * 86_400.0])
def test_bins_cover_any_time_asked_for(lasts_s: float) -> None:
    outcome = simulate(one_pool(STEADY_REPLICA), [empty_batch()], lasts_s=lasts_s)
    for line, column in ((outcome.timeline, outcome.timeline.arrived), (outcome.samples, outcome.samples.ready)):
        assert len(column) == math.ceil(lasts_s / line.bin_s) <= 480
    assert outcome.gpu_hours == lasts_s / HOUR


def test_latencies_are_those_of_the_same_requests_without_a_time() -> None:
    """The tail adds nothing to what happened to requests, to the bit."""
    fleet, traffic = one_pool(replica(kv_blocks=1500), 2, slo_ttft_s=0.5), lognormal_traffic(3000, 20)
    alone, asked = simulate(fleet, [traffic]), simulate(fleet, [traffic], lasts_s=HOUR)
    for name in ("ttft", "tpot", "e2e"):
        assert getattr(alone, name).total == getattr(asked, name).total
        assert (getattr(alone, name).histogram == getattr(asked, name).histogram).all()
    assert (alone.left, alone.good, alone.iterations) == (asked.left, asked.good, asked.iterations)
    assert (alone.busy_s == asked.busy_s).all()
    assert alone.end_s < HOUR == asked.end_s


def test_a_time_that_is_over_before_the_last_answer_changes_nothing_but_the_beginning() -> None:
    fleet, traffic = one_pool(replica(kv_blocks=1500), 2), lognormal_traffic(3000, 20)
    alone, asked = simulate(fleet, [traffic]), simulate(fleet, [traffic], lasts_s=100.0)
    assert alone.end_s == asked.end_s == asked.duration_s
    assert alone.begins_s == traffic.arrival_s[0] > asked.begins_s == 0.0
    assert alone.gpu_hours == asked.gpu_hours
    assert (alone.samples.running == asked.samples.running).all()
    assert (alone.timeline.done == asked.timeline.done).all()


def test_an_autoscaled_fleet_shrinks_when_it_has_nothing_to_do() -> None:
    """Two in flight on each of 4 at 10 s; from the first sync (15 s) on one is enough, the 4 count for 300 s more."""
    scaler = Autoscaler(settings=Hpa(target=10.0), metric="concurrency")
    pool = Pool(kind=STEADY_REPLICA, replicas=4, max_replicas=8)
    life = PoolLife(autoscaler=scaler)
    outcome, incidents = controlled(pool, life, requests_at(*[10.0] * 8), HOUR)
    assert kinds(incidents) == [(315.0, "scaled")]
    assert outcome.gpu_hours == pytest.approx((HOUR + 3 * 315.0) / HOUR)
    assert (outcome.samples.ready[0], outcome.samples.ready[-1]) == (4, 1)
    short, nothing = controlled(pool, life, requests_at(*[10.0] * 8), 0.0)
    assert kinds(nothing) == []
    assert short.gpu_hours == pytest.approx(4 * 11.0 / HOUR, rel=1e-3)


def test_keda_goes_back_to_zero_after_the_last_answer() -> None:
    """Woken at the poll of 120 s, 60 s of start, one answer; last seen active at 180 s, so zero at 480 s."""
    scaler = Autoscaler(settings=Keda(target=5.0, max_replicas=4), metric="concurrency")
    pool = Pool(kind=STEADY_REPLICA, replicas=0, max_replicas=4)
    life = PoolLife(start=ColdStart(provision_s=60.0), autoscaler=scaler)
    outcome, incidents = controlled(pool, life, requests_at(100.0), HOUR)
    assert [(each.at_s, each.replicas) for each in incidents if each.kind == "scaled"] == [(120.0, 1), (480.0, 0)]
    assert outcome.gpu_hours == pytest.approx(360.0 / HOUR)
    assert outcome.duration_s == HOUR


def test_nodes_fail_and_are_repaired_after_the_last_answer() -> None:
    life = PoolLife(failures=Failures(mean_hours=2.0, repair_s=600.0))
    pool = Pool(kind=STEADY_REPLICA, replicas=2)
    _, incidents = controlled(pool, life, requests_at(0.0), 24 * HOUR)
    failed = [incident.at_s for incident in incidents if incident.kind == "failed"]
    assert len(failed) > 5
    assert min(failed) > 2.0
    assert sum(incident.kind == "repaired" for incident in incidents) >= len(failed) - 2
    assert all(incident.at_s < 24 * HOUR for incident in incidents)
    outcome, nothing = controlled(pool, life, requests_at(0.0), 0.0)
    assert len(nothing) == 0
    assert outcome.end_s == pytest.approx(1.0, abs=0.01)
    # Whoever is broken is not paid for: two replicas less ten minutes for each failure.
    long, _ = controlled(pool, life, requests_at(0.0), 24 * HOUR)
    down_s = sum(min(600.0, 24 * HOUR - at_s) for at_s in failed)
    assert long.gpu_hours == pytest.approx(48.0 - down_s / HOUR)


def test_an_upgrade_happens_at_its_time_whoever_is_there() -> None:
    life = PoolLife(start=ColdStart(warm_up_s=30.0), upgrade=RollingUpgrade(at_s=1000.0))
    pool = Pool(kind=STEADY_REPLICA, replicas=3, max_replicas=5)
    _, incidents = controlled(pool, life, requests_at(0.0), HOUR)
    ready = [(1030.0, "ready"), (1060.0, "ready"), (1090.0, "ready")]
    assert kinds(incidents) == [*ready, (1090.0, "upgraded")]


def test_what_nobody_can_serve_waits_until_the_end() -> None:
    outcome, _ = controlled(Pool(kind=STEADY_REPLICA, replicas=0), PoolLife(), requests_at(1.0), HOUR)
    assert (outcome.left["unfinished"], outcome.end_s, outcome.gpu_hours) == (1, HOUR, 0.0)
    assert outcome.samples.waiting[-1] == 1


def test_an_autoscaler_goes_on_for_requests_that_nothing_serves() -> None:
    """Longer than the day after which a run gives up: a run that was to last so long lasts so long."""
    scaler = Autoscaler(settings=Hpa(target=1.0, max_replicas=2), metric="queue", scrape_s=600.0)
    life = PoolLife(start=ColdStart(provision_s=1e9), autoscaler=scaler)
    outcome, _ = controlled(Pool(kind=STEADY_REPLICA, replicas=0, max_replicas=2), life, requests_at(1.0), 48 * HOUR)
    assert outcome.left["unfinished"] == 1
    assert outcome.end_s == 48 * HOUR


def test_clients_that_pause_past_the_end_leave_a_fleet_that_is_paid_for() -> None:
    loop = ClosedLoop(clients=3, think_s=1e7, until_s=HOUR)
    outcome = simulate(one_pool(STEADY_REPLICA, 2, loop=loop), [requests_at(*[0.0] * 50)], lasts_s=HOUR)
    assert outcome.left["unfinished"] == 0
    assert (outcome.end_s, outcome.gpu_hours) == (HOUR, 2.0)


def test_clients_that_run_out_of_requests_end_the_run() -> None:
    """Nothing says what they would have sent then."""
    loop = ClosedLoop(clients=1, until_s=HOUR)
    outcome = simulate(one_pool(STEADY_REPLICA, loop=loop), [requests_at(*[0.0] * 10)], lasts_s=HOUR)
    assert outcome.left["done"] == 10
    assert outcome.end_s == pytest.approx(10.0, abs=0.1)


def test_parts_that_end_apart_are_the_run_they_are_parts_of() -> None:
    """Turns of a round-robin gateway: one part's answers come after the time asked for, another has no requests."""
    traffic = requests_at(1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 3599.9)
    whole = simulate(one_pool(STEADY_REPLICA, 4, policy="round_robin"), [traffic], lasts_s=HOUR)
    parts = []
    for part in range(4):
        own = traffic.arrival_s[part::4]
        parts.append(simulate(one_pool(STEADY_REPLICA), [requests_at(*own)], lasts_s=HOUR))
    parts.append(simulate(one_pool(STEADY_REPLICA), [empty_batch()], lasts_s=HOUR))
    assert [part.end_s for part in parts].count(HOUR) == 4
    for several, replicas in ((parts[:4], 4), (parts, 5)):
        merged = merge(several)
        assert (merged.begins_s, merged.duration_s) == (whole.begins_s, whole.duration_s)
        assert merged.gpu_hours == pytest.approx(replicas * whole.end_s / HOUR, rel=1e-12)
        assert (merged.timeline.done == whole.timeline.done).all()
        assert merged.e2e.total == whole.e2e.total
        assert (merged.samples.billed == replicas).all()
        assert merged.samples.bin_s == whole.samples.bin_s
    idle = merge([parts[-1], parts[-1]])
    assert (idle.gpu_hours, idle.duration_s) == (2.0, HOUR)
