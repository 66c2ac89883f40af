"""The simulator's figures of docs/performance.md, on one core, compiled and warm.

The replica is an 8B model on one recent GPU; traffic is generated: lognormal lengths, Poisson arrivals. The
plain loop is the same scheduler in plain Python, one iteration after another, on the head of the same traffic.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.reference import plain_replicas, plain_requests, simulate_plainly
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import IDLE_STEP, ClosedLoop, ContinuousReplica, Fleet, Pool
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.simulate.warm_up import warm_up
from planner.engine.simulate.workload_model import generate
from planner.services.figure import Figure

REPLICAS = 8
REPLICA = ContinuousReplica(
    coefficients=IDLE_STEP._replace(
        dense_weights_s=0.0052,
        dense_token_s=2.4e-5,
        context_token_s=3.2e-8,
        pair_s=1e-9,
        step_s=4e-4,
        sequence_s=2e-6,
        prefill_launch_s=1e-3,
    ),
    kv_blocks=28_000,
)
CONVERSATIONS = TrafficQuestion(
    requests_per_second=5.53, hours=48, input_median=800, input_sigma=0.86, output_median=130, output_sigma=0.98
)
"""Rate and mean lengths of a public conversation trace (Azure LLM inference trace 2023: 5.53/s, 1155 in, 211 out)."""
CONVERSATION_REQUESTS = 19_366
BUSY = TrafficQuestion(requests_per_second=60, hours=8784)
CLIENTS = 256
PLAIN_REQUESTS = 400
ROUNDS = 5
MIB = 2**20


def simulation_figures() -> Iterator[Figure]:
    """Every figure of the simulator."""
    warm_up()
    conversations = list(_requests(CONVERSATIONS, CONVERSATION_REQUESTS))
    yield Figure(
        name=f"simulation of {CONVERSATION_REQUESTS:,} conversations on 8 replicas",
        value=statistics.median(_seconds(conversations) for _ in range(ROUNDS)) * 1e3,
        unit="ms",
        target=150,
    )
    million = list(_requests(BUSY, 1_000_000))
    seconds = statistics.median(_seconds(million) for _ in range(3))
    yield Figure(name="simulation of a million requests on 8 replicas", value=seconds, unit="s", target=6)
    compiled, plain = 1_000_000 / seconds, _plain_requests_per_s(million[0])
    yield Figure(
        name="simulated requests a second", value=compiled, unit="/s", target=1_000_000 / 6, larger_is_better=True
    )
    yield Figure(
        name=f"... over the plain loop's {plain:,.0f}/s",
        value=compiled / plain,
        unit="x",
        target=100,
        larger_is_better=True,
    )
    waiting = _closed_batches(million)
    yield Figure(
        name=f"... in a closed loop of {CLIENTS} clients",
        value=statistics.median(_seconds(waiting, ClosedLoop(clients=CLIENTS)) for _ in range(3)),
        unit="s",
        target=6,
    )
    del million, waiting
    yield Figure(name="memory growth over 10 million requests", value=_growth_mib(), unit="MiB", target=1024)


def _requests(question: TrafficQuestion, most: int) -> Iterator[Traffic]:
    return generate(question.model(), duration_s=question.duration_s, seed=question.seed, most_requests=most)


def _closed_batches(batches: list[Traffic]) -> list[Traffic]:
    """The same requests, each to be sent as soon as a client is free."""
    return [each._replace(arrival_s=np.zeros(len(each.arrival_s))) for each in batches]


def _run(batches: Iterator[Traffic] | list[Traffic], loop: ClosedLoop | None = None) -> Outcome:
    return simulate(Fleet(pools=[Pool(kind=REPLICA, replicas=REPLICAS)], loop=loop), batches)


def _seconds(batches: list[Traffic], loop: ClosedLoop | None = None) -> float:
    start = time.process_time()
    outcome = _run(batches, loop)
    if outcome.left["done"] != outcome.requests:
        raise RuntimeError(f"{outcome.left}")
    return time.process_time() - start


def _plain_requests_per_s(traffic: Traffic) -> float:
    """The plain loop on the first requests."""
    requests, replicas = plain_requests(traffic, PLAIN_REQUESTS), plain_replicas(REPLICA, REPLICAS)
    start = time.process_time()
    simulate_plainly(replicas, requests, least_outstanding=True)
    return len(requests) / (time.process_time() - start)


def _growth_mib() -> float:
    """Resident memory now, against the most there was during the run, MiB."""
    before = _resident_mib()
    _run(_requests(BUSY, 10_000_000))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (MIB if sys.platform == "darwin" else 1024)
    return max(0.0, peak - before)


def _resident_mib() -> float:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0.0
    return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / MIB
