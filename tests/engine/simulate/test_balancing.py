"""Load balancing: who gets what, and what it does to tails and hits."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica, Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import STEADY, lognormal_traffic, one_pool, replica, rows_of


def sessions(requests: int, keys: int, *, rate: float = 20.0, prompt: int = 2000):
    rng = np.random.default_rng(4)
    return batch(
        np.cumsum(rng.exponential(1 / rate, requests)),
        np.full(requests, prompt),
        np.full(requests, 20),
        key=rng.integers(0, keys, requests),
    )


def served_by(policy: str, **options: object) -> Outcome:
    return simulate(one_pool(replica(prefix_cache=True), 4, policy=policy, **options), [sessions(2000, 300)])


def test_round_robin_goes_round() -> None:
    rows, _ = rows_of(one_pool(replica(), 3, policy="round_robin"), lognormal_traffic(30, 5))
    assert rows["replica"].tolist() == [0, 1, 2] * 10


def test_least_outstanding_takes_the_free_one() -> None:
    # A request of 1 s on each; the third finds replica 0 done.
    kind = replica(coefficients=STEADY)
    traffic = batch(np.array([0.0, 0.5, 1.2]), np.ones(3), np.array([1000, 1000, 10]))
    rows, _ = rows_of(one_pool(kind, 2, policy="least_outstanding"), traffic)
    assert rows["replica"][0] != rows["replica"][1]
    assert rows["replica"][2] == rows["replica"][0]


def test_power_of_two_lies_between_random_and_least() -> None:
    rng = np.random.default_rng(9)
    jobs = 400_000
    traffic = batch(np.cumsum(rng.exponential(1 / 115.2, jobs)), rng.exponential(1e6, jobs) + 1, np.ones(jobs))
    wait = {
        policy: simulate(one_pool(BatchedReplica(token_s=1e-6), 128, policy=policy), [traffic]).e2e.mean_s
        for policy in ("round_robin", "power_of_two", "least_outstanding")
    }
    assert wait["least_outstanding"] < wait["power_of_two"] < wait["round_robin"]
    # Mitzenmacher (2001): two choices at load 0.9 keep a job 2.614 service times as servers grow.
    assert wait["power_of_two"] == pytest.approx(2.614, rel=0.03)


def test_least_kv_spreads_memory_not_requests() -> None:
    # Long prompts on one replica: the next short ones all go to the other.
    traffic = batch(np.arange(6) * 0.01 + 0.2, np.array([6000, 10, 10, 10, 10, 10]), np.full(6, 400))
    rows, _ = rows_of(one_pool(replica(), 2, policy="least_kv"), traffic)
    assert len({*rows["replica"][1:].tolist()}) == 1
    assert rows["replica"][1] != rows["replica"][0]


def test_session_affinity_keeps_a_session_on_its_replica() -> None:
    traffic = sessions(500, 40)
    rows, _ = rows_of(one_pool(replica(), 4, policy="session_affinity"), traffic)
    homes: dict[int, set[int]] = {}
    for key, home in zip(traffic.key.tolist(), rows["replica"].tolist(), strict=True):
        homes.setdefault(key, set()).add(home)
    assert all(len(home) == 1 for home in homes.values())
    assert len({next(iter(home)) for home in homes.values()}) == 4


def test_round_robin_divides_reuse_and_prefix_awareness_keeps_it() -> None:
    hits = {policy: served_by(policy).cached_input_tokens for policy in ("round_robin", "prefix_aware")}
    assert hits["prefix_aware"] > 1.3 * hits["round_robin"]


def test_the_load_cap_limits_imbalance() -> None:
    # One hot prefix: without a cap nearly everything lands on one replica.
    hot = sessions(3000, 1, rate=120.0, prompt=600)
    shares = {}
    for cap in (1.2, 100.0):
        fleet = one_pool(replica(prefix_cache=True), 4, policy="prefix_aware", load_cap=cap)
        served = simulate(fleet, [hot]).served
        shares[cap] = served.max() / served.sum()
    assert shares[100.0] > 0.9
    assert shares[1.2] < 0.5


def test_a_gateway_limit_makes_one_queue_of_many() -> None:
    """c servers behind one queue wait less than c queues: M/M/c against c times M/M/1."""
    rng = np.random.default_rng(9)
    jobs = 100_000
    traffic = batch(np.cumsum(rng.exponential(1 / 3.2, jobs)), rng.exponential(1e6, jobs) + 1, np.ones(jobs))
    kind = BatchedReplica(token_s=1e-6)
    together = simulate(one_pool(kind, 4, policy="round_robin", max_outstanding=1), [traffic]).e2e.mean_s
    one_server = simulate(one_pool(BatchedReplica(token_s=1e-6, instances=4)), [traffic]).e2e.mean_s
    assert together == pytest.approx(one_server, rel=1e-9)
    assert simulate(one_pool(kind, 4, policy="round_robin"), [traffic]).e2e.mean_s > 1.5 * together


def test_fallback_takes_what_spills_and_pays_the_way() -> None:
    kind = replica(coefficients=STEADY)
    fleet = Fleet(
        pools=[
            Pool(kind=kind, replicas=1, spill_outstanding=2, fallback=(1,)),
            Pool(kind=kind, replicas=1),
        ],
        distance_s=[[0.0, 0.05], [0.05, 0.0]],
    )
    rows, _ = rows_of(fleet, batch(np.arange(4) * 0.01, np.ones(4), np.full(4, 1000)))
    assert rows["replica"].tolist() == [0, 0, 1, 1]
    away = rows["first"][2] - rows["arrival"][2]
    assert away == pytest.approx(0.05 + 0.001, abs=1e-9)
