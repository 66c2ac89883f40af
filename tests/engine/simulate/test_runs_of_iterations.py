"""Runs of iterations with prompts: their law against the process that it describes, and against the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.serving_runs import runs_of
from tests.engine.simulate.test_closed_form import LAUNCHED, RANKED, STEPS, assert_means_agree, both_at

ITERATIONS = 300_000
HORIZON = 40


def followed(
    rate: float, iteration_s: float, carrying_s: float, chunks: int, *, ahead: bool
) -> tuple[float, list[float]]:
    """Share of iterations with prompts, and how many more than that follow a prompt's last in 1, 4 and 16 of them."""
    random = np.random.default_rng(3)
    come = random.poisson(rate * carrying_s, ITERATIONS), random.poisson(rate * iteration_s, ITERATIONS)
    starts, busy = np.zeros(ITERATIONS, dtype=int), np.zeros(ITERATIONS, dtype=bool)
    last, earlier, left = 0, 0, 0
    for index in range(ITERATIONS):
        starts[index] = earlier if ahead else last
        left = chunks if starts[index] else left - 1
        busy[index] = left > 0
        last, earlier = int(come[0 if left > 0 else 1][index]), last
    share = float(busy.mean())
    more = np.concatenate([[0.0], np.cumsum(busy - share)])
    ends = np.repeat(np.arange(ITERATIONS), starts) + chunks
    ends = ends[ends + HORIZON < ITERATIONS]
    return share, [float(np.mean(more[ends + decodes] - more[ends])) for decodes in (1, 4, 16)]


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize(
    ("rate", "iteration_s", "carrying_s", "chunks"),
    [(0.7, 0.03, 1.8, 1), (0.7, 0.03, 1.8, 2), (0.7, 0.03, 0.9, 4), (0.075, 0.043, 8.2, 2), (0.1, 0.2, 2.0, 20)],
)
def test_runs_are_as_long_as_the_process_has_them(
    rate: float, iteration_s: float, carrying_s: float, chunks: int, ahead: bool
) -> None:
    share, more = followed(rate, iteration_s, carrying_s, chunks, ahead=ahead)
    found = runs_of(np.array([rate]), iteration_s, carrying_s, np.array([float(chunks)]), float(ahead))
    assert found.running[0] == pytest.approx(share, rel=0.03, abs=0.003)
    soon = [found.soon_following(np.array([decodes]))[0] for decodes in (1.0, 4.0, 16.0)]
    assert soon == pytest.approx(more, rel=0.1, abs=0.05)


def test_what_follows_in_the_end_is_what_follows_step_by_step() -> None:
    for chunks in (1.0, 2.0, 5.0):
        for ahead in (0.0, 1.0):
            found = runs_of(np.array([0.2]), 0.03, 1.0, np.array([chunks]), ahead)
            assert found.soon_following(np.array([1e4])) == pytest.approx(found.following, rel=0.05)


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_runs_are_numbers_at_any_rate(rate: float) -> None:
    for chunks in (1.0, 3.0, 64.0):
        found = runs_of(np.array([rate]), 0.01, 1.0, np.array([chunks]), 1.0)
        assert 0.0 <= found.share[0] <= 1.0
        assert np.isfinite(found.following).all()
        assert np.isfinite(found.soon_following(np.array([30.0]))).all()


WIDE = {
    f"{ranks} ranks": RANKED["experts, four ranks"]._replace(
        attention_ranks=float(ranks), prompt_ranks=float(ranks), prefill_launch_s=launch_s
    )
    for ranks, launch_s in [(16, 1.0), (32, 2.0), (64, 4.0)]
}
"""So many ranks that a prompt is under way nearly always, and the host's launches pace iterations."""


@pytest.mark.parametrize("answer", [20, 200])
@pytest.mark.parametrize("name", WIDE)
def test_prompts_that_are_always_under_way(name: str, answer: int) -> None:
    expected, outcome = both_at(0.3, WIDE[name], 3000, answer, 2048 * int(WIDE[name].attention_ranks))
    assert_means_agree(expected, outcome, 0.03, 0.04)


@pytest.mark.parametrize(("answer", "tpot"), [(5, 0.06), (10, 0.04), (20, 0.03), (50, 0.03)])
@pytest.mark.parametrize("prompt", [3000, 8000])
@pytest.mark.parametrize("name", RANKED)
def test_short_answers_beside_prompts_in_chunks(name: str, prompt: int, answer: int, tpot: float) -> None:
    expected, outcome = both_at(0.3, RANKED[name], prompt, answer, 2048 * int(RANKED[name].attention_ranks))
    assert_means_agree(expected, outcome, tpot=tpot)


@pytest.mark.parametrize("answer", [10, 50, 200])
@pytest.mark.parametrize("name", LAUNCHED)
def test_prompts_that_wait_fill_iterations(name: str, answer: int) -> None:
    """3,000 tokens on a budget of 2,048 need two launches, but two of them three where one waits for the other."""
    expected, outcome = both_at(0.3, LAUNCHED[name], 3000, answer, 2048)
    assert_means_agree(expected, outcome)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.015)


@pytest.mark.parametrize("load", [0.1, 0.5])
@pytest.mark.parametrize("name", STEPS)
def test_iterations_fixed_ahead_are_two_chains(name: str, load: float) -> None:
    """Five tokens: after a rest one chain of iterations carries prompts and the other none, and stays so."""
    expected, outcome = both_at(load, STEPS[name], 1500, 5, 8192)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.03)
