"""Where an engine runs, and which weights it loads there: recorded facts, and what the search makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan, Rejection
from planner.engine.errors import InvalidQuestion
from planner.engine.inference_advice import advise
from planner.engine.inference_plan import plan_inference
from planner.engine.workload import SERVING_ENGINES, InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, accelerator, snapshot

SUPPORT = serving_profiles().support


def card(capability: str, vendor: str = "NVIDIA") -> Any:
    return replace(accelerator(), compute_capability=capability, vendor=vendor)


def plan(engine: str, weight_format: str, capability: str, vendor: str = "NVIDIA") -> InferencePlan:
    question = InferenceQuestion(
        model="llama-3.1-8b", requests_per_second=1, engine=engine, weight_formats=(weight_format,)
    )
    catalog = snapshot(card=card(capability, vendor))
    return plan_inference(question, published("llama-3.1-8b"), catalog, serving_profiles(), memory_profile_of, TODAY)


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


@pytest.mark.parametrize(
    ("engine", "kv_format", "capability", "caches"),
    [
        ("vllm", "auto", "7.0", True),
        ("vllm", "fp8", "8.0", True),
        ("vllm", "int4", "8.0", True),
        ("vllm", "nvfp4", "8.9", False),
        ("vllm", "nvfp4", "10.0", True),
        ("vllm", "nvfp4", "gfx942", False),
        ("tensorrt_llm", "fp8", "8.0", False),
        ("tensorrt_llm", "int8", "8.0", True),
        ("sglang", "fp8", "gfx942", True),
        ("llama_cpp", "int8", "8.9", True),
    ],
)
def test_caches_by_generation(engine: str, kv_format: str, capability: str, caches: bool) -> None:
    assert SUPPORT[engine].caches(kv_format, card(capability)) is caches
    question = InferenceQuestion(model="m", requests_per_second=1, engine=engine, kv_format=kv_format)
    catalog = snapshot(card=card(capability))
    found = plan_inference(question, published("llama-3.1-8b"), catalog, serving_profiles(), memory_profile_of, TODAY)
    assert bool(found.options) is caches
    if not caches:
        least = SUPPORT[engine].kv_formats[kv_format]
        said = f"{engine} needs compute capability {least:.1f} for a KV cache in {kv_format}; it has {capability}."
        assert {each.reason for each in found.rejections if each.code == "kv_format"} == {said}
        assert [(each.field, each.value) for each in found.advice] == [("kv_format", "auto")]


@pytest.mark.parametrize(
    ("engine", "kv_format", "allowed"),
    [
        ("llama_cpp", "fp8", "auto, bf16, int8, int4"),
        ("tensorrt_llm", "int4", "auto, bf16, fp8, int8, nvfp4"),
        ("sglang", "int8", "auto, bf16, fp8, nvfp4"),
    ],
)
def test_a_cache_that_the_engine_does_not_have_is_refused(engine: str, kv_format: str, allowed: str) -> None:
    question = InferenceQuestion(model="m", requests_per_second=1, engine=engine, kv_format=kv_format)
    with pytest.raises(InvalidQuestion) as caught:
        plan_inference(question, published("llama-3.1-8b"), snapshot(), serving_profiles(), memory_profile_of, TODAY)
    (error,) = caught.value.errors
    assert (error.field, error.value, error.allowed) == ("kv_format", kv_format, allowed)


def test_llama_cpp_has_formats_of_its_own() -> None:
    auto = plan("llama_cpp", "auto", "9.0")
    assert {option.weight_format for option in auto.options} == {"bf16"}
    assert plan("llama_cpp", "fp8", "9.0").options == ()
    assert {option.weight_format for option in plan("llama_cpp", "gguf_q4_k_m", "9.0").options} == {"gguf_q4_k_m"}


def test_what_is_advised_is_what_the_engine_has() -> None:
    tight = Rejection(subject="1x A", code="memory", reason="", value=9.0, limit=8.0, unit="GiB", count=1)
    for engine, weights, cache in (("vllm", "awq_int4", "fp8"), ("llama_cpp", "gguf_q4_k_m", "int8")):
        question = InferenceQuestion(model="m", requests_per_second=1, engine=engine)
        ways = {way.field: way.value for way in advise(question, [tight], (), SUPPORT)}
        assert ways == {"weight_formats": (weights,), "kv_format": cache}
