"""Split pools in the search and in the simulator: the same step time, two ways to the same means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.serving import AdmissionLimits, ServingLoad
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_split import SplitEstimate, SplitPools, split_state
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import ContinuousReplica, Fleet, Pool
from planner.engine.simulate.traffic import batch
from planner.engine.step_time import StepCoefficients
from tests.engine.simulate.test_closed_form import DENSE, KV_BLOCKS, REQUEST_S

PROMPT, ANSWER, BUDGET, REQUESTS = 2000, 200, 2048, 10_000
PREFILL, DECODE = 3, 2
TRANSFER_S = 5e-3


def law(rate: float) -> SplitEstimate:
    columns: dict[str, Any] = {name: np.array([0.0]) for name in ("cohort", "backlog", "lookahead")}
    c = ServingCoefficients(
        step=StepCoefficients(*[np.array([value]) for value in DENSE]),
        request_s=np.array([REQUEST_S]),
        drain=np.array([1.0]),
        **columns,
    )
    limits = AdmissionLimits(kv_sequences=150.0, max_num_seqs=256.0, max_num_batched_tokens=float(BUDGET))
    pools = SplitPools(
        prefill_replicas=float(PREFILL), decode_replicas=float(DECODE), transfer_bytes=TRANSFER_S, transfer_bytes_s=1.0
    )
    load = ServingLoad(
        kind="open", input_tokens=float(PROMPT), output_tokens=float(ANSWER), requests_s=np.array([rate])
    )
    return split_state(c, load, limits, pools)


def simulated(rate: float) -> Outcome:
    arrival_s = np.cumsum(np.random.default_rng(1).exponential(1 / rate, REQUESTS))
    common: dict[str, Any] = {
        "coefficients": DENSE,
        "kv_blocks": KV_BLOCKS,
        "max_num_batched_tokens": BUDGET,
        "request_s": REQUEST_S,
        "lookahead": False,
    }
    prefill = ContinuousReplica(role="prefill", transfer_s_per_token=TRANSFER_S / PROMPT, **common)
    decode = ContinuousReplica(role="decode", **common)
    fleet = Fleet(pools=[Pool(kind=prefill, replicas=PREFILL, decode_pool=1), Pool(kind=decode, replicas=DECODE)])
    return simulate(fleet, [batch(arrival_s, np.full(REQUESTS, PROMPT), np.full(REQUESTS, ANSWER))])


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_agree_below_saturation(share: float) -> None:
    """The first token counts when the side that decodes has the KV, which sends it on."""
    prompt_s = float(law(1e-3).ttft_s[0]) - TRANSFER_S - REQUEST_S
    rate = share * PREFILL / prompt_s
    expected, found = law(rate), simulated(rate)
    assert float(expected.ttft_s[0]) == pytest.approx(found.ttft.mean_s, rel=0.1)
    assert float(expected.tpot_s[0]) == pytest.approx(found.tpot.mean_s, rel=0.03)
    whole = float(expected.ttft_s[0] + (ANSWER - 1) * expected.tpot_s[0])
    assert whole == pytest.approx(found.ttft.mean_s + (ANSWER - 1) * found.tpot.mean_s, rel=0.05)
