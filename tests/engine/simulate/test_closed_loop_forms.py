"""Closed loops: the plan's closed form beside simulated clients, one step time for both.

One client meets nobody, so the two are the same. With more, how much clients keep in step decides their TTFT, which the
closed form takes from measured runs; throughput, which hardly depends on it, and TPOT are compared.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.serving import AdmissionLimits, ServingEstimate, ServingLoad, steady_state
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import ClosedLoop, ContinuousReplica
from planner.engine.simulate.traffic import batch
from planner.engine.step_time import StepCoefficients
from tests.engine.simulate.fleets import one_pool
from tests.engine.simulate.test_closed_form import KV_BLOCKS, REQUEST_S, STEPS, closed_form, simulated

SCATTER = 0.5
"""Coefficient of variation of answers: enough that clients don't keep in step."""
ROUNDS = 60
DENSE = [name for name in STEPS if name != "experts"]


def both(name: str, prompt: int, answer: int, budget: int, clients: int) -> tuple[ServingEstimate, Outcome]:
    step = STEPS[name]
    coefficients = ServingCoefficients(
        step=StepCoefficients(*[np.array([value]) for value in step]),
        request_s=np.array([REQUEST_S]),
        cohort=np.array([0.0]),
        backlog=np.array([0.0]),
        lookahead=np.array([1.0]),
        drain=np.array([1.0]),
    )
    limits = AdmissionLimits(
        kv_sequences=np.array([KV_BLOCKS * 16 / (prompt + answer / 2)]),
        max_num_seqs=np.array([256.0]),
        max_num_batched_tokens=np.array([float(budget)]),
    )
    load = ServingLoad(
        kind="closed",
        input_tokens=float(prompt),
        output_tokens=float(answer),
        concurrency=float(clients),
        length_cv=SCATTER,
    )
    requests = max(ROUNDS * clients, 3000)
    shape = 1 / SCATTER**2
    tokens = np.random.default_rng(1).gamma(shape, answer / shape, requests).round()
    traffic = batch(np.zeros(requests), np.full(requests, prompt), np.maximum(tokens, 1))
    kind = ContinuousReplica(coefficients=step, kv_blocks=KV_BLOCKS, max_num_batched_tokens=budget, request_s=REQUEST_S)
    outcome = simulate(one_pool(kind, loop=ClosedLoop(clients=clients)), [traffic])
    return steady_state(coefficients, load, limits), outcome


@pytest.mark.parametrize(("prompt", "answer", "budget"), [(1000, 200, 2048), (700, 800, 2048), (8000, 400, 8192)])
@pytest.mark.parametrize("name", DENSE)
def test_one_client_gets_what_the_closed_form_says(name: str, prompt: int, answer: int, budget: int) -> None:
    expected, outcome = both(name, prompt, answer, budget, 1)
    assert expected.ttft_s["mean"][0] == pytest.approx(outcome.ttft.mean_s, rel=0.01)
    assert expected.tpot_s["mean"][0] == pytest.approx(outcome.tpot.mean_s, rel=0.01)
    assert expected.requests_s[0] == pytest.approx(outcome.requests / outcome.duration_s, rel=0.015)


@pytest.mark.parametrize("clients", [4, 16, 64])
@pytest.mark.parametrize(
    ("prompt", "answer", "budget"), [(1000, 200, 2048), (300, 300, 8192), (700, 800, 2048), (8000, 400, 8192)]
)
@pytest.mark.parametrize("name", DENSE)
def test_clients_get_the_plans_throughput(name: str, prompt: int, answer: int, budget: int, clients: int) -> None:
    if clients * (prompt + answer) > 0.9 * KV_BLOCKS * 16:
        clients = 32
    expected, outcome = both(name, prompt, answer, budget, clients)
    assert outcome.preemptions == 0
    assert expected.requests_s[0] == pytest.approx(outcome.requests / outcome.duration_s, rel=0.03)
    assert expected.tpot_s["mean"][0] == pytest.approx(outcome.tpot.mean_s, rel=0.03)


@pytest.mark.parametrize("clients", [4, 16, 64])
def test_experts_roughly(clients: int) -> None:
    expected, outcome = both("experts", 700, 800, 2048, clients)
    assert expected.requests_s[0] == pytest.approx(outcome.requests / outcome.duration_s, rel=0.03)
    assert expected.tpot_s["mean"][0] == pytest.approx(outcome.tpot.mean_s, rel=0.03)


@pytest.mark.parametrize(("name", "slower"), [("8b", 0.02), ("experts", 0.15)])
def test_the_same_throughput_is_slower_where_requests_come_by_chance(name: str, slower: float) -> None:
    """Four clients always make a batch of four; at their rate by chance it is now none, now ten: both forms say so.

    A batch's experts are read anew up to some ten sequences, so there it costs most.
    """
    prompt, answer, budget, clients = 1000, 200, 2048, 4
    expected, outcome = both(name, prompt, answer, budget, clients)
    rate = outcome.requests / outcome.duration_s
    by_chance = closed_form(STEPS[name], prompt, answer, budget, rate)
    open_loop = simulated(STEPS[name], prompt, answer, budget, rate)
    assert open_loop.tpot.mean_s > (1 + slower) * outcome.tpot.mean_s
    assert by_chance.tpot_s["mean"][0] > (1 + slower) * expected.tpot_s["mean"][0]
    assert by_chance.tpot_s["mean"][0] == pytest.approx(open_loop.tpot.mean_s, rel=0.03)
    assert expected.tpot_s["mean"][0] == pytest.approx(outcome.tpot.mean_s, rel=0.03)
