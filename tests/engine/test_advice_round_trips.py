"""Every advice, sent back as JSON has it, is accepted and does what it says: on the way out, and on the page's link."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.http import QueryDict

from frontend.answers.parts import ways_out
from frontend.query import default_text, read_query
from planner.engine.advice import Advice
from planner.engine.answers import InferencePlan
from planner.engine.field_spec import specs
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.units import GIB
from planner.engine.workload import InferenceQuestion
from planner.services.plan_json import encode, plain, plan_to_json
from tests.engine.small_catalog import accelerator, snapshot
from tests.engine.test_inference_plan import plan as serve
from tests.engine.training.test_plan import plan as train

SMALL = snapshot(card=accelerator(memory_bytes=24 * GIB))
AMD = snapshot(card=replace(accelerator("mi300x"), vendor="AMD", compute_capability="gfx942"))
OLD = snapshot(card=replace(accelerator(), compute_capability="7.5"))
TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "integer": (int,),
    "choice": (str,),
    "text": (str,),
    "date": (str,),
    "choices": (list,),
}
LARGE: dict[str, Any] = {"model": "llama-3.1-70b", "max_nodes": 1, "weight_formats": ["bf16"]}
HUGE: dict[str, Any] = {"model": "llama-3.1-405b", "tokens": 1e9}

SERVING: list[tuple[Any, dict[str, Any], set[str]]] = [
    (SMALL, {"budget_usd_per_month": 1}, {"budget_usd_per_month"}),
    (SMALL, {"ttft_ms": 1}, {"ttft_ms"}),
    (SMALL, {"tpot_ms": 0.1}, {"tpot_ms"}),
    (SMALL, {"ttft_ms": 1, "tpot_ms": 0.1}, {"ttft_ms", "tpot_ms"}),
    (SMALL, {"requests_per_second": 1e5, "max_nodes": 1}, {"max_nodes"}),
    (SMALL, LARGE | {"tensor_parallel": 1}, {"max_nodes", "tensor_parallel"}),
    (SMALL, LARGE | {"tensor_parallel": 4, "pipeline_parallel": 1, "max_nodes": 9}, {"weight_formats"}),
    (SMALL, {"engine": "triton", "tensor_parallel": 32}, {"tensor_parallel"}),
    (AMD, {"engine": "tensorrt_llm"}, {"engine"}),
    (AMD, {"engine": "tensorrt_llm", "engine_version": "1.2.0", "weight_formats": ["fp8"]}, {"engine"}),
    (AMD, {"weight_formats": ["awq_int4"]}, {"weight_formats"}),
    (OLD, {"engine": "tensorrt_llm", "weight_formats": ["fp16"], "accelerators": ["h100-sxm"]}, {"engine"}),
    (OLD, {"weight_formats": ["fp8"]}, {"weight_formats"}),
    (SMALL, {"kv_format": "nvfp4"}, {"kv_format"}),
    (SMALL, {"model": "Qwen3-30B-A3B", "redundant_experts": 3}, {"redundant_experts"}),
    (
        SMALL,
        {"requests_per_second": None, "offline_requests": 10**10, "offline_hours": 0.013, "output_tokens": 1000},
        {"offline_hours"},
    ),
    (SMALL, {"batching": "static", "ttft_ms": 200, "requests_per_second": 5}, {"batching"}),
    (SMALL, {"draft_tokens": 8, "lora_rank": 8, "peak_factor": 3}, {"draft_tokens", "lora_rank"}),
    (SMALL, {"engine_version": "99.0"}, {"engine_version"}),
    (SMALL, {"engine": "sglang", "tensor_parallel": 1, "memory_utilization": 1}, {"memory_utilization"}),
    (SMALL, {"tensor_parallel": 1, "requests_per_second": 0.1}, {"max_model_len"}),
]
TRAINING: list[tuple[Any, dict[str, Any], set[str]]] = [
    (None, {"finish_days": 0.01}, {"finish_days"}),
    (None, {"finish_by": "2026-11-30", "tokens": 1e11}, {"finish_by"}),
    (None, {"budget_usd": 1}, {"budget_usd"}),
    (None, {"budget_usd_per_month": 1}, {"budget_usd_per_month"}),
    (None, {"budget_usd": 1, "finish_days": 1}, {"tokens"}),
    (None, {"precision": "nvfp4"}, {"precision"}),
    (None, {"checkpoint_minutes": 0.1, "checkpoint_stall_s": 36_000}, {"checkpoint_minutes"}),
    (None, {"gpus": 999_999}, {"gpus"}),
    (None, {"gpus": 128}, {"max_nodes", "gpus"}),
    (None, {"tensor_parallel": 8, "gpus": 4}, {"tensor_parallel"}),
    (None, HUGE | {"nodes": 1}, {"nodes"}),
    (None, HUGE | {"framework": "ddp", "max_nodes": 64}, {"framework"}),
    (None, HUGE | {"framework": "ddp", "max_nodes": 1}, {"framework", "max_nodes"}),
    (None, HUGE | {"precision": "nvfp4", "gpus": 1, "max_nodes": 64}, {"precision", "gpus"}),
    (None, {"lora_rank": 64}, {"lora_rank"}),
    (None, {"checkpoint_minutes": 100_000}, {"checkpoint_minutes"}),
    (None, {"global_batch_tokens": 100_000}, {"global_batch_tokens"}),
    (None, {"global_batch_tokens": 512 * 2**20}, {"global_batch_tokens"}),
]
Planned = InferencePlan | TrainingPlan
Planner = Callable[..., Planned]
CASES = [(InferenceQuestion, serve, *case) for case in SERVING] + [
    (TrainingQuestion, train, *case) for case in TRAINING
]


def sent_back(planner: Planner, catalog: Any, document: dict[str, Any], advice: dict[str, Any]) -> Planned:
    """The plan of the question that an answer echoes, as one of its advices changes it."""
    return planner(catalog, **document["question"] | {advice["field"]: advice["value"]} | advice["also"])


@pytest.mark.parametrize(("question_type", "planner", "catalog", "asked", "fields"), CASES)
def test_what_is_advised_is_accepted_as_it_is_and_helps(
    question_type: type, planner: Planner, catalog: Any, asked: dict[str, Any], fields: set[str]
) -> None:
    answer = planner(catalog, **asked)
    document = json.loads(encode(plan_to_json(answer)))
    found = [advice for advice in document["advice"] if advice["field"]]
    assert fields <= {name for advice in found for name in (advice["field"], *advice["also"])}
    for advice in found:
        for name, value in {advice["field"]: advice["value"], **advice["also"]}.items():
            spec = specs(question_type)[name][0]
            assert value is None or isinstance(value, TYPES[spec.kind]), (name, value)
        again = sent_back(planner, catalog, document, advice)
        if answer.options:
            assert again.options
            assert advice["suggestion"] not in {other.suggestion for other in again.advice}
        else:
            assert bool(again.options) != advice["suggestion"].endswith("By itself that is not enough."), advice


@pytest.mark.parametrize(("question_type", "planner", "catalog", "asked", "fields"), CASES)
def test_the_link_of_a_way_out_asks_the_same_question_as_its_json(
    question_type: type, planner: Planner, catalog: Any, asked: dict[str, Any], fields: set[str]
) -> None:
    answer = planner(catalog, **asked)
    known = specs(question_type)
    whole = {name: value for name, value in plain(answer.question).items() if value != plain(known[name][1])}
    given = {name: default_text(value) for name, value in whole.items()}
    advised = [advice for advice in answer.advice if not advice.is_warning and advice.field]
    for advice, way in zip(advised, ways_out(advised, given, question_type), strict=True):
        linked = read_query(QueryDict(way.query), question_type)
        assert parse_question(question_type, linked.raw) == parse_question(question_type, whole | advice.changes)


def test_two_changes_in_one_carry_both() -> None:
    answer = train(**HUGE, framework="ddp", max_nodes=1)
    (advice,) = answer.advice
    assert advice.changes == {"framework": "fsdp2", "max_nodes": 16}
    assert advice.suggestion.endswith("One without the other is not enough.")
    for name, value in advice.changes.items():
        assert not train(**HUGE | {"framework": "ddp", "max_nodes": 1, name: value}).options
    (way,) = ways_out([advice], {"model": "llama-3.1-405b", "framework": "ddp", "max_nodes": "1"}, TrainingQuestion)
    assert "framework=ddp" not in way.query
    assert "max_nodes=16" in way.query


def test_another_engine_is_one_that_runs_there_at_its_own_version() -> None:
    answer = serve(AMD, engine="tensorrt_llm", engine_version="1.2.0")
    assert [advice.value for advice in answer.advice] == ["vllm", "sglang", "llama_cpp"]
    assert answer.advice[0] == Advice(
        field="engine",
        suggestion="tensorrt_llm doesn't run on AMD: only on NVIDIA. vllm runs there.",
        value="vllm",
        also={"engine_version": None},
    )
    assert serve(AMD, engine="vllm").options
