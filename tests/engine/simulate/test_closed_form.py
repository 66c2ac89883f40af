"""The closed form of an open loop and the simulator: one step time, two ways to the same means.

At 30 % of capacity TTFT and TPOT agree within 3 %, for dense models, experts, tensor and pipeline parallelism,
attention ranks, prompts that share an iteration and prompts of several chunks, with and without asynchronous
scheduling's one iteration more, where prompts are paced by their launches or fit a captured graph. Answers of a few
tokens, and bursts of arrivals, agree less well: each test says how well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from planner.engine.serving import AdmissionLimits, ServingEstimate, ServingLoad, steady_state
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import IDLE_STEP, ContinuousReplica
from planner.engine.simulate.traffic import batch
from planner.engine.step_time import StepCoefficients
from tests.engine.simulate.fleets import one_pool

DENSE = IDLE_STEP._replace(
    dense_weights_s=4e-3,
    dense_token_s=2.3e-5,
    dense_tile_tokens=4.0,
    context_token_s=3.3e-8,
    pair_s=7e-10,
    layers_s=6e-4,
    prefill_launch_s=3.2e-3,
    step_s=4e-4,
    sequence_s=8.5e-6,
)
"""An 8B model on one recent GPU."""
STEPS = {
    "8b": DENSE,
    "70b, tensor": IDLE_STEP._replace(
        dense_weights_s=9e-3,
        dense_token_s=5e-5,
        dense_tile_tokens=8.0,
        context_token_s=2e-8,
        pair_s=1e-9,
        collective_s=2.5e-3,
        collective_token_s=6e-6,
        layers_s=1.5e-3,
        prefill_launch_s=4e-3,
        step_s=5e-4,
        sequence_s=1e-5,
    ),
    "two stages": DENSE._replace(
        pipeline=2.0, dense_weights_s=8e-3, dense_token_s=4.6e-5, collective_s=5e-5, collective_token_s=1e-7
    ),
    "experts": IDLE_STEP._replace(
        dense_weights_s=0.9e-3,
        dense_token_s=4e-6,
        expert_weights_s=14e-3,
        expert_token_s=1.2e-5,
        expert_tile_tokens=30.0,
        expert_miss_log=math.log(1 - 8 / 128),
        context_token_s=2.4e-8,
        pair_s=4e-10,
        layers_s=1.2e-3,
        prefill_launch_s=2e-3,
        step_s=5e-4,
        sequence_s=1e-5,
    ),
}
WORKLOADS = [(1000, 200, 2048), (300, 300, 8192), (700, 800, 2048), (3000, 50, 8192), (8000, 400, 8192)]
"""Prompt and answer in tokens, and the token budget of an iteration."""
REQUESTS = 20_000
REQUEST_S = 0.002
KV_BLOCKS = 25_000


def closed_form(
    step: StepCoefficients,
    prompt: int,
    answer: int,
    budget: int,
    rate: float,
    *,
    lookahead: bool = True,
    arrival_cv: float = 1.0,
) -> ServingEstimate:
    coefficients = ServingCoefficients(
        step=StepCoefficients(*[np.array([value]) for value in step]),
        request_s=np.array([REQUEST_S]),
        cohort=np.array([0.0]),
        backlog=np.array([0.0]),
        lookahead=np.array([float(lookahead)]),
        drain=np.array([1.0]),
    )
    limits = AdmissionLimits(
        kv_sequences=np.array([KV_BLOCKS * 16 / (prompt + answer / 2)]),
        max_num_seqs=np.array([256.0]),
        max_num_batched_tokens=np.array([float(budget)]),
    )
    load = ServingLoad(
        kind="open",
        input_tokens=float(prompt),
        output_tokens=float(answer),
        requests_s=rate,
        arrival_cv=arrival_cv,
    )
    return steady_state(coefficients, load, limits)


def simulated(
    step: StepCoefficients,
    prompt: int,
    answer: int,
    budget: int,
    rate: float,
    *,
    lookahead: bool = True,
    arrival_cv: float = 1.0,
) -> Outcome:
    shape = 1 / arrival_cv**2
    arrival_s = np.cumsum(np.random.default_rng(1).gamma(shape, 1 / (rate * shape), REQUESTS))
    kind = ContinuousReplica(
        coefficients=step, kv_blocks=KV_BLOCKS, max_num_batched_tokens=budget, request_s=REQUEST_S, lookahead=lookahead
    )
    traffic = batch(arrival_s, np.full(REQUESTS, prompt), np.full(REQUESTS, answer))
    return simulate(one_pool(kind), [traffic])


def both_at(
    load: float, step: StepCoefficients, prompt: int, answer: int, budget: int, **loop: Any
) -> tuple[ServingEstimate, Outcome]:
    """The closed form and the simulator at a share of the capacity that the former gives."""
    capacity = float(closed_form(step, prompt, answer, budget, 1e-6).capacity_requests_s[0])
    asked = (step, prompt, answer, budget, load * capacity)
    return closed_form(*asked, **loop), simulated(*asked, **loop)


def assert_means_agree(expected: ServingEstimate, outcome: Outcome, ttft: float = 0.03, tpot: float = 0.03) -> None:
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=ttft)
    assert expected.tpot_s["mean"][0] == pytest.approx(outcome.tpot.mean_s, rel=tpot)


@pytest.mark.parametrize(("prompt", "answer", "budget"), WORKLOADS)
@pytest.mark.parametrize("name", STEPS)
def test_agree_at_30_percent_of_capacity(name: str, prompt: int, answer: int, budget: int) -> None:
    expected, outcome = both_at(0.3, STEPS[name], prompt, answer, budget)
    assert_means_agree(expected, outcome)


RANKED = {
    "8b, two ranks": DENSE._replace(attention_ranks=2.0, prompt_ranks=2.0),
    "experts, two ranks": STEPS["experts"]._replace(attention_ranks=2.0, prompt_ranks=2.0, collective_s=1e-3),
    "experts, four ranks": STEPS["experts"]._replace(attention_ranks=4.0, prompt_ranks=4.0, collective_s=1e-3),
}


@pytest.mark.parametrize("budget", [2048, 8192])
@pytest.mark.parametrize("answer", [200, 800])
@pytest.mark.parametrize("prompt", [300, 1500, 3000, 8000])
@pytest.mark.parametrize("name", RANKED)
def test_attention_ranks_agree(name: str, prompt: int, answer: int, budget: int) -> None:
    """A prompt holds up all ranks, and others on theirs come along: for nothing, or for their experts.

    ``budget`` is one rank's: on 2,048 tokens prompts come in up to four chunks, several of them side by side.
    """
    step = RANKED[name]
    budget *= int(step.attention_ranks)
    expected, outcome = both_at(0.3, step, prompt, answer, budget)
    assert_means_agree(expected, outcome)


@pytest.mark.parametrize(("prompt", "answer"), [(8000, 100), (3000, 50), (3000, 800)])
@pytest.mark.parametrize("name", STEPS)
def test_prompts_of_several_chunks_agree_too(name: str, prompt: int, answer: int) -> None:
    """On a budget of 2,048 each prompt has iterations to itself, and the others queue."""
    expected, outcome = both_at(0.3, STEPS[name], prompt, answer, 2048)
    assert_means_agree(expected, outcome)


@pytest.mark.parametrize(("prompt", "answer"), [(100, 200), (300, 800), (700, 200), (1500, 800), (3000, 200)])
@pytest.mark.parametrize("name", [*STEPS, *RANKED])
def test_percentiles_agree(name: str, prompt: int, answer: int) -> None:
    """Prompts that fit the budget of their rank twice: half of all first tokens, and one in a hundred, come as late."""
    step = (STEPS | RANKED)[name]
    budget = 8192 * int(step.attention_ranks)
    expected, outcome = both_at(0.3, step, prompt, answer, budget)
    for statistic, quantile in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)]:
        assert expected.ttft_s[statistic][0] == pytest.approx(outcome.ttft.quantile_s(quantile), rel=0.08)
        assert expected.tpot_s[statistic][0] == pytest.approx(outcome.tpot.quantile_s(quantile), rel=0.15)


@pytest.mark.parametrize(("prompt", "answer"), [(3000, 200), (3000, 800), (8000, 200), (8000, 800)])
@pytest.mark.parametrize("name", [*STEPS, *RANKED])
def test_percentiles_of_prompts_in_chunks_agree_roughly(name: str, prompt: int, answer: int) -> None:
    step = (STEPS | RANKED)[name]
    budget = 2048 * int(step.attention_ranks)
    expected, outcome = both_at(0.3, step, prompt, answer, budget)
    for statistic, quantile in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)]:
        within = 0.18 if name in RANKED else 0.12
        assert expected.ttft_s[statistic][0] == pytest.approx(outcome.ttft.quantile_s(quantile), rel=within)


BURSTS = [
    *((name, prompt, *limits) for limits in [(0.5, 0.03, 0.12), (2.0, 0.08, 0.12), (3.0, 0.16, 0.18)]
      for name, prompt in [("8b", 300), ("8b", 700), ("experts", 700)]),
    # Long prompts that share no iteration by chance, and do in a burst.
    *(("70b, tensor", 1500, *limits) for limits in [(0.5, 0.04, 0.12), (2.0, 0.08, 0.15), (3.0, 0.16, 0.18)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "prompt", "arrival_cv", "mean", "p99"), BURSTS)
def test_bursts_and_even_gaps_agree_roughly(name: str, prompt: int, arrival_cv: float, mean: float, p99: float) -> None:
    """Gamma gaps: with CV 3 half of all requests come within a few iterations of another."""
    expected, outcome = both_at(0.3, STEPS[name], prompt, 200, 8192, arrival_cv=arrival_cv)
    assert_means_agree(expected, outcome, ttft=mean, tpot=0.06)
    assert expected.ttft_s["p99"][0] == pytest.approx(outcome.ttft.quantile_s(0.99), rel=p99)


@pytest.mark.parametrize("arrival_cv", [2.0, 3.0])
@pytest.mark.parametrize("name", ["8b", "70b, tensor", "experts"])
def test_bursts_of_prompts_in_chunks_wait_as_long(name: str, arrival_cv: float) -> None:
    """Behind each other: by the usual two moments they would wait half as long."""
    expected, outcome = both_at(0.3, STEPS[name], 3000, 200, 2048, arrival_cv=arrival_cv)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.15)


@pytest.mark.parametrize("name", STEPS)
def test_short_prompts_by_the_handful_agree(name: str) -> None:
    """100 tokens, 20 answered: most iterations carry several prompts."""
    expected, outcome = both_at(0.3, STEPS[name], 100, 20, 8192)
    assert_means_agree(expected, outcome)


LAUNCHED = {
    "8b, launched": DENSE._replace(prefill_launch_s=3e-2),
    "70b, launched": STEPS["70b, tensor"]._replace(prefill_launch_s=9e-2),
    "experts, captured": STEPS["experts"]._replace(prefill_launch_s=6e-2, graph_tokens=512.0),
}
"""The host launches a prompt's iteration kernel by kernel, as long for one prompt as for several."""


