"""The compiled loop against the plain one: same requests, same times, same preemptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.reference import plain_replicas, plain_requests, simulate_plainly
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import EIGHT_B, assert_as_plain, lognormal_traffic, one_pool, replica, rows_of

CASES: dict[str, tuple[int, float, dict[str, Any]]] = {
    "roomy": (1, 10, {"lookahead": False}),
    "lookahead": (1, 10, {}),
    "batch limit": (1, 40, {"max_num_seqs": 24, "max_num_batched_tokens": 2048}),
    "preemption": (1, 40, {"kv_blocks": 1500, "max_num_batched_tokens": 2048}),
    "first chunk admits": (1, 40, {"kv_blocks": 1500, "max_num_batched_tokens": 2048, "reserve_prompt": False}),
    "tight, three replicas": (3, 80, {"kv_blocks": 700, "max_num_batched_tokens": 512, "reserve_prompt": False}),
    "one token a block": (3, 80, {"kv_blocks": 9000, "max_num_batched_tokens": 512, "block_tokens": 1}),
    "two stages": (1, 20, {"coefficients": EIGHT_B._replace(pipeline=2.0), "max_num_batched_tokens": 512}),
    "large blocks": (2, 60, {"kv_blocks": 90, "block_tokens": 256, "reserve_prompt": False}),
}


@pytest.mark.parametrize("policy", ["round_robin", "least_outstanding"])
@pytest.mark.parametrize("case", CASES)
def test_every_request_as_in_the_plain_loop(case: str, policy: str) -> None:
    replicas, rate, changes = CASES[case]
    traffic = lognormal_traffic(250, rate)
    kind = replica(**changes)
    rows, outcome = rows_of(one_pool(kind, replicas, policy=policy), traffic)
    requests, plain = plain_requests(traffic), plain_replicas(kind, replicas)
    simulate_plainly(plain, requests, least_outstanding=policy == "least_outstanding")
    assert_as_plain(rows, outcome, requests, plain)
    if case in ("preemption", "first chunk admits", "tight, three replicas", "large blocks"):
        assert outcome.preemptions > 0


def test_a_lone_request_takes_its_prefill_and_one_step_a_token() -> None:
    from_step = EIGHT_B
    rows, _ = rows_of(one_pool(replica()), batch(np.array([5.0]), np.array([1000]), np.array([3])))
    prefill = 2.4e-5 * 1016
    gemm = (from_step.dense_weights_s**4 + prefill**4) ** 0.25
    busy = gemm + 1e-9 * 1000 * 1001 / 2
    # The host's launches (1 ms) are a floor under the GPU's work.
    first = (busy**4 + 1e-3**4) ** 0.25 + 4e-4
    assert rows["first"][0] - 5.0 == pytest.approx(first, rel=1e-12)
    small = (from_step.dense_weights_s**4 + (2.4e-5 * 17) ** 4) ** 0.25 + 4e-4 + 2e-6
    decodes = 2 * small + 3.2e-8 * (1001 + 1002)
    assert rows["last"][0] - rows["first"][0] == pytest.approx(decodes, rel=1e-9)
