"""A million jobs against queueing theory, and job by job against Lindley's recursion.

The mean wait of a million jobs itself scatters by 0.3 to 1 % at these loads, however exact the simulator is. Theory is
therefore taken at each sample's own rate and moments, and runs of several seeds are averaged: as many as it takes to
leave a standard error of a third of the 1 % asked for.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.queueing import erlang_c
from planner.engine.simulate.layout import Array
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica, ClosedLoop
from planner.engine.simulate.traffic import batch, in_batches
from tests.engine.simulate.fleets import STEADY, one_pool, replica, rows_of

JOBS = 1_000_000
TOKEN_S = 1e-3
SHAPES = ("fixed", "geometric", "bimodal")


def pollaczek_khinchine(rate: float, service_s: Array) -> float:
    """Mean wait of M/G/1: lambda E[S^2] / (2 (1 - rho))."""
    return float(rate * np.mean(service_s**2) / (2 * (1 - rate * np.mean(service_s))))


def off_erlang_c(servers: int, load: float, seed: int) -> float:
    """Relative error of the mean wait at ``servers`` instances, exponential service."""
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1 / (load * servers), JOBS))
    microseconds = np.maximum(rng.exponential(1e6, JOBS).astype(np.int64), 1)
    kind = BatchedReplica(token_s=1e-6, instances=servers)
    outcome = simulate(one_pool(kind), in_batches(batch(arrival_s, microseconds, np.ones(JOBS))))
    service_s = microseconds.mean() * 1e-6
    offered = JOBS / arrival_s[-1] * service_s
    wait_s = erlang_c(servers, offered) * service_s / (servers - offered)
    return float((outcome.e2e.mean_s - service_s) / wait_s - 1)


def decoding_jobs(shape: str, load: float, seed: int, jobs: int = JOBS) -> tuple[Array, Array]:
    """Arrivals, and lengths in tokens: 100 on average."""
    rng = np.random.default_rng(seed)
    tokens = {
        "fixed": np.full(jobs, 100),
        "geometric": rng.geometric(0.01, jobs),
        "bimodal": np.where(rng.random(jobs) < 0.9, 40, 640),
    }[shape]
    return np.cumsum(rng.exponential(100 * TOKEN_S / load, jobs)), tokens


def off_pollaczek_khinchine(shape: str, load: float, seed: int) -> float:
    """Relative error of the mean wait on the LLM loop: one sequence at a time, 1 ms a token.

    A request that finds the server idle starts at once, so nothing is lost to iteration boundaries.
    """
    arrival_s, tokens = decoding_jobs(shape, load, seed)
    kind = replica(coefficients=STEADY, max_num_seqs=1, lookahead=False)
    outcome = simulate(one_pool(kind), in_batches(batch(arrival_s, np.ones(JOBS), tokens)))
    service_s = tokens * TOKEN_S
    wait_s = pollaczek_khinchine(JOBS / arrival_s[-1], service_s)
    return float((outcome.e2e.mean_s - service_s.mean()) / wait_s - 1)


@pytest.mark.parametrize(("servers", "load", "seeds"), [(1, 0.3, 1), (1, 0.7, 1), (3, 0.8, 4), (10, 0.8, 8)])
def test_mmc(servers: int, load: float, seeds: int) -> None:
    """M/M/c on the batched server: one request a batch, c instances."""
    assert np.mean([off_erlang_c(servers, load, seed) for seed in range(seeds)]) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("shape", SHAPES)
def test_mg1_by_decoding(shape: str) -> None:
    """M/D/1 (fixed lengths), M/M/1 (geometric) and M/G/1 (bimodal)."""
    assert np.mean([off_pollaczek_khinchine(shape, 0.6, seed) for seed in range(4)]) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_job_waits_as_lindley_says(shape: str, load: float) -> None:
    """W' = max(W + S - gap, 0), job by job: what is left above is the sample's own scatter."""
    jobs = 50_000
    arrival_s, tokens = decoding_jobs(shape, load, 3, jobs)
    kind = replica(coefficients=STEADY, max_num_seqs=1, lookahead=False)
    rows, _ = rows_of(one_pool(kind), batch(arrival_s, np.ones(jobs), tokens))
    service_s = tokens * TOKEN_S
    ahead_s = np.concatenate([[0.0], np.cumsum(service_s[:-1] - np.diff(arrival_s))])
    wait_s = ahead_s - np.minimum.accumulate(ahead_s)
    np.testing.assert_allclose(rows["last"] - rows["arrival"] - service_s, wait_s, atol=1e-6)


def test_little_in_a_closed_loop() -> None:
    """N clients: throughput x (mean time in system) = N, to the edges of the run."""
    jobs = 20_000
    rng = np.random.default_rng(2)
    traffic = batch(np.zeros(jobs), rng.integers(100, 900, jobs), rng.integers(20, 300, jobs))
    outcome = simulate(one_pool(replica(), loop=ClosedLoop(clients=32)), [traffic])
    assert outcome.left["done"] == jobs
    assert outcome.requests / outcome.duration_s * outcome.e2e.mean_s == pytest.approx(32, rel=0.01)
