"""A million jobs against queueing theory, taken at the sample's own rate and moments."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.queueing import erlang_c
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica
from planner.engine.simulate.traffic import batch, in_batches
from tests.engine.simulate.fleets import STEADY, one_pool, replica

JOBS = 1_000_000


def pollaczek_khinchine(rate: float, service_s: np.ndarray) -> float:
    """Mean wait of M/G/1: lambda E[S^2] / (2 (1 - rho))."""
    return float(rate * np.mean(service_s**2) / (2 * (1 - rate * np.mean(service_s))))


@pytest.mark.parametrize(("servers", "load"), [(1, 0.3), (1, 0.7), (3, 0.8), (10, 0.8)])
def test_mmc(servers: int, load: float) -> None:
    """M/M/c on the batched server with one request a batch and c instances."""
    rng = np.random.default_rng(11)
    arrival_s = np.cumsum(rng.exponential(1 / (load * servers), JOBS))
    microseconds = np.maximum(rng.exponential(1e6, JOBS).astype(np.int64), 1)
    kind = BatchedReplica(token_s=1e-6, instances=servers)
    outcome = simulate(one_pool(kind), in_batches(batch(arrival_s, microseconds, np.ones(JOBS))))
    service_s = microseconds.mean() * 1e-6
    offered = JOBS / arrival_s[-1] * service_s
    wait_s = erlang_c(servers, offered) * service_s / (servers - offered)
    assert outcome.e2e.mean_s - service_s == pytest.approx(wait_s, rel=0.01)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("shape", ["fixed", "geometric", "bimodal"])
def test_mg1_by_decoding(shape: str, load: float) -> None:
    """M/D/1, M/M/1 (geometric lengths) and M/G/1 on the LLM loop: one sequence at a time, 1 ms a token.

    A request that finds the server idle starts at once, so nothing is lost to iteration boundaries.
    """
    rng = np.random.default_rng(5)
    tokens = {
        "fixed": np.full(JOBS, 100),
        "geometric": rng.geometric(0.01, JOBS),
        "bimodal": np.where(rng.random(JOBS) < 0.9, 40, 640),
    }[shape]
    arrival_s = np.cumsum(rng.exponential(0.1 / load, JOBS))
    kind = replica(coefficients=STEADY, max_num_seqs=1, lookahead=False)
    outcome = simulate(one_pool(kind), in_batches(batch(arrival_s, np.ones(JOBS), tokens)))
    service_s = tokens * 1e-3
    wait_s = pollaczek_khinchine(JOBS / arrival_s[-1], service_s)
    assert outcome.e2e.mean_s - service_s.mean() == pytest.approx(wait_s, rel=0.01)


def test_little_in_a_closed_loop() -> None:
    """N clients: throughput x (mean time in system) = N, to the edges of the run."""
    jobs = 20_000
    rng = np.random.default_rng(2)
    traffic = batch(np.zeros(jobs), rng.integers(100, 900, jobs), rng.integers(20, 300, jobs))
    outcome = simulate(one_pool(replica(), clients=32), [traffic])
    assert outcome.left["done"] == jobs
    assert outcome.requests / outcome.duration_s * outcome.e2e.mean_s == pytest.approx(32, rel=0.01)
