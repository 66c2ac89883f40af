"""Fields that have no effect beside others are named in the answer, names that nothing reads are refused."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.training_files import training_profiles
from planner.engine.advice import Advice
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import specs
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_plan import plan_training
from planner.engine.training_question import TrainingQuestion
from planner.engine.unused_fields import INFERENCE_RULES, ONLY_EXPERTS, ONLY_SPOT, TRAINING_RULES, unused
from planner.engine.workload import InferenceQuestion
from tests.engine.small_catalog import TODAY, snapshot
from tests.engine.test_inference_plan import plan

MIXTRAL, LLAMA = "mixtral-8x7b", "llama-3.1-8b"


def train(**raw: Any) -> TrainingPlan:
    asked = {"model": LLAMA, "tokens": 1e9, **raw}
    question = parse_question(TrainingQuestion, asked)
    arch, teacher = find_model(str(asked["model"])), find_model(question.teacher)
    assert arch is not None
    return plan_training(question, arch, snapshot(), training_profiles(), TODAY, teacher)


def faults(**raw: Any) -> list[FieldError]:
    with pytest.raises(InvalidQuestion) as caught:
        train(**raw)
    return caught.value.errors


def warned(question_type: type, model: str = LLAMA, **raw: Any) -> dict[str, str]:
    arch = find_model(model)
    assert arch is not None
    found = unused(parse_question(question_type, {"model": model, **raw}), arch)
    assert all(advice.is_warning for advice in found)
    return {advice.field: str(advice.suggestion) for advice in found}


def serving(model: str = LLAMA, **raw: Any) -> dict[str, str]:
    return warned(InferenceQuestion, model, **({} if "concurrency" in raw else {"requests_per_second": 1}) | raw)


def test_rules_name_fields_there_are() -> None:
    for question_type, rules in ((InferenceQuestion, INFERENCE_RULES), (TrainingQuestion, TRAINING_RULES)):
        assert {name for rule in rules for name in (rule.field, rule.other)} <= set(specs(question_type))
    assert {ONLY_SPOT, *ONLY_EXPERTS} <= set(specs(InferenceQuestion)) | set(specs(TrainingQuestion))


@pytest.mark.parametrize(
    ("idle", "used"),
    [
        ({"draft_tokens": 5}, {"speculation": "ngram"}),
        ({"draft_acceptance": 0.5}, {"speculation": "ngram"}),
        ({"batch_delay_ms": 9}, {"batching": "dynamic"}),
        ({"kv_transfer_gb_s": 25}, {"pools": "both"}),
        ({"lora_slots": 2}, {"lora_adapters": 4}),
        ({"lora_rank": 64}, {"lora_adapters": 4}),
        ({"prefix_kind": "shared"}, {"prefix_cache_hit": 0.5}),
        ({"output_tokens": 1, "tpot_ms": 20}, {"output_tokens": 2}),
        ({"expert_imbalance": 1.5}, {"model": MIXTRAL}),
    ],
)
def test_serving_fields_without_what_they_belong_to(idle: dict[str, Any], used: dict[str, Any]) -> None:
    field = list(idle)[-1]
    assert list(serving(**idle)) == [field]
    assert field in serving(**idle)[field]
    assert serving(**idle | used) == {}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"concurrency": 4, "peak_factor": 3}, "peak_factor"),
        ({"concurrency": 4, "arrival_cv": 3}, "arrival_cv"),
        ({"token_budgets": ["2048"], "max_num_batched_tokens": 1024}, "max_num_batched_tokens"),
    ],
)
def test_serving_fields_that_another_replaces(raw: dict[str, Any], field: str) -> None:
    other = next(iter(raw))
    assert serving(**raw) == {field: f"Warning: {field} has no effect beside {other}."}


@pytest.mark.parametrize(
    ("idle", "used"),
    [
        ({"lora_rank": 8}, {"method": "qlora"}),
        ({"pipeline_parallel": 1, "pipeline_schedule": "1f1b"}, {"pipeline_parallel": 2}),
        ({"tensor_parallel": 1, "async_tensor_parallel": "yes"}, {"tensor_parallel": 2}),
        ({"expert_routing": "natural"}, {"model": MIXTRAL}),
        ({"spot_interruptions_per_node_day": 1}, {"purchase_options": ["spot"]}),
    ],
)
def test_training_fields_without_what_they_belong_to(idle: dict[str, Any], used: dict[str, Any]) -> None:
    assert list(warned(TrainingQuestion, **idle)) == [list(idle)[-1]]
    assert warned(TrainingQuestion, **idle | used) == {}


def test_defaults_are_never_warned_of() -> None:
    assert serving() == serving(concurrency=4) == warned(TrainingQuestion) == {}


def test_a_plan_says_what_it_did_not_use_and_is_the_same_without_it() -> None:
    with_it, without = plan(draft_tokens=8), plan()
    said = "Warning: draft_tokens has no effect: speculation is none."
    assert with_it.advice[0] == Advice(field="draft_tokens", suggestion=said, is_warning=True)
    assert with_it.options == without.options
    trained = train(lora_rank=64)
    assert trained.advice[0].suggestion == "Warning: lora_rank has no effect: method is pretrain."
    assert trained.options == train().options


def test_a_draft_model_is_refused_where_nothing_drafts_with_it() -> None:
    for speculation in ("none", "ngram", "eagle"):
        with pytest.raises(InvalidQuestion) as caught:
            plan(draft_model="Llama 3.2 1B", speculation=speculation)
        assert [error.field for error in caught.value.errors] == ["draft_model"]


def test_a_smaller_model_teaches_nothing() -> None:
    (fault,) = faults(method="distillation", teacher="Llama 3.2 1B")
    assert (fault.field, fault.value) == ("teacher", "Llama 3.2 1B")
    assert "1.24 B" in fault.message
    assert "8.03 B" in fault.message
    for teacher in (LLAMA, "Llama 3.1 70B"):
        assert train(method="distillation", teacher=teacher).question["teacher"] == teacher


@pytest.mark.parametrize("by", [{"finish_days": 3}, {"finish_by": date(2026, 12, 2).isoformat()}])
def test_a_checkpoint_comes_before_the_run_must_be_over(by: dict[str, Any]) -> None:
    (fault,) = faults(checkpoint_minutes=4320, **by)
    assert (fault.field, fault.allowed) == ("checkpoint_minutes", "less than 4,320 minutes")
    assert train(checkpoint_minutes=4319, **by).question["checkpoint_minutes"] == 4319


def test_a_run_that_is_over_before_its_first_checkpoint_is_warned_of() -> None:
    answer = train(checkpoint_minutes=100_000)
    (warning,) = [advice for advice in answer.advice if advice.is_warning]
    assert warning.field == "checkpoint_minutes"
    assert "100,000" in warning.suggestion
    assert [advice for advice in train(checkpoint_minutes=10).advice if advice.is_warning] == []


@pytest.mark.parametrize("question_type", [InferenceQuestion, TrainingQuestion])
def test_a_model_and_a_config_together_are_refused(question_type: type) -> None:
    with pytest.raises(InvalidQuestion) as caught:
        parse_question(question_type, {"model": LLAMA, "config": {"hidden_size": 1}, "concurrency": 1})
    told = {error.field: error.message for error in caught.value.errors}
    assert told["model"] == "Name a model or give its config, not both."
