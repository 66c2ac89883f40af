"""Answers of few tokens: the closed form of an open loop and the simulator, where an answer ends almost at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.engine.serving_shared import MOST_COUNTED, Company
from tests.engine.simulate.test_closed_form import LAUNCHED, RANKED, STEPS, assert_means_agree, both_at

FEW_EXPERTS = STEPS["experts"]._replace(
    expert_weights_s=30e-3, expert_token_s=2e-4, expert_miss_log=math.log(1 - 2 / 8), expert_tile_tokens=8.0
)
"""Two of eight: an iteration with prompts reads them all, one with a sequence or two hardly half."""


@pytest.mark.parametrize("budget", [2048, 8192])
@pytest.mark.parametrize("prompt", [100, 700, 1500, 3000, 8000])
@pytest.mark.parametrize("name", [*STEPS, "8b, launched", "70b, launched"])
def test_one_token(name: str, prompt: int, budget: int) -> None:
    """Nothing is decoded: with the last prompt of an iteration the engine is free for whoever has come."""
    expected, outcome = both_at(0.3, (STEPS | LAUNCHED)[name], prompt, 1, budget)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.03)


@pytest.mark.parametrize("prompt", [100, 700, 3000])
@pytest.mark.parametrize("name", RANKED)
def test_one_token_on_attention_ranks(name: str, prompt: int) -> None:
    expected, outcome = both_at(0.3, RANKED[name], prompt, 1, 2048 * int(RANKED[name].attention_ranks))
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.03)


@pytest.mark.parametrize("name", STEPS)
def test_one_token_at_twice_the_load(name: str) -> None:
    expected, outcome = both_at(0.6, STEPS[name], 600, 1, 8192)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.03)


@pytest.mark.parametrize("answer", [20, 50])
@pytest.mark.parametrize("budget", [2048, 8192])
@pytest.mark.parametrize("prompt", [100, 300])
def test_prompts_that_fit_a_captured_graph_until_they_are_several(prompt: int, budget: int, answer: int) -> None:
    """Two of 300 tokens pass a graph of 512, or six of 100: an iteration then takes ten times as long."""
    expected, outcome = both_at(0.3, LAUNCHED["experts, captured"], prompt, answer, budget)
    assert_means_agree(expected, outcome)


@pytest.mark.parametrize("answer", [10, 20, 50])
@pytest.mark.parametrize(("prompt", "ttft"), [(300, 0.04), (700, 0.03), (3000, 0.03)])
def test_few_experts_are_read_by_few_sequences(prompt: int, ttft: float, answer: int) -> None:
    """A replica that rests at times holds more when it works; prompts read all experts, whoever decodes beside them."""
    expected, outcome = both_at(0.3, FEW_EXPERTS, prompt, answer, 8192)
    assert_means_agree(expected, outcome, ttft)


def test_prompts_are_counted_until_they_pass_the_graph() -> None:
    """Against counts drawn at random: three fit, four don't."""
    mean = 2.5
    counts = np.random.default_rng(2).poisson(mean, 400_000)
    passed = np.where(np.arange(MOST_COUNTED + 1)[:, None] >= 4, 1.0, 0.0)
    company = Company.by_chance(np.array([mean]))
    found = company.split(np.ones((1, 1)), np.array([[mean]]), passed)
    several = counts[counts >= 2]
    assert found.often[0] == pytest.approx(np.mean(several >= 4), rel=0.01)
    assert found.few[0] == pytest.approx(several[several < 4].mean(), rel=0.01)
    assert found.many[0] == pytest.approx(several[several >= 4].mean(), rel=0.01)
    assert found.mean[0] == pytest.approx(mean, rel=1e-6)
    assert company.split(np.ones((1, 1)), np.array([[mean]]), None) is company