@pytest.mark.parametrize("answer", [200, 800])
@pytest.mark.parametrize("prompt", [100, 300, 700, 1500, 3000, 8000])
@pytest.mark.parametrize("name", LAUNCHED)
def test_launches_agree(name: str, prompt: int, answer: int) -> None:
    """An iteration that carries a prompt draws another that does: they last until one carries none by chance."""
    expected, outcome = both_at(0.3, LAUNCHED[name], prompt, answer, 8192)
    assert_means_agree(expected, outcome)


@pytest.mark.parametrize("budget", [2048, 8192])
@pytest.mark.parametrize("prompt", [100, 700, 1500, 3000, 8000])
@pytest.mark.parametrize(("answer", "tpot"), [(5, 0.045), (10, 0.03), (20, 0.03), (50, 0.03)])
@pytest.mark.parametrize("name", STEPS)
def test_short_answers_agree(name: str, answer: int, tpot: float, prompt: int, budget: int) -> None:
    """An answer of a few tokens ends before all that its prompt held up has passed: it meets the start of it only."""
    expected, outcome = both_at(0.3, STEPS[name], prompt, answer, budget)
    assert_means_agree(expected, outcome, tpot=tpot)


@pytest.mark.parametrize("answer", [50, 200])
@pytest.mark.parametrize("name", [*STEPS, *LAUNCHED])
def test_capacity_is_what_the_simulator_gets_through(name: str, answer: int) -> None:
    """Answers of different lengths end at any time: hardly an iteration is without a prompt.

    (Equal ones keep in step, and their prompts share launches: a queue of these gets through faster.)
    """
    step = (STEPS | LAUNCHED)[name]
    capacity = float(closed_form(step, 100, answer, 8192, 1e-6).capacity_requests_s[0])
    random = np.random.default_rng(1)
    arrival_s = np.cumsum(random.exponential(0.5 / capacity, REQUESTS))
    answers = random.integers(answer // 2, answer + answer // 2 + 1, REQUESTS)
    kind = ContinuousReplica(
        coefficients=step, kv_blocks=KV_BLOCKS, max_num_batched_tokens=8192, request_s=REQUEST_S, lookahead=True
    )
    outcome = simulate(one_pool(kind), [batch(arrival_s, np.full(REQUESTS, 100), answers)])
    within = 0.1 if name == "experts, captured" else 0.02
    assert outcome.requests / outcome.duration_s == pytest.approx(capacity, rel=within)


@pytest.mark.parametrize(("prompt", "budget"), [(700, 8192), (700, 2048), (8000, 2048)])
@pytest.mark.parametrize("answer", [2, 5])
@pytest.mark.parametrize("name", [*STEPS, *RANKED])
def test_two_tokens_agree_roughly(name: str, answer: int, prompt: int, budget: int) -> None:
    """Between two tokens there is one iteration: whether it holds others' prompts is all that counts."""
    step = (STEPS | RANKED)[name]
    budget *= int(step.attention_ranks)
    capacity = float(closed_form(step, prompt, answer, budget, 1e-6).capacity_requests_s[0])
    expected = closed_form(step, prompt, answer, budget, 0.3 * capacity)
    outcome = simulated(step, prompt, answer, budget, 0.3 * capacity)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.04)
    within = 0.25 if name in RANKED and prompt * step.attention_ranks > budget else 0.16
    assert expected.tpot_s["mean"][0] == pytest.approx(outcome.tpot.mean_s, rel=within)


