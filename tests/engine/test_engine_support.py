"""Where an engine runs, and which weights it loads there: recorded facts, and what the search makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalog.profiles import serving_memory_profile, serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.inference_plan import plan_inference
from planner.engine.workload import SERVING_ENGINES, InferenceQuestion
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, accelerator, snapshot

SUPPORT = serving_profiles().support


def card(capability: str, vendor: str = "NVIDIA") -> Any:
    return replace(accelerator(), compute_capability=capability, vendor=vendor)


def plan(engine: str, weight_format: str, capability: str, vendor: str = "NVIDIA") -> InferencePlan:
    question = InferenceQuestion(
        model="llama-3.1-8b", requests_per_second=1, engine=engine, weight_formats=(weight_format,)
    )
    catalog, memory = snapshot(card=card(capability, vendor)), serving_memory_profile(engine)
    return plan_inference(question, published("llama-3.1-8b"), catalog, serving_profiles(), memory, TODAY)


def test_every_engine_that_can_be_asked_for_is_recorded() -> None:
    assert set(SERVING_ENGINES) <= set(SUPPORT)


@pytest.mark.parametrize(
    ("engine", "weight_format", "capability", "loads"),
    [
        ("vllm", "fp8", "7.0", False),
        ("vllm", "fp8", "7.5", False),
        ("vllm", "fp8", "8.0", True),
        ("vllm", "awq_int4", "7.0", False),
        ("vllm", "awq_int4", "7.5", True),
        ("vllm", "gptq_int4", "7.0", True),
        ("vllm", "int8", "7.5", True),
        ("vllm", "bf16", "7.0", True),
        ("tensorrt_llm", "fp8", "8.0", False),
        ("tensorrt_llm", "fp8", "8.9", True),
        ("tensorrt_llm", "nvfp4", "9.0", False),
        ("tensorrt_llm", "nvfp4", "10.0", True),
    ],
)
def test_weights_by_generation(engine: str, weight_format: str, capability: str, loads: bool) -> None:
    assert SUPPORT[engine].loads(weight_format, card(capability)) is loads


def test_weights_by_vendor() -> None:
    assert not SUPPORT["vllm"].loads("awq_int4", card("gfx942", "AMD"))
    assert SUPPORT["vllm"].loads("fp8", card("gfx942", "AMD"))
    assert SUPPORT["sglang"].loads("awq_int4", card("gfx942", "AMD"))


def test_the_search_leaves_out_what_the_engine_can_not_load() -> None:
    refused = plan("vllm", "fp8", "7.5")
    assert refused.options == ()
    (reason,) = {r.reason for r in refused.rejections if r.code == "weight_format"}
    assert reason == "vllm has no kernels there for the weight format asked (fp8)."
    assert plan("vllm", "fp8", "8.0").options


def test_a_generation_too_old_is_named() -> None:
    refused = plan("tensorrt_llm", "fp16", "7.5")
    assert refused.options == ()
    (reason,) = {r.reason for r in refused.rejections if r.code == "engine"}
    assert reason == "tensorrt_llm needs compute capability 8.0; it has 7.5."
