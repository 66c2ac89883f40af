"""Nodes that several replicas share: when a new one is there, which ones take a replica, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.autoscaling import Hpa, Keda
from planner.engine.simulate.billing import Bill
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import (
    Autoscaler,
    ColdStart,
    Failures,
    Incident,
    PoolLife,
    SpotInterruptions,
)
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, replica

KIND = replica(coefficients=STEADY, max_num_seqs=1024)
START = ColdStart(
    provision_s=120.0, image_gib=10.0, image_gib_s=0.5, weights_gib=66.0, weights_gib_s=2.0, warm_up_s=60.0
)
NODE_S, RESTART_S = 140.0, 93.0


def two_a_node(replicas: int, most: int) -> Pool:
    return Pool(kind=KIND, replicas=replicas, max_replicas=most, replicas_per_unit=2, unit_gpus=8.0)


def steady_stream(rate: float, seconds: float, tokens: int) -> Any:
    count = int(rate * seconds)
    return batch(np.arange(count) / rate, np.ones(count), np.full(count, tokens))


def run(pool: Pool, life: PoolLife, traffic: Any, **options: Any) -> tuple[Outcome, tuple[Incident, ...]]:
    control = FleetControl([life], seed=options.pop("seed", 0))
    outcome = simulate(Fleet(pools=[pool], max_retries=1000), [traffic], control=control, **options)
    return outcome, control.incidents


def of_kind(incidents: tuple[Incident, ...], kind: str) -> list[tuple[float, int | None]]:
    return [(incident.at_s, incident.replica) for incident in incidents if incident.kind == kind]


def test_both_replicas_of_a_new_node_wait_for_it() -> None:
    """38 or 39 requests in flight on 2 replicas with a target of 7 each: 6 at the first sync, on two new nodes."""
    life = PoolLife(start=START, autoscaler=Autoscaler(settings=Hpa(target=7.0), metric="concurrency"))
    _, incidents = run(two_a_node(2, 6), life, steady_stream(40.0, 290.0, 950))
    assert [(one.at_s, one.replicas) for one in incidents if one.kind == "scaled"] == [(15.0, 6)]
    there_s = 15.0 + NODE_S + RESTART_S
    assert of_kind(incidents, "ready") == [(there_s, 2), (there_s, 3), (there_s, 4), (there_s, 5)]


def test_a_replica_asked_for_while_its_node_comes_waits_for_the_rest_of_it() -> None:
    """The third at 30 s opens a node; the fourth, asked for at 60 s, has 110 s of it left and no second image."""
    life = PoolLife(start=START, autoscaler=Autoscaler(settings=Keda(target=10.0), metric="concurrency", scrape_s=1.0))
    pool = two_a_node(2, 4)
    low, high = steady_stream(25.0, 45.0, 1000), steady_stream(35.0, 300.0, 1000)
    arrival_s = np.concatenate([low.arrival_s, 45.0 + high.arrival_s])
    traffic = batch(arrival_s, np.ones(len(arrival_s)), np.full(len(arrival_s), 1000))
    _, incidents = run(pool, life, traffic)
    asked = [(one.at_s, one.replicas) for one in incidents if one.kind == "scaled"][:2]
    assert [replicas for _, replicas in asked] == [3, 4]
    first_s, second_s = (at_s for at_s, _ in asked)
    assert first_s < second_s < first_s + NODE_S
    assert of_kind(incidents, "ready")[:2] == [
        (first_s + NODE_S + RESTART_S, 2),
        (first_s + NODE_S + RESTART_S, 3),
    ]


def test_a_node_that_is_there_takes_a_replica_without_provisioning() -> None:
    life = PoolLife(start=START, autoscaler=Autoscaler(settings=Hpa(target=13.0), metric="concurrency"))
    _, incidents = run(two_a_node(3, 4), life, steady_stream(45.0, 200.0, 950))
    assert of_kind(incidents, "ready") == [(15.0 + RESTART_S, 3)]


def test_the_replicas_of_a_lost_node_come_back_on_a_spare_one_when_it_is_there() -> None:
    life = PoolLife(start=START, failures=Failures(mean_hours=0.3, repair_s=900.0, detect_s=10.0))
    _, incidents = run(two_a_node(4, 6), life, steady_stream(4.0, 1500.0, 500), seed=1)
    failed = of_kind(incidents, "failed")[:2]
    at_s = failed[0][0]
    assert [place // 2 for _, place in failed if place is not None] in ([0, 0], [1, 1])
    assert of_kind(incidents, "ready")[:2] == [(at_s + 10.0 + NODE_S + RESTART_S, place) for place in (4, 5)]


def test_nothing_starts_on_a_node_before_it_is_repaired() -> None:
    """Three on two nodes: the free place of the broken node is no place for what it lost."""
    life = PoolLife(start=START, failures=Failures(mean_hours=0.3, repair_s=900.0, detect_s=10.0))
    for seed in range(8):
        _, incidents = run(two_a_node(3, 6), life, steady_stream(3.0, 2000.0, 500), seed=seed)
        broken: dict[int, float] = {}
        for one in incidents:
            if one.replica is None:
                continue
            if one.kind == "failed":
                broken[one.replica // 2] = one.at_s + 900.0
            elif one.kind == "ready":
                assert one.at_s >= broken.get(one.replica // 2, 0.0)
        assert broken


def test_nothing_starts_on_a_node_that_is_being_taken_back() -> None:
    """The notice is longer than a restart: a replacement on the same node would be ready, and be lost with it."""
    spot = SpotInterruptions(per_unit_hour=2.0, notice_s=300.0)
    for seed in range(8):
        _, incidents = run(
            two_a_node(3, 6), PoolLife(start=START, spot=spot), steady_stream(3.0, 3000.0, 500), seed=seed
        )
        until_s: dict[int, float] = {}
        for one in incidents:
            if one.replica is None:
                continue
            if one.kind == "noticed":
                until_s[one.replica // 2] = one.at_s + 300.0
            elif one.kind == "ready":
                assert one.at_s >= until_s.get(one.replica // 2, 0.0)
        assert until_s


def test_a_replacement_of_a_noticed_node_waits_for_its_node() -> None:
    spot = SpotInterruptions(per_unit_hour=1.0, notice_s=30.0)
    _, incidents = run(two_a_node(2, 4), PoolLife(start=START, spot=spot), steady_stream(3.0, 4000.0, 500), seed=2)
    noticed_s = of_kind(incidents, "noticed")[0][0]
    assert of_kind(incidents, "ready")[:2] == [(noticed_s + NODE_S + RESTART_S, place) for place in (2, 3)]


def test_image_and_provisioning_are_the_nodes_part_of_a_cold_start() -> None:
    assert (START.node_s, START.restart_s, START.cold_s) == (NODE_S, RESTART_S, NODE_S + RESTART_S)


@pytest.mark.parametrize("each", [1, 2, 4])
def test_lost_nodes_are_counted_as_nodes(each: int) -> None:
    life = PoolLife(
        start=START, failures=Failures(mean_hours=0.3, repair_s=300.0), spot=SpotInterruptions(per_unit_hour=2.0)
    )
    pool = Pool(kind=KIND, replicas=8, max_replicas=16, replicas_per_unit=each, unit_gpus=8.0)
    control = FleetControl([life], seed=1)
    simulate(Fleet(pools=[pool], max_retries=1000), [steady_stream(2.0, 3000.0, 500)], control=control)
    happened = control.happened
    for kind in ("failed", "noticed", "interrupted", "repaired"):
        of_nodes = {(one.at_s, one.node) for one in happened.kept if one.kind == kind}
        assert happened.counts[kind] == len(of_nodes) > 0
        assert happened.rows[kind] == len([one for one in happened.kept if one.kind == kind])
        assert {one.node == one.replica // each * each for one in happened.kept if one.replica is not None} == {True}
    assert (happened.rows["failed"] > happened.counts["failed"]) == (each > 1)


@pytest.mark.parametrize(("replicas", "each", "rented"), [(1, 2, 2), (3, 2, 4), (4, 2, 4), (5, 8, 8), (3, 1, 3)])
def test_billed_is_what_the_rented_nodes_have_room_for(replicas: int, each: int, rented: int) -> None:
    pool = Pool(kind=KIND, replicas=replicas, replicas_per_unit=each)
    outcome = simulate(Fleet(pools=[pool]), [steady_stream(1.0, 100.0, 10)], lasts_s=3600.0)
    assert (outcome.samples.ready == replicas).all()
    assert (outcome.samples.billed == rented).all()
    assert outcome.gpu_hours == rented


def test_the_area_under_billed_is_the_bill() -> None:
    """Up and down between one and eight for three hours, two a node of 8 GPUs: each replica's room is 4 of them."""
    scaler = Autoscaler(settings=Hpa(target=6.0, max_replicas=8), metric="concurrency")
    busy, quiet = steady_stream(40.0, 1800.0, 1000), steady_stream(2.0, 1800.0, 1000)
    arrival_s = np.concatenate([busy.arrival_s, 1800 + quiet.arrival_s, 3600 + busy.arrival_s, 5400 + quiet.arrival_s])
    traffic = batch(arrival_s, np.ones(len(arrival_s)), np.full(len(arrival_s), 1000))
    outcome, _ = run(two_a_node(1, 8), PoolLife(start=START, autoscaler=scaler), traffic, lasts_s=10_800.0)
    assert outcome.samples.billed.min() == 2
    assert outcome.samples.billed.max() == 8
    assert outcome.samples.billed.sum() * outcome.samples.bin_s / 3600 * 4 == pytest.approx(outcome.gpu_hours, rel=0.01)


def test_which_replicas_have_a_rented_node() -> None:
    bill = Bill(Fleet(pools=[two_a_node(1, 5)]))
    bill.begin(3, 0.0)
    assert bill.are_rented(np.arange(5)).tolist() == [False, False, True, True, False]
    assert bill.unit_hours(3600.0).tolist() == pytest.approx([1.0])
