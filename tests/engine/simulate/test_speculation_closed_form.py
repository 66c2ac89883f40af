"""Speculative decoding in the closed form and in the simulator: one step time, two ways to the same means."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.serving import AdmissionLimits, ServingEstimate, ServingLoad, steady_state
from planner.engine.serving_regimes import RegimeCoefficients
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import ContinuousReplica
from planner.engine.simulate.traffic import batch
from planner.engine.speculation import Speculation
from planner.engine.step_time import StepCoefficients
from tests.engine.simulate.fleets import one_pool
from tests.engine.simulate.test_closed_form import DENSE, KV_BLOCKS, REQUEST_S

PROMPT, ANSWER, BUDGET, REQUESTS = 600, 300, 8192, 10_000
NOT_SECONDS = (
    "pipeline",
    "attention_ranks",
    "prompt_ranks",
    "graph_tokens",
    "graph_scatter_tokens",
    "window_tokens",
    "expert_miss_log",
)


def draft_step(share: float) -> StepCoefficients:
    """A draft whose every step takes this share of the model's."""
    scaled = {
        name: value if name in NOT_SECONDS or name.endswith("tile_tokens") else value * share
        for name, value in DENSE._asdict().items()
    }
    return StepCoefficients(**scaled)


def closed_form(rate: float, drafts: int, acceptance: float, share: float, ranks: float = 1.0) -> ServingEstimate:
    spread = {"attention_ranks": ranks, "prompt_ranks": ranks}
    columns = StepCoefficients(*[np.array([value]) for value in DENSE._replace(**spread)])
    draft = StepCoefficients(*[np.array([value]) for value in draft_step(share)._replace(**spread)])
    one = np.array([1.0])
    coefficients = RegimeCoefficients(
        step=columns,
        request_s=REQUEST_S * one,
        cohort=0 * one,
        backlog=0 * one,
        lookahead=one,
        drain=one,
        speculation=Speculation(verify=columns, draft=draft, draft_tokens=float(drafts), acceptance=acceptance),
    )
    limits = AdmissionLimits(
        kv_sequences=np.array([KV_BLOCKS * 16 / (PROMPT + ANSWER / 2)]),
        max_num_seqs=256 * one,
        max_num_batched_tokens=BUDGET * ranks * one,
    )
    load = ServingLoad(kind="open", input_tokens=float(PROMPT), output_tokens=float(ANSWER), requests_s=rate)
    return steady_state(coefficients, load, limits)


def simulated(rate: float, drafts: int, acceptance: float, share: float, ranks: float = 1.0) -> Outcome:
    arrival_s = np.cumsum(np.random.default_rng(1).exponential(1 / rate, REQUESTS))
    kind = ContinuousReplica(
        coefficients=DENSE._replace(attention_ranks=ranks, prompt_ranks=ranks),
        kv_blocks=KV_BLOCKS,
        max_num_batched_tokens=int(BUDGET * ranks),
        request_s=REQUEST_S,
        draft_tokens=drafts,
        acceptance=acceptance,
        draft_share=share,
    )
    return simulate(one_pool(kind), [batch(arrival_s, np.full(REQUESTS, PROMPT), np.full(REQUESTS, ANSWER))])


@pytest.mark.parametrize(("drafts", "acceptance", "share"), [(3, 0.7, 0.06), (4, 0.8, 0.05), (1, 0.9, 0.1)])
def test_agree_at_30_percent_of_capacity(drafts: int, acceptance: float, share: float) -> None:
    capacity = float(closed_form(1e-6, drafts, acceptance, share).capacity_requests_s[0])
    expected = closed_form(0.3 * capacity, drafts, acceptance, share)
    found = simulated(0.3 * capacity, drafts, acceptance, share)
    assert float(expected.tpot_s["mean"][0]) == pytest.approx(found.tpot.mean_s, rel=0.05)
    assert float(expected.ttft_s["mean"][0]) == pytest.approx(found.ttft.mean_s, rel=0.08)


@pytest.mark.parametrize("ranks", [2.0, 4.0, 8.0])
def test_drafts_are_verified_on_the_ranks_of_their_sequences(ranks: float) -> None:
    """A prompt stays on one attention rank and the others wait, with drafts as without; drafts spread over all."""
    capacity = float(closed_form(1e-6, 3, 0.7, 0.06, ranks).capacity_requests_s[0])
    expected = closed_form(0.3 * capacity, 3, 0.7, 0.06, ranks)
    found = simulated(0.3 * capacity, 3, 0.7, 0.06, ranks)
    assert float(expected.tpot_s["mean"][0]) == pytest.approx(found.tpot.mean_s, rel=0.05)
    assert float(expected.ttft_s["mean"][0]) == pytest.approx(found.ttft.mean_s, rel=0.08)
