"""Pinned layouts: what no hardware can hold is refused with the sizes that can; what a pin blocks is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.errors import InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.small_catalog import TODAY, accelerator, snapshot


def plan(catalog: CatalogSnapshot | None = None, **raw: Any) -> InferencePlan:
    question = parse_question(InferenceQuestion, {"requests_per_second": 1, **raw})
    arch = find_model(str(raw["model"]))
    assert arch is not None
    return plan_inference(question, arch, catalog or snapshot(), serving_profiles(), memory_profile_of, TODAY)


@pytest.mark.parametrize(
    ("pinned", "field", "message", "allowed"),
    [
        ({"model": "llama-3.1-8b", "tensor_parallel": 3}, "tensor_parallel", "not divisible by 3", "1, 2, 4, 8, 16"),
        ({"model": "llama-3.1-8b", "expert_parallel": 8}, "expert_parallel", "The model has no experts.", "1"),
        ({"model": "llama-3.1-8b", "pipeline_parallel": 33}, "pipeline_parallel", "33 stages for 32 layers.", "1, 2"),
        ({"model": "Mixtral-8x7B", "expert_parallel": 3}, "expert_parallel", "8 experts are not divi", "1, 2, 4, 8"),
    ],
)
def test_what_no_hardware_can_hold_lists_what_it_can(
    pinned: dict[str, Any], field: str, message: str, allowed: str
) -> None:
    with pytest.raises(InvalidQuestion) as refused:
        plan(**pinned)
    (error,) = refused.value.errors
    assert (error.field, error.code) == (field, "invalid_layout")
    assert message in error.message
    assert error.allowed.startswith(allowed)


def test_block_scales_are_not_cut() -> None:
    """Experts of 1,536 over eight ranks are 192 wide: no multiple of the 128 of a scale, unless they stay whole."""
    found = plan(model="Qwen3-235B-A22B", weight_formats=["fp8_block"], tensor_parallel=8)
    assert found.options
    assert {option.layout.expert for option in found.options} == {8}


def test_a_pin_that_leaves_no_layout_is_said() -> None:
    found = plan(model="llama-3.1-8b", tensor_parallel=32)
    assert not found.options
    assert ("tensor_parallel", "Let the search choose the layout.") in {(a.field, a.suggestion) for a in found.advice}


def test_an_engine_that_runs_nowhere_here_is_said() -> None:
    found = plan(snapshot(card=replace(accelerator(), vendor="AMD")), model="llama-3.1-8b", engine="tensorrt_llm")
    assert not found.options
    assert {advice.field for advice in found.advice} == {"engine"}


def test_an_accelerator_without_a_known_peak_is_said() -> None:
    found = plan(snapshot(card=replace(accelerator(), peak_flops={})), model="llama-3.1-8b", accelerators=["h100-sxm"])
    assert not found.options
    assert [advice.field for advice in found.advice] == ["accelerators"]
    assert "no peak rate" in found.advice[0].suggestion


def test_load_beyond_every_cluster_asks_for_nodes_or_less_load() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "requests_per_second": 1_000_000, "max_nodes": 8}
    found = plan(**asked)
    assert not found.options
    assert [advice.field for advice in found.advice] == ["max_nodes", "requests_per_second", "weight_formats"]
    for advice in found.advice:
        assert plan(**asked | advice.changes).options
