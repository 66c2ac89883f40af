"""The engine's version is an input: its allocator, its budget and its constants are those of the time."""

from __future__ import annotations

import math
from typing import Any

import pytest

from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.errors import InvalidQuestion
from planner.engine.inference_evaluate import era_of
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, snapshot


def plan(model: str, version: str, **raw: Any) -> InferencePlan:
    asked = {"model": model, "requests_per_second": 1, "engine_version": version, "weight_formats": ["auto"], **raw}
    question = parse_question(InferenceQuestion, asked)
    return plan_inference(question, published(model), snapshot(), serving_profiles(), memory_profile_of, TODAY)


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


@pytest.mark.parametrize("version", ["latest", "0,20", "1.2; rm", "0.1.9"])
def test_what_is_no_known_version_is_refused_with_those_that_are(version: str) -> None:
    with pytest.raises(InvalidQuestion) as refused:
        plan("llama-3.1-8b", version)
    (error,) = refused.value.errors
    assert error.field == "engine_version"
    assert error.allowed.startswith("from 0.2 on, such as 0.24.0, 0.21, ")


NEWEST = {"vllm": "0.24.0", "sglang": "0.5.10.post1", "tensorrt_llm": "1.3.0rc1", "llama_cpp": "b2854"}


@pytest.mark.parametrize(("engine", "newest"), NEWEST.items())
@pytest.mark.parametrize(
    ("model", "weight_format"),
    [("llama-3.1-8b", "bf16"), ("llama-3.1-8b", "fp8"), ("qwen3-30b-a3b", "fp8"), ("llama-3.1-8b", "gguf_q8_0")],
)
def test_no_version_is_the_newest_release_known(engine: str, newest: str, model: str, weight_format: str) -> None:
    unstated, stated = (plan(model, version, engine=engine, weight_formats=[weight_format]) for version in ("", newest))
    assert [option.speed for option in unstated.options] == [option.speed for option in stated.options]
    assert [option.memory for option in unstated.options] == [option.memory for option in stated.options]
    assert f"Speed as of {engine}, version {newest}, the newest one known." in unstated.assumptions
    assert f"Speed as of {engine}, version {newest}." in stated.assumptions
    assert not [advice for advice in stated.advice if advice.field == "engine_version"]


def test_a_version_is_the_same_with_and_without_its_zero() -> None:
    assert plan("llama-3.1-8b", "0.24").options == plan("llama-3.1-8b", "v0.24.0").options


@pytest.mark.parametrize("version", ["0.25.1", "99.0"])
def test_a_version_newer_than_all_is_planned_as_the_newest_and_said(version: str) -> None:
    found, newest = plan("llama-3.1-8b", version), plan("llama-3.1-8b", "0.24.0")
    assert found.options == newest.options
    (warning,) = [advice for advice in found.advice if advice.field == "engine_version"]
    assert warning.is_warning
    assert warning.value == "0.24.0"
    assert "newer than any version known (0.24.0)" in warning.suggestion


@pytest.mark.parametrize(
    "version",
    [
        "nightly", "Nightly (Feb 2026)", "nightly-dev-20260402-d7256eb6", "main", "main 535c9cc", "b6261862", "535c9cc",
        "0ab12cd", "1234567", "d7256eb6f0a1b2c3d4e5f60718293a4b5c6d7e8f",
    ],
)  # fmt: skip
def test_a_build_between_releases_is_as_new_as_the_newest_quarter(version: str) -> None:
    found, nightly = plan("llama-3.1-8b", version), plan("llama-3.1-8b", "nightly")
    assert found.options == nightly.options != ()
    assert not [advice for advice in found.advice if advice.field == "engine_version"]
    for engine in NEWEST:
        assert era_of(serving_profiles(), engine, version) == serving_profiles().newest_era(engine)


def test_a_numbered_build_newer_than_all_is_planned_as_the_newest_and_said() -> None:
    (warning,) = [each for each in plan("llama-3.1-8b", "0.99.0.dev3").advice if each.field == "engine_version"]
    assert warning.value == "0.24.0"


def test_development_builds_have_constants_of_their_own() -> None:
    """Measured nightlies of early 2026 take longer a token and a prompt than the releases around them."""
    release, nightly = (plan("qwen3-30b-a3b", version).options[0].speed for version in ("0.16.0", "0.16.0.dev12"))
    assert (nightly.tpot_ms["mean"] or 0.0) > (release.tpot_ms["mean"] or math.inf)
    assert nightly.ttft_ms["mean"] > release.ttft_ms["mean"]


def test_before_captured_graphs_the_host_paces_every_iteration() -> None:
    """vLLM of 2023 launched kernel by kernel, and twice the GPUs saved a stream nothing (published: 28.4, 29.8 ms)."""

    def ratio(version: str) -> float:
        asked = {"concurrency": 1, "requests_per_second": None}
        four, eight = (plan("llama-2-70b", version, tensor_parallel=tp, **asked).options[0].speed for tp in (4, 8))
        return (eight.tpot_ms["mean"] or 0.0) / (four.tpot_ms["mean"] or math.inf)

    assert ratio("0.2") == pytest.approx(29.8 / 28.4, rel=0.15)
    assert ratio("0.2") > ratio("0.8.5")
