"""Small fleets and traffic that the simulator's tests share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.engine.simulate.layout import Array, Traffic
from planner.engine.simulate.reference import ReferenceReplica, ReferenceRequest
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import IDLE_STEP, ContinuousReplica, Fleet, Pool
from planner.engine.simulate.traffic import batch

EIGHT_B = IDLE_STEP._replace(
    dense_weights_s=0.0052,
    dense_token_s=2.4e-5,
    dense_tile_tokens=16.0,
    context_token_s=3.2e-8,
    pair_s=1e-9,
    step_s=4e-4,
    sequence_s=2e-6,
    prefill_launch_s=1e-3,
)
"""About an 8B model on one recent GPU."""
STEADY = IDLE_STEP._replace(step_s=0.001)
"""Every iteration takes 1 ms, whatever is in it: service times are whole numbers of milliseconds."""


def replica(**changes: Any) -> ContinuousReplica:
    """An 8B model's replica with a roomy KV cache, unless changed."""
    given: dict[str, Any] = {"coefficients": EIGHT_B, "kv_blocks": 28_000, **changes}
    return ContinuousReplica(**given)


def lognormal_traffic(
    requests: int, rate: float, *, seed: int = 7, inputs: float = 400, outputs: float = 90
) -> Traffic:
    """Poisson arrivals, lognormal lengths."""
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1 / rate, requests))
    tokens = [np.log(inputs), np.log(outputs)]
    lengths = [rng.lognormal(mean, 0.9, requests).astype(np.int64) + 1 for mean in tokens]
    return batch(arrival_s, np.minimum(lengths[0], 6000), np.minimum(lengths[1], 1000))


def rows_of(fleet: Fleet, traffic: Traffic, **options: Any) -> tuple[Array, Outcome]:
    """Run, and give one row per request in order of request."""
    kept: list[Array] = []
    outcome = simulate(fleet, [traffic], rows=lambda rows: kept.append(rows.copy()), **options)
    rows = np.concatenate(kept)
    return rows[np.argsort(rows["request"])], outcome


def one_pool(kind: Any, replicas: int = 1, **options: Any) -> Fleet:
    """A fleet of one pool; ``policy`` is the pool's, the rest the fleet's."""
    pool = {name: options.pop(name) for name in ("policy", "load_cap", "max_outstanding") if name in options}
    return Fleet(pools=[Pool(kind=kind, replicas=replicas, **pool)], **options)


def assert_as_plain(
    rows: Array, outcome: Outcome, requests: Sequence[ReferenceRequest], replicas: Sequence[ReferenceReplica]
) -> None:
    """The compiled loop's rows are the plain loop's requests: same places, same times, same preemptions."""
    assert [row["replica"] for row in rows] == [request.replica for request in requests]
    np.testing.assert_allclose(rows["arrival"], [request.arrival_s for request in requests], atol=1e-9)
    np.testing.assert_allclose(rows["first"], [request.first_s + request.fill_s for request in requests], atol=1e-9)
    np.testing.assert_allclose(rows["last"], [request.last_s + request.fill_s for request in requests], atol=1e-9)
    assert outcome.preemptions == sum(one.preemptions for one in replicas)
    assert all(one.free == one.blocks for one in replicas)
