"""What a plan's question says of its traffic and its engine is simulated too, or refused: a run stands for its plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.planned_fleet import TIMES
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.setup import ContinuousReplica
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.run_kind import in_turn
from planner.services.simulation import planned_cluster
from planner.services.simulation_job import read_simulation
from planner.services.simulation_parts import serve_part
from planner.services.simulation_run import run_simulation

LOAD: dict[str, Any] = {
    "model": "Llama 3.1 70B",
    "input_tokens": 3000,
    "output_tokens": 300,
    "requests_per_second": 2,
    "peak_factor": 1,
    "headroom": 0.7,
    "max_options": 1,
}
REQUESTS = 20_000


def traffic_of(question: Mapping[str, Any], **given: Any) -> TrafficQuestion:
    traffic = read_simulation({"question": question, "traffic": given}).regions[0].traffic
    assert traffic is not None
    return traffic


def faults(params: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation(params)
    return {fault.field: fault.message for fault in raised.value.errors}


@pytest.mark.parametrize("kind", ["shared", "private"])
def test_cached_prefixes_are_found_as_the_plan_has_them(catalog: object, kind: str) -> None:
    """One replica at its share of the load: first tokens and tokens as late as planned, to a percent."""
    question = LOAD | {"prefix_cache_hit": 0.6, "prefix_kind": kind}
    cluster = planned_cluster(question)
    rate = 2 / cluster.option.layout.replicas
    params = {
        "question": question,
        "traffic": {"requests_per_second": rate, "hours": REQUESTS / rate / 3600},
        "scenario": {"replicas": 1},
    }
    result = run_simulation(params, lambda share, message: None, in_turn(serve_part, params))
    assert result["cached_input_tokens"] / result["input_tokens"] == pytest.approx(0.597, abs=0.001)
    assert sum(result["timeline"]["requests"]["cached_input_tokens"]) == result["cached_input_tokens"]
    planned = cluster.option.speed
    assert result["ttft_ms"]["mean"] == pytest.approx(planned.ttft_ms["mean"], rel=0.02)
    assert result["ttft_ms"]["p95"] == pytest.approx(planned.ttft_ms["p95"], rel=0.03)
    assert result["tpot_ms"]["mean"] == pytest.approx(planned.tpot_ms["mean"], rel=0.02)


def test_a_shared_prefix_is_one_of_the_traffic(catalog: object) -> None:
    traffic = traffic_of(LOAD | {"prefix_cache_hit": 0.6, "prefix_kind": "shared"})
    assert (traffic.prefixes, traffic.prefix_tokens, traffic.input_median) == (1, 1792, 1208)
    assert traffic.mean_input_tokens == 3000
    own = traffic_of(LOAD | {"prefix_cache_hit": 0.6, "prefix_kind": "shared"}, prefixes=7, prefix_tokens=100)
    assert (own.prefixes, own.prefix_tokens) == (7, 100)


def test_prefixes_that_the_traffic_has_are_not_found_twice(catalog: object) -> None:
    cluster = planned_cluster(LOAD | {"prefix_cache_hit": 0.6})
    for prefixes, found in ((0, 1792), (5, 0)):
        source = GeneratedTraffic(question=traffic_of(LOAD, prefixes=prefixes))
        kind = cluster.fleet(source, SimulationQuestion()).fleet.pools[0].kind
        assert isinstance(kind, ContinuousReplica)
        assert kind.found_tokens == found


def test_gaps_and_answers_scatter_as_the_question_says(catalog: object) -> None:
    traffic = traffic_of(LOAD | {"arrival_cv": 2, "output_cv": 1})
    assert traffic.gap_cv == 2
    assert traffic.mean_output_tokens == pytest.approx(300, rel=1e-4)
    assert math.sqrt(math.exp(traffic.output_sigma**2) - 1) == pytest.approx(1, rel=1e-4)
    own = traffic_of(LOAD | {"arrival_cv": 2, "output_cv": 1}, gap_cv=0.5, output_median=40)
    assert (own.gap_cv, own.output_median, own.output_sigma) == (0.5, 40, TrafficQuestion().output_sigma)
    waiting = traffic_of({**LOAD, "requests_per_second": None, "concurrency": 8, "output_cv": 1})
    assert (waiting.clients, waiting.gap_cv) == (8, 1)
    assert waiting.output_sigma > 0


@pytest.mark.parametrize("batching", ["static", "dynamic"])
def test_batches_drained_whole_are_refused(catalog: object, batching: str) -> None:
    assert "question.batching" in faults({"question": LOAD | {"batching": batching}})


def test_batches_of_whole_requests_need_times_of_their_model(catalog: object) -> None:
    """Nothing is assumed of them: a 70B model doesn't answer in a vision model's 2 ms."""
    cluster, source = planned_cluster(LOAD), GeneratedTraffic(question=traffic_of(LOAD))
    with pytest.raises(InvalidQuestion) as raised:
        cluster.fleet(source, SimulationQuestion(batching="static", max_batch=1))
    assert [fault.field for fault in raised.value.errors] == ["batch_ms"]
    for name in TIMES:
        given: dict[str, Any] = {name: 3.0}
        cluster.fleet(source, SimulationQuestion(batching="static", **given))


def test_a_replica_holds_as_many_blocks_whatever_is_asked(catalog: object) -> None:
    """80 layers alike: the plan's own number of tokens, with prompts of one token and of 100,000."""
    cluster = planned_cluster(LOAD)
    blocks = set()
    for tokens in (1, 17, 1500, 100_000):
        traffic = TrafficQuestion(
            input_median=tokens, input_sigma=0, output_median=max(1, tokens // 5), output_sigma=0, output_max=50_000
        )
        kind = cluster.fleet(GeneratedTraffic(question=traffic), SimulationQuestion()).fleet.pools[0].kind
        assert isinstance(kind, ContinuousReplica)
        blocks.add(kind.kv_blocks)
    assert len(blocks) == 1


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("least_outstanding", "The gateway chooses by load ("),
        ("round_robin", "The gateway takes replicas in turn, the plan"),
        ("session_affinity", None),
    ],
)
def test_a_gateway_fairer_than_the_plans_is_said(catalog: object, policy: str, told: str | None) -> None:
    params = {"question": LOAD, "traffic": {"hours": 0.02}, "scenario": {"replicas": 2, "policy": policy}}
    result = run_simulation(params, lambda share, message: None, in_turn(serve_part, params))
    notes = [note for note in result["notes"] if "share by chance" in note]
    assert len(notes) == (told is not None)
    assert all(note.startswith(str(told)) for note in notes)


@pytest.mark.parametrize("budget", [1024, 16384])
def test_an_option_is_simulated_with_its_own_token_budget(catalog: object, budget: int) -> None:
    question = LOAD | {"token_budgets": ["1024", "16384"], "max_options": 50}
    options = planned_cluster(question).plan.options
    option = next(each.id for each in options if each.max_num_batched_tokens == budget)
    traffic = GeneratedTraffic(question=traffic_of(question))
    kind = planned_cluster(question, option).fleet(traffic, SimulationQuestion()).fleet.pools[0].kind
    alone = LOAD | {"max_num_batched_tokens": budget, "max_options": 50}
    same = planned_cluster(alone, option.replace(f"-b{budget}", ""))
    assert isinstance(kind, ContinuousReplica)
    assert kind.max_num_batched_tokens == budget
    assert kind == same.fleet(traffic, SimulationQuestion()).fleet.pools[0].kind
