"""Engines that take graphs or activations beside their memory share: one that leaves them no room is lowered."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.units import GIB
from planner.engine.workload import SERVING_ENGINES, InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.small_catalog import TODAY, accelerator, snapshot


def plan(gib: float, **raw: Any) -> InferencePlan:
    asked = {"model": "llama-3.1-8b", "requests_per_second": 1, **raw}
    question = parse_question(InferenceQuestion, asked)
    arch = find_model("llama-3.1-8b")
    assert arch is not None
    return plan_inference(
        question,
        arch,
        snapshot(card=accelerator(memory_bytes=int(gib * GIB))),
        serving_profiles(),
        memory_profile_of,
        TODAY,
    )


@pytest.mark.parametrize("engine", SERVING_ENGINES)
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("gib", [8.0, 16.0, 20.0, 24.0, 40.0, 80.0])
@pytest.mark.parametrize("version", ["", "0.12"])
def test_nothing_left_free_is_ever_negative(engine: str, share: float, gib: float, version: str) -> None:
    asked = {"engine_version": version} if engine == "vllm" else {}
    for option in plan(gib, engine=engine, memory_utilization=share, **asked).options:
        memory = option.memory
        assert memory.free_gib >= -1e-9
        assert min(memory.parts_gib.values()) >= 0
        assert memory.parts_gib["kv_cache"] > 0
        assert sum(memory.parts_gib.values()) + memory.free_gib == pytest.approx(memory.capacity_gib)


def test_a_share_without_room_is_lowered_and_said_so() -> None:
    found = plan(20, engine="sglang", tensor_parallel=1, weight_formats=["bf16"])
    best = next(option for option in found.options if option.id == found.recommended)
    terms = {term.name: term for term in best.working if term.group == "memory"}
    seen = terms["kv_pool"].value + terms["weights"].value + terms["unbudgeted"].value
    # 20 GiB less 0.5 of the driver's; graphs, activations and run time lie beside the budget.
    assert seen == pytest.approx(19.5, abs=0.01)
    assert terms["unbudgeted"].value > 0.1 * 19.5
    (warning,) = [advice for advice in found.advice if advice.field == "memory_utilization"]
    assert warning.is_warning
    share = warning.value
    assert isinstance(share, float)
    assert share == pytest.approx(1 - terms["unbudgeted"].value / 19.5, abs=0.01)
    again = plan(20, engine="sglang", tensor_parallel=1, weight_formats=["bf16"], memory_utilization=share)
    assert not [advice for advice in again.advice if advice.field == "memory_utilization"]
    assert again.options[0].memory.parts_gib["kv_cache"] == pytest.approx(terms["kv_pool"].value, abs=0.25)


def test_what_fits_neither_way_is_refused_with_the_sum() -> None:
    found = plan(17, engine="sglang", tensor_parallel=1, weight_formats=["bf16"])
    assert not found.options
    refused = [rejection.reason for rejection in found.rejections if rejection.code == "memory"]
    assert refused
    assert all("beside the engine's budget, exceed 16.5 GiB." in reason for reason in refused)
