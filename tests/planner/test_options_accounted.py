"""Every option that was tried is found, beaten or rejected with a reason: the counts of a plan add up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.hardware import CatalogSnapshot
from planner.engine.inference_plan import plan_inference as plan_of
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingPlan
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of, plan_inference, plan_training
from tests.engine.small_catalog import TODAY, snapshot

SERVED: dict[str, Any] = {"model": "Llama 3.1 70B", "requests_per_second": 10}
TRAINED: dict[str, Any] = {"model": "Llama 3.1 8B", "tokens": 1e10}


def rejected(plan: InferencePlan | TrainingPlan) -> int:
    return sum(rejection.count for rejection in plan.rejections if rejection.tried)


def assert_adds_up(plan: InferencePlan | TrainingPlan) -> None:
    assert plan.options_tried == plan.options_found + plan.options_beaten + rejected(plan)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"ttft_ms": 2000, "tpot_ms": 50},
        {"pools": "split"},
        {"pools": "both", "tpot_ms": 40},
        {"pools": "both", "budget_usd_per_month": 9000, "max_nodes": 3},
        {"budget_usd_per_month": 1},
        {"max_nodes": 1, "requests_per_second": 1000},
        {"providers": "aws", "weight_formats": "bf16"},
        {"concurrency": 100, "requests_per_second": None},
        {"offline_requests": 100_000, "offline_hours": 10, "requests_per_second": None},
        {"engine": "tensorrt_llm", "token_budgets": "1024,16384"},
        {"input_tokens": 120_000, "output_tokens": 1000},
    ],
)
def test_served_options_add_up(asked: dict[str, Any]) -> None:
    plan = plan_inference({name: value for name, value in (SERVED | asked).items() if value is not None})
    assert plan.options_tried > 1000
    assert_adds_up(plan)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"nodes": 4},
        {"gpus": 48},
        {"budget_usd": 3000},
        {"finish_days": 2, "budget_usd_per_month": 50_000},
        {"model": "Llama 3.1 405B", "max_nodes": 2},
        {"precision": "fp8", "providers": "aws"},
    ],
)
def test_trained_options_add_up(asked: dict[str, Any]) -> None:
    plan = plan_training(TRAINED | asked)
    assert plan.options_tried > 0
    assert plan.options_beaten == 0
    assert plan.layouts_tried > 0
    assert_adds_up(plan)


def small(catalog: CatalogSnapshot | None = None, **raw: Any) -> InferencePlan:
    question = parse_question(InferenceQuestion, {"model": "llama-3.1-8b", "requests_per_second": 10, **raw})
    arch = find_model("llama-3.1-8b")
    assert arch is not None
    return plan_of(question, arch, catalog or snapshot(), serving_profiles(), memory_profile_of, TODAY)


def test_an_offer_that_has_too_few_nodes_for_some_counts_them() -> None:
    plan = small(requests_per_second=2000)
    assert_adds_up(plan)
    assert not [each for each in plan.rejections if each.code == "available_nodes"]
    fewest = min(option.cluster.nodes for option in plan.options)
    few = tuple(replace(offer, available_nodes=fewest) for offer in snapshot().offers)
    short = small(replace(snapshot(), offers=few), requests_per_second=2000)
    refused = sum(each.count for each in short.rejections if each.code == "available_nodes")
    assert refused == plan.options_found - short.options_found > 0
    assert_adds_up(short)


def test_of_four_layouts_on_one_node_the_fastest_beats_three() -> None:
    """One offer of 8 GPUs, one format, replicas of 1, 2, 4 and 8: each fits one node, and so costs the same."""
    asked: dict[str, Any] = {
        "instance_types": "acme/h100-sxmx8",
        "purchase_options": "on_demand",
        "countries": "ID",
        "weight_formats": "bf16",
        "pipeline_parallel": 1,
    }
    alone = [small(**asked, tensor_parallel=tensor) for tensor in (1, 2, 4, 8)]
    counts = [(plan.options_tried, plan.options_found, plan.options_beaten) for plan in alone]
    assert counts == [(1, 1, 0)] * 4
    plan = small(**asked)
    assert (plan.options_tried, plan.options_found, plan.options_beaten) == (4, 1, 3)


def test_what_is_ruled_out_before_is_not_tried() -> None:
    plan = small(countries="ID")
    (left_out,) = (each for each in plan.rejections if each.code == "filter_countries")
    assert (left_out.count, left_out.tried) == (4, False)
    assert_adds_up(plan)
