"""Questions beyond plain serving, asked of the whole search: drafts, adapters, batching, jobs, experts, budgets."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.answers import InferencePlan
from planner.engine.errors import InvalidQuestion
from planner.engine.hf_config import parse_hf_config
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.regime_notes import check_regimes
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.answered import tpot_ms
from tests.engine.published_configs import LLAMA_8B_SIZES
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, accelerator, snapshot


def plan(**raw: Any) -> InferencePlan:
    asked = {"model": "llama-3.1-8b", "requests_per_second": 5, "accelerators": ["h100-sxm"], **raw}
    question = parse_question(InferenceQuestion, {name: value for name, value in asked.items() if value is not None})
    arch = parse_hf_config(question.config) if question.config else published(question.model)
    draft = find_model(question.draft_model) if question.draft_model else None
    return plan_inference(question, arch, snapshot(), serving_profiles(), memory_profile_of, TODAY, draft)


def fault(**raw: Any) -> tuple[str, str]:
    with pytest.raises(InvalidQuestion) as caught:
        plan(**raw)
    (error,) = caught.value.errors
    return error.field, error.code


def one(**raw: Any) -> Any:
    """The option of one 16-bit replica a GPU."""
    return next(o for o in plan(**raw, weight_formats=["bf16"], tensor_parallel=1).options)


# Speculative decoding


def test_drafts_shorten_answers_and_take_memory() -> None:
    plain, drafted = one(), one(speculation="eagle", draft_tokens=3, draft_acceptance=0.8)
    assert tpot_ms(drafted, "mean") < 0.7 * tpot_ms(plain, "mean")
    assert drafted.memory.parts_gib["draft_and_adapters"] == pytest.approx(0.5034e9 / 2**30, rel=0.01)
    assert "draft_and_adapters" not in plain.memory.parts_gib
    assert sum(drafted.memory.parts_gib.values()) + drafted.memory.free_gib == pytest.approx(
        drafted.memory.capacity_gib
    )
    # 33 layers hold the cache instead of 32.
    ratio = drafted.admission.concurrency / plain.admission.concurrency
    pools = drafted.memory.parts_gib["kv_cache"] / plain.memory.parts_gib["kv_cache"]
    assert ratio == pytest.approx(32 / 33 * pools, rel=1e-4)
    tokens = next(t for t in drafted.working if t.name == "tokens_per_step")
    assert tokens.value == pytest.approx((1 - 0.8**4) / 0.2)


def test_drafts_are_extrapolated_with_a_band_no_narrower() -> None:
    plain, drafted = one(), one(speculation="mtp")
    assert plain.confidence.kind == "calibrated"
    assert drafted.confidence.kind == "extrapolated"
    assert drafted.confidence.low <= plain.confidence.low
    assert drafted.confidence.high >= plain.confidence.high
    assert drafted.confidence.basis.endswith("not measured: speculative decoding")


def test_a_named_draft_model_is_loaded_and_cached() -> None:
    asked = {"model": "llama-3.1-70b", "weight_formats": ["bf16"], "tensor_parallel": 4}
    drafted = plan(**asked, speculation="draft_model", draft_model="llama-3.1-8b").options[0]
    assert drafted.memory.parts_gib["draft_and_adapters"] == pytest.approx(14.96 / 4, abs=0.01)
    assert fault(speculation="draft_model") == ("draft_model", "conflict")


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        ("qwen3-0.6b", "Its vocabulary of 151,936 is not the model's 128,256: its tokens can't be verified."),
        ("llama-3.1-8b", "It has 8.03 B active parameters, the model 8.03 B: drafting would cost more than it saves."),
        ("llama-3.1-70b", "It has 70.6 B active parameters, the model 8.03 B: drafting would cost more than it saves."),
    ],
)
def test_a_draft_model_has_the_same_tokenizer_and_is_smaller(draft: str, said: str) -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(speculation="draft_model", draft_model=draft)
    (error,) = caught.value.errors
    assert (error.field, error.value, error.code) == ("draft_model", draft, "conflict")
    assert error.message == said


def test_vocabularies_of_one_family_are_padded_differently() -> None:
    small, large = published("qwen2.5-0.5b"), published("qwen2.5-72b")
    assert (small.vocab, large.vocab) == (151_936, 152_064)
    check_regimes(large, InferenceQuestion(speculation="draft_model", draft_model="qwen2.5-0.5b"), small)


def test_a_draft_layer_that_is_not_known_is_said_so() -> None:
    asked = {"weight_formats": ["bf16"], "tensor_parallel": 8, "speculation": "mtp"}
    unknown, known = plan(**asked), plan(**asked | {"model": "deepseek-v3", "weight_formats": ["auto"]})
    said = "No multi-token prediction layer of Llama 3.1 8B is known"
    assert any(line.startswith(said) for line in unknown.assumptions)
    assert not any("is known" in line for line in known.assumptions)


# Adapters


def test_adapter_slots_take_memory_and_every_token_pays() -> None:
    plain, adapted = one(), one(lora_adapters=20, lora_rank=16)
    assert adapted.memory.parts_gib["draft_and_adapters"] == pytest.approx(8 * 2 * 41_943_040 / 2**30)
    assert tpot_ms(adapted, "mean") > tpot_ms(plain, "mean") + 0.7
    assert adapted.confidence.kind == "extrapolated"


# Prefix cache


def test_cached_prompts_count_in_whole_blocks() -> None:
    asked = {"input_tokens": 1000, "prefix_cache_hit": 0.5}
    prefill = next(t for t in one(**asked).working if t.group == "ttft" and t.name == "prefill")
    assert prefill.formula.startswith("504 prompt tokens")
    assert one(input_tokens=16, prefix_cache_hit=0.99).speed.ttft_ms == one(input_tokens=16).speed.ttft_ms


def test_a_shared_prefix_is_held_once() -> None:
    asked = {"input_tokens": 4000, "output_tokens": 200, "prefix_cache_hit": 0.8}
    own, shared = one(**asked), one(**asked, prefix_kind="shared")
    ratio = shared.speed.max_concurrency / shared.layout.replicas / (own.speed.max_concurrency / own.layout.replicas)
    # The batch limit of 256 binds before 4,100 / 900 of the requests fit.
    assert own.speed.max_concurrency / own.layout.replicas < 256
    assert ratio == pytest.approx(min(256 / (own.speed.max_concurrency / own.layout.replicas), 4100 / 900), rel=0.05)


# Batching and jobs


def test_drained_batches_need_more_replicas_than_continuous_ones() -> None:
    continuous, static = plan(requests_per_second=60), plan(requests_per_second=60, batching="static", output_cv=0.8)
    assert static.options[0].price.usd_per_month > continuous.options[0].price.usd_per_month
    assert any("static batch" in line for line in static.assumptions)


def test_an_offline_job_is_done_in_time() -> None:
    found = plan(requests_per_second=None, offline_requests=2_000_000, offline_hours=12)
    option = found.options[0]
    assert found.peak_requests_s == pytest.approx(2_000_000 / (12 * 3600))
    assert option.speed.capacity_requests_s * 12 * 3600 * 0.8 >= 2_000_000 * 0.999
    job = option.job
    assert job is not None
    assert job.hours <= 12 * 0.8 * 1.001
    # Rounded once, to a ten-thousandth: then the cost can be checked by hand.
    assert job.hours == round(2_000_000 * 250 / (3600 * option.speed.output_tok_s), 4)
    assert job.usd == round(Decimal(repr(job.hours)) * option.price.usd_per_hour, 2)
    assert "month" not in {term.name for term in option.working}
    assert plan().options[0].job is None
    peak = next(term for term in option.working if term.name == "peak")
    assert peak.formula == "2,000,000 requests / 12 h"
    # What is shown is what it was sized by: a replica fewer would not do.
    for each in found.options:
        replicas, used = each.layout.replicas, each.speed.utilization
        assert used <= 0.8 + 1e-9
        assert replicas == 1 or used * replicas / (replicas - 1) > 0.8
    assert fault(requests_per_second=None, offline_requests=10, offline_hours=1, ttft_ms=500) == ("ttft_ms", "conflict")
    assert fault(requests_per_second=None, offline_requests=10) == ("offline_hours", "required")
    assert fault(offline_requests=10, offline_hours=1) == ("requests_per_second", "required")


def test_batched_drafts_are_refused() -> None:
    assert fault(batching="dynamic", speculation="ngram") == ("speculation", "conflict")


# Search over the token budget


def test_token_budgets_are_searched_and_named() -> None:
    found = plan(token_budgets=["1024", "16384"], max_options=200)
    budgets = {option.max_num_batched_tokens for option in found.options}
    assert budgets <= {1024, 16384}
    assert all(o.id.split(":")[1].endswith(f"-b{o.max_num_batched_tokens}") for o in found.options)
    assert not any("8,192 tokens" in line for line in found.assumptions)
    for option in found.options:
        (peak,) = [term for term in option.working if term.name == "activation_peak"]
        assert peak.formula == f"at {option.max_num_batched_tokens:,} batched tokens"
    alone = [plan(max_num_batched_tokens=int(b), max_options=200).options_found for b in ("1024", "16384")]
    assert found.options_tried == 2 * plan(max_options=200).options_tried
    assert 0 < found.options_found <= sum(alone)


# Wide experts


def test_attention_ranks_of_their_own_beside_wide_experts() -> None:
    found = plan(model="qwen3-30b-a3b", attention_ranks="data", expert_parallel=8)
    assert {(o.layout.tensor, o.layout.expert, o.layout.gpus_per_replica) for o in found.options} == {(1, 8, 8)}
    assert found.options[0].confidence.kind == "extrapolated"
    assert fault(attention_ranks="data") == ("attention_ranks", "conflict")


def test_experts_out_of_balance_are_slower_and_copies_take_memory() -> None:
    asked: dict[str, Any] = {
        "model": "qwen3-30b-a3b",
        "tensor_parallel": 8,
        "expert_parallel": 8,
        "weight_formats": ["bf16"],
    }
    even, skewed = plan(**asked).options[0], plan(**asked, expert_imbalance=2).options[0]
    assert skewed.speed.capacity_requests_s / skewed.layout.replicas < (
        even.speed.capacity_requests_s / even.layout.replicas
    )
    copied = plan(**asked, redundant_experts=8).options[0]
    # 8 more experts of 3 x 2048 x 768 in 48 layers, 16 bit or 8, over 8 ranks of every stage.
    bytes_each = {"bf16": 2, "fp8": 1}[copied.weight_format]
    expected = 3 * 2048 * 768 * 48 * bytes_each / 2**30 / copied.layout.pipeline
    assert copied.memory.parts_gib["draft_and_adapters"] == pytest.approx(expected, rel=0.01)


# The working


def test_every_statistic_is_in_the_working() -> None:
    option = one()
    shown = {t.name: t.value for t in option.working if t.group == "distribution"}
    for name in ("mean", "p50", "p90", "p95", "p99"):
        assert shown[f"TTFT {name}"] == option.speed.ttft_ms[name]
        assert shown[f"TPOT {name}"] == option.speed.tpot_ms[name]


# Models that aren't known


def test_an_unknown_model_type_is_warned_of_and_extrapolated() -> None:
    known = plan(config=LLAMA_8B_SIZES | {"model_type": "llama"}, model="")
    unknown = plan(config=LLAMA_8B_SIZES | {"model_type": "brand_new"}, model="")
    assert known.advice == ()
    assert known.options[0].confidence.kind == "calibrated"
    (warning,) = unknown.advice
    assert warning.suggestion.startswith("Warning: model_type brand_new is not known.")
    for option in unknown.options:
        for confidence in (option.confidence, option.ttft_confidence, option.tpot_confidence):
            assert confidence.kind == "extrapolated"
            assert "model_type brand_new" in confidence.basis
    assert unknown.options[0].confidence.high >= known.options[0].confidence.high
    assert plan(config=LLAMA_8B_SIZES, model="").advice[0].suggestion.startswith("Warning: model_type (not stated)")


def test_an_ensemble_runs_where_its_engine_does() -> None:
    found = plan(engine="triton")
    assert found.options
    elsewhere = snapshot(card=replace(accelerator(), vendor="AMD"))
    question = InferenceQuestion(model="llama-3.1-8b", requests_per_second=1, engine="triton")
    assert memory_profile_of(question).engine == "tensorrt_llm"
    refused = plan_inference(
        question, published("llama-3.1-8b"), elsewhere, serving_profiles(), memory_profile_of, TODAY
    )
    assert {r.code for r in refused.rejections} >= {"engine"}


def test_a_job_is_ranked_by_what_it_costs_itself() -> None:
    """Not by the month's rent: a dearer cluster that is done in half the time is the cheaper one."""
    for model in ("llama-3.1-8b", "llama-3.1-70b"):
        asked = {"offline_requests": 1_000_000, "offline_hours": 24, "requests_per_second": None}
        options = plan(model=model, **asked).options
        costs = [option.job.usd for option in options if option.job]
        assert costs == sorted(costs)
        front = [option.job.hours for option in options if option.job and option.on_pareto_front]
        assert front == sorted(front, reverse=True)


# Captured graphs


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (True, {"input_tokens": 300, "output_tokens": 10}),
        (True, {"input_tokens": 600, "output_tokens": 10, "prefix_cache_hit": 0.5}),
        (False, {"input_tokens": 600, "output_tokens": 10}),
        (False, {"input_tokens": 300, "output_tokens": 20}),
        (False, {"input_tokens": 300, "output_tokens": 10, "requests_per_second": None, "concurrency": 8}),
        (False, {"input_tokens": 300, "output_tokens": 10, "engine": "sglang"}),
    ],
)
def test_prompts_that_a_graph_holds_one_by_one_are_remarked(said: bool, asked: dict[str, Any]) -> None:
    """vLLM's graphs hold 512 tokens; SGLang's hold no prompts."""
    advice = [each.suggestion for each in plan(**asked).advice]
    assert any("captured graph of 512 tokens" in each for each in advice) == said