@pytest.mark.parametrize("name", STEPS)
def test_alone_they_are_the_same(name: str) -> None:
    """Hardly any load: nothing is averaged, and both count the same iterations."""
    expected = closed_form(STEPS[name], 1000, 200, 2048, 1e-3)
    outcome = simulated(STEPS[name], 1000, 200, 2048, 1e-3)
    assert_means_agree(expected, outcome, 1e-3, 1e-3)


@pytest.mark.parametrize("prompt", [1000, 8000])
def test_a_lone_prompt_passes_every_stage(prompt: int) -> None:
    """Two stages: its longest chunk (here of 2,048 tokens at most) is done twice, one stage after the other."""
    whole, one = (
        simulated(step, prompt, 2, 2048, 1e-3).ttft.mean_s
        for step in (STEPS["two stages"], STEPS["two stages"]._replace(pipeline=1.0))
    )
    chunk = min(prompt, 2048) / prompt
    # One stage does all layers of a chunk at once: two pipelined stages take (1 + chunk) / 2 of that, weights apart.
    assert whole == pytest.approx(one * (1 + chunk) / 2, rel=0.12)


@pytest.mark.parametrize(("load", "within"), [(0.05, 0.02), (0.6, 0.05)])
def test_agree_beside_the_working_point(load: float, within: float) -> None:
    for prompt, answer, budget in [(1000, 200, 2048), (300, 300, 8192)]:
        expected, outcome = both_at(load, DENSE, prompt, answer, budget)
        assert_means_agree(expected, outcome, within, within)


