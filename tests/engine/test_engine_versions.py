"""The engine's version is an input: its allocator, its budget and its constants are those of the time."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.profiles import serving_memory_profile, serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.errors import InvalidQuestion
from planner.engine.inference_evaluate import era_of
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, snapshot


def plan(model: str, version: str, **raw: Any) -> InferencePlan:
    asked = {"model": model, "requests_per_second": 1, "engine_version": version, "weight_formats": ["auto"], **raw}
    question = parse_question(InferenceQuestion, asked)
    memory = serving_memory_profile("vllm", version=version or None)
    return plan_inference(question, published(model), snapshot(), serving_profiles(), memory, TODAY)


def test_the_token_line_changed_its_meaning() -> None:
    """gemma-4-31B in some 50 GiB: the line read 55k tokens up to 0.20 and some ten times more since 0.21."""
    lines = [
        plan("gemma-4-31b", version, weight_formats=["awq_int4"], max_num_batched_tokens=2048).options[0].admission
        for version in ("0.20.1", "0.21.0")
    ]
    assert lines[1].kv_cache_tokens / lines[0].kv_cache_tokens > 8
    # What really fits hardly changes: graphs are budgeted since.
    assert lines[1].concurrency == pytest.approx(lines[0].concurrency, rel=0.1)


def test_graphs_are_taken_from_the_budget_since_0_21() -> None:
    old, new = (plan("llama-3.1-8b", version).options[0].memory for version in ("0.20", "0.21"))
    assert old.parts_gib["kv_cache"] > new.parts_gib["kv_cache"]


def test_constants_are_those_of_the_time() -> None:
    profiles = serving_profiles()
    assert era_of(profiles, "vllm", "") == profiles.newest_era("vllm")
    assert era_of(profiles, "vllm", "0.8.5") == "2025Q2"
    assert era_of(profiles, "vllm", "0.12.0") == "2025Q4"
    assert era_of(profiles, "vllm", "v0.17.1") == "2026Q1"


def test_the_version_counted_with_is_said() -> None:
    assert any("as of version 0.8" in line for line in plan("llama-3.1-8b", "0.11.2").assumptions)


@pytest.mark.parametrize("version", ["latest", "0,20", "1.2; rm"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(InvalidQuestion) as refused:
        plan("llama-3.1-8b", version)
    assert [error.field for error in refused.value.errors] == ["engine_version"]
