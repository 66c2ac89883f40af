"""The time a replica computes is a share of the time it is paid for, however its requests end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.autoscaling import Hpa
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.lifecycle import Autoscaler, ColdStart, Failures, PoolLife, SpotInterruptions
from planner.engine.simulate.merging import merge
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica, Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, lognormal_traffic, one_pool, replica

STEADY_REPLICA = replica(coefficients=STEADY)
"""An iteration takes 1 ms."""


def one_request(tokens: int) -> Any:
    return batch(np.zeros(1), np.ones(1), np.full(1, tokens))


def assert_is_a_share(outcome: Outcome) -> None:
    assert (outcome.busy_s >= 0).all()
    assert (outcome.busy_s <= outcome.rented_s + 1e-9).all()
    assert (outcome.prefill_s <= outcome.busy_s + 1e-9).all()
    assert 0.0 <= outcome.utilization <= 1.0 + 1e-12


def test_a_request_given_up_keeps_its_replica_busy_until_then() -> None:
    outcome = simulate(one_pool(STEADY_REPLICA, client_timeout_s=0.25), [one_request(1000)])
    assert outcome.left["cancelled"] == 1
    assert outcome.busy_s[0] == pytest.approx(0.25)
    assert outcome.duration_s == pytest.approx(0.25)
    assert outcome.gpu_hours == pytest.approx(0.25 / 3600)
    assert outcome.utilization == pytest.approx(1.0)


def test_half_of_the_time_is_half() -> None:
    """Two requests of half a second each, a second apart; the run ends with the second."""
    traffic = batch(np.array([0.0, 1.0]), np.ones(2), np.full(2, 500))
    outcome = simulate(one_pool(STEADY_REPLICA), [traffic])
    assert outcome.busy_s[0] == pytest.approx(1.0)
    assert outcome.utilization == pytest.approx(1.0 / 1.5)


@pytest.mark.parametrize("rate", [200.0, 400.0])
@pytest.mark.parametrize(
    ("kind", "fleet"),
    [
        ({}, {"client_timeout_s": 0.5}),
        ({}, {"client_timeout_s": 5.0}),
        ({"queue_timeout_s": 0.5}, {}),
        ({"queue_timeout_s": 0.5}, {"client_timeout_s": 2.0}),
        ({"max_waiting": 3}, {"client_timeout_s": 2.0}),
        ({"kv_blocks": 400}, {"client_timeout_s": 2.0}),
    ],
)
def test_time_outs_never_make_it_more_than_all(rate: float, kind: dict[str, Any], fleet: dict[str, Any]) -> None:
    outcome = simulate(one_pool(replica(**kind), 2, **fleet), [lognormal_traffic(1000, rate)])
    assert outcome.left["done"] < 1000
    assert_is_a_share(outcome)


@pytest.mark.parametrize("timeout_s", [None, 0.3])
def test_batches_count_while_they_run(timeout_s: float | None) -> None:
    kind = BatchedReplica(batch_s=0.2, max_batch=4, instances=2)
    traffic = batch(np.arange(200) * 0.01, np.ones(200), np.ones(200))
    outcome = simulate(one_pool(kind, client_timeout_s=timeout_s), [traffic])
    assert_is_a_share(outcome)
    assert outcome.utilization > 0.9
    assert outcome.busy_s[0] == pytest.approx(outcome.iterations * 0.2 / 2)


def test_a_lost_node_was_busy_until_it_was_lost() -> None:
    """Both kinds: a batch that never ended counts as far as it got, a run of iterations too."""
    failing = PoolLife(failures=Failures(mean_hours=0.02, repair_s=5.0))
    for kind in (replica(), BatchedReplica(batch_s=7.0, max_batch=8, instances=2)):
        pool = Pool(kind=kind, replicas=3)
        fleet = Fleet(pools=[pool], max_retries=20)
        control = FleetControl([failing], seed=3)
        outcome = simulate(fleet, [lognormal_traffic(3000, 12)], control=control)
        assert any(incident.lost_requests for incident in control.incidents)
        assert_is_a_share(outcome)
        assert outcome.utilization > 0.3


def test_what_never_ran_is_not_counted() -> None:
    """Two of ten places are used: their time alone is what the share is of."""
    scaler = Autoscaler(settings=Hpa(target=1000.0), metric="concurrency")
    pool = Pool(kind=STEADY_REPLICA, replicas=2, max_replicas=10)
    control = FleetControl([PoolLife(autoscaler=scaler)])
    busy = simulate(Fleet(pools=[pool]), [lognormal_traffic(2000, 50)], control=control)
    assert np.count_nonzero(busy.rented_s) == 2
    assert_is_a_share(busy)
    assert busy.utilization == pytest.approx(busy.busy_s.sum() / (2 * busy.rented_s[0]))


def test_spot_losses_and_scaling_stay_within_the_bill() -> None:
    scaler = Autoscaler(settings=Hpa(target=4.0, max_replicas=8), metric="utilization")
    life = PoolLife(
        start=ColdStart(provision_s=20.0), autoscaler=scaler, spot=SpotInterruptions(per_unit_hour=60.0, notice_s=5.0)
    )
    control = FleetControl([life], seed=1)
    pool = Pool(kind=replica(), replicas=2, max_replicas=8, replicas_per_unit=2)
    fleet = Fleet(pools=[pool], client_timeout_s=20.0)
    outcome = simulate(fleet, [lognormal_traffic(5000, 12)], control=control)
    assert_is_a_share(outcome)
    assert outcome.rented_s.sum() * 1.0 <= outcome.gpu_hours * 3600 + 1e-6


def test_an_autoscaler_sees_batches_as_shares_too() -> None:
    """One instance of four holds a batch: a quarter busy asks for no more than one replica."""
    scaler = Autoscaler(settings=Hpa(target=0.5, max_replicas=8), metric="utilization")
    kind = BatchedReplica(batch_s=0.9, max_batch=1, instances=4)
    control = FleetControl([PoolLife(autoscaler=scaler)])
    traffic = batch(np.arange(600) * 1.0, np.ones(600), np.ones(600))
    simulate(Fleet(pools=[Pool(kind=kind, replicas=1, max_replicas=8)]), [traffic], control=control)
    assert [incident for incident in control.incidents if incident.kind == "scaled"] == []


def test_parts_are_rented_to_the_end_of_all() -> None:
    parts = [simulate(one_pool(STEADY_REPLICA), [one_request(tokens)]) for tokens in (200, 1000)]
    merged = merge(parts)
    assert merged.rented_s.tolist() == pytest.approx([1.0, 1.0])
    assert merged.utilization == pytest.approx(0.6)