@pytest.mark.parametrize(("prompt", "answer", "budget"), WORKLOADS)
def test_agree_without_asynchronous_scheduling(prompt: int, answer: int, budget: int) -> None:
    capacity = float(closed_form(DENSE, prompt, answer, budget, 1e-6).capacity_requests_s[0])
    ahead = closed_form(DENSE, prompt, answer, budget, 0.3 * capacity)
    expected, outcome = both_at(0.3, DENSE, prompt, answer, budget, lookahead=False)
    assert_means_agree(expected, outcome)
    assert ahead.ttft_s["mean"][0] > expected.ttft_s["mean"][0] + 0.7 * expected.terms["gemm"][0]


@pytest.mark.parametrize("arrival_cv", [0.01, 0.5, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("load", [1e-4, 0.3, 0.9, 0.999])
def test_percentiles_are_times_in_order(load: float, arrival_cv: float) -> None:
    for step in (STEPS | RANKED).values():
        for prompt, answer in [(1, 1), (100, 3), (3000, 2), (8000, 800)]:
            budget = 2048 * int(step.attention_ranks)
            capacity = float(closed_form(step, prompt, answer, budget, 1e-6).capacity_requests_s[0])
            found = closed_form(step, prompt, answer, budget, load * capacity, arrival_cv=arrival_cv)
            for statistics in (found.ttft_s, found.tpot_s):
                rising = [float(statistics[name][0]) for name in ("p50", "p90", "p95", "p99")]
                assert all(math.isfinite(value) and value >= 0 for value in rising)
                assert rising == sorted(rising)
