"""Laws of the regimes: whatever is asked together, the answer adds up; more of a good thing is never worse."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.errors import InvalidQuestion
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, snapshot

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "deepseek-v3", "qwen3.5 27b")

TRAFFIC = st.one_of(
    st.fixed_dictionaries({"requests_per_second": st.floats(0.01, 300), "arrival_cv": st.floats(0, 5)}),
    st.fixed_dictionaries({"concurrency": st.integers(1, 5000)}),
    st.fixed_dictionaries({"offline_requests": st.integers(1, 10**8), "offline_hours": st.floats(0.1, 1000)}),
)
REGIMES = st.fixed_dictionaries(
    {"model": st.sampled_from(MODELS), "input_tokens": st.integers(1, 20_000), "output_tokens": st.integers(1, 3_000)},
    optional={
        "speculation": st.sampled_from(("ngram", "eagle", "mtp", "draft_model")),
        "draft_tokens": st.integers(1, 16),
        "draft_acceptance": st.floats(0, 1),
        "lora_adapters": st.integers(0, 5000),
        "lora_slots": st.integers(1, 500),
        "lora_rank": st.integers(1, 512),
        "pools": st.sampled_from(("together", "split", "both")),
        "kv_transfer_gb_s": st.floats(0.05, 500),
        "batching": st.sampled_from(("continuous", "dynamic", "static")),
        "batch_delay_ms": st.floats(0, 5000),
        "output_cv": st.floats(0, 3),
        "prefix_cache_hit": st.floats(0, 0.99),
        "prefix_kind": st.sampled_from(("private", "shared")),
        "token_budgets": st.lists(st.sampled_from(("1024", "8192", "32768")), max_size=2),
        "attention_ranks": st.sampled_from(("auto", "tensor", "data")),
        "expert_imbalance": st.floats(1, 10),
        "redundant_experts": st.integers(0, 64),
        "engine": st.sampled_from(("vllm", "sglang", "tensorrt_llm", "triton")),
        "ttft_ms": st.floats(20, 20_000),
        "tpot_ms": st.floats(2, 500),
        "slo_percentile": st.sampled_from(("mean", "p50", "p95", "p99")),
    },
)


def plan(raw: dict[str, Any]) -> InferencePlan:
    asked = raw | ({"draft_model": "llama-3.1-8b"} if raw.get("speculation") == "draft_model" else {})
    question = parse_question(InferenceQuestion, asked)
    draft = published(question.draft_model) if question.draft_model else None
    return plan_inference(
        question, published(question.model), snapshot(), serving_profiles(), memory_profile_of, TODAY, draft
    )


@settings(max_examples=60, deadline=None)
@given(traffic=TRAFFIC, regimes=REGIMES)
def test_whatever_is_asked_together_adds_up(traffic: dict[str, Any], regimes: dict[str, Any]) -> None:
    raw = traffic | regimes
    try:
        found = plan(raw)
    except InvalidQuestion:
        return
    at = raw.get("slo_percentile", "p95")
    for option in found.options:
        speed, memory = option.speed, option.memory
        statistics = [*speed.ttft_ms.values(), *(value for value in speed.tpot_ms.values() if value is not None)]
        assert all(math.isfinite(value) and value >= 0 for value in statistics)
        assert speed.ttft_ms["p50"] <= speed.ttft_ms["p99"] * (1 + 1e-9)
        assert sum(memory.parts_gib.values()) + memory.free_gib - memory.capacity_gib < 1e-6
        assert option.cluster.gpus_used <= option.cluster.gpus_billed
        assert speed.ttft_ms[at] <= raw.get("ttft_ms", math.inf) * (1 + 1e-9)
        assert (speed.tpot_ms[at] or 0.0) <= raw.get("tpot_ms", math.inf) * (1 + 1e-9)
        ttft = sum(term.value for term in option.working if term.group == "ttft")
        assert math.isclose(ttft, speed.ttft_ms["mean"], rel_tol=1e-6, abs_tol=1e-6)
        assert option.admission.concurrency > 0
        assert option.confidence.low <= 1 <= option.confidence.high


@settings(max_examples=20, deadline=None)
@given(low=st.floats(0, 1), high=st.floats(0, 1), drafts=st.integers(1, 8))
def test_more_acceptance_never_costs_more(low: float, high: float, drafts: int) -> None:
    low, high = sorted((low, high))
    asked = {"model": "llama-3.1-8b", "requests_per_second": 50, "speculation": "eagle", "draft_tokens": drafts}
    bills = [plan(asked | {"draft_acceptance": value}).options[0].price.usd_per_month for value in (low, high)]
    assert bills[1] <= bills[0]


@settings(max_examples=20, deadline=None)
@given(slow=st.floats(0.2, 50), factor=st.floats(1, 100))
def test_a_faster_transfer_never_costs_more(slow: float, factor: float) -> None:
    asked = {"model": "llama-3.1-8b", "requests_per_second": 50, "pools": "split", "ttft_ms": 5000}
    bills = []
    for rate in (slow, slow * factor):
        options = plan(asked | {"kv_transfer_gb_s": rate}).options
        bills.append(float(options[0].price.usd_per_month) if options else math.inf)
    assert bills[1] <= bills[0]
