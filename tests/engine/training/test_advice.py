"""Nothing fits: what is said to change, and that it helps."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.advice import FieldValue
from planner.engine.training_answers import TrainingPlan
from tests.engine.training.test_plan import plan

LARGE = {"model": "llama-3.1-405b", "tokens": 1e9}


def followed(answer: TrainingPlan, asked: dict[str, Any], fields: set[str]) -> TrainingPlan:
    """The plan of the question as the advice on these fields changes it."""
    changes = [advice.changes for advice in answer.advice if advice.field in fields]
    return plan(**asked | dict(change for each in changes for change in each.items()))


@pytest.mark.parametrize(
    ("asked", "fields", "values"),
    [
        ({"precision": "nvfp4"}, {"precision"}, ["fp8"]),
        ({"checkpoint_minutes": 0.1, "checkpoint_stall_s": 36_000}, {"checkpoint_minutes"}, [None]),
        ({"gpu_hours_per_interruption": 10, "restart_minutes": 10_000}, {"restart_minutes"}, [10.0]),
        ({"gpus": 100_000}, {"gpus"}, [64]),
        ({"gpus": 128}, {"max_nodes"}, [16]),
        ({"gpus": 999_999}, {"gpus"}, [64]),
        ({"tensor_parallel": 8, "gpus": 4}, {"tensor_parallel"}, [None]),
        ({"micro_batch": 4096}, {"micro_batch"}, [None]),
        ({"pipeline_parallel": 32, "nodes": 1}, {"pipeline_parallel"}, [None]),
        ({"nodes": 100_000, "max_nodes": 100_000}, {"nodes"}, [None]),
        (LARGE | {"max_nodes": 1}, {"max_nodes"}, [16]),
        (LARGE | {"nodes": 1}, {"nodes"}, [16]),
        (LARGE | {"framework": "ddp", "max_nodes": 64}, {"framework"}, ["fsdp2"]),
        (LARGE | {"gpus": 8, "max_nodes": 64}, {"gpus"}, [None]),
    ],
)
def test_every_empty_answer_says_what_to_change_and_that_helps(
    asked: dict[str, Any], fields: set[str], values: list[FieldValue]
) -> None:
    answer = plan(**asked)
    assert not answer.options
    assert answer.advice
    assert len({advice.field for advice in answer.advice}) == len(answer.advice)
    assert [advice.value for advice in answer.advice if advice.field in fields] == values
    assert followed(answer, asked, fields).options


def test_time_lost_to_failures_is_said_in_numbers() -> None:
    asked: dict[str, Any] = {"checkpoint_minutes": 0.1, "checkpoint_stall_s": 36_000}
    (advice,) = plan(**asked).advice
    assert advice.field == "checkpoint_minutes"
    assert "failures and checkpoints take 100% of the time" in advice.suggestion
    # A usual stall alone would not do, so it isn't given.
    assert not plan(**asked | {"checkpoint_stall_s": 10}).options
    advice = plan(gpu_hours_per_interruption=10, restart_minutes=10_000).advice[0]
    assert advice.suggestion.startswith("Set restart_minutes to 10 minutes, as usual")


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        (LARGE | {"precision": "nvfp4", "gpus": 1, "max_nodes": 64}, {"precision", "gpus"}),
        (LARGE | {"framework": "ddp", "max_nodes": 1}, {"framework", "max_nodes"}),
    ],
)
def test_two_changes_are_given_together_where_one_is_too_little(asked: dict[str, Any], fields: set[str]) -> None:
    answer = plan(**asked)
    (advice,) = answer.advice
    assert advice.changes.keys() == fields
    assert advice.suggestion.endswith("One without the other is not enough.")
    for name, value in advice.changes.items():
        assert not plan(**asked | {name: value}).options
    assert followed(answer, asked, fields).options


def test_a_change_that_is_not_enough_says_so() -> None:
    asked: dict[str, Any] = LARGE | {"precision": "nvfp4", "gpus": 1, "framework": "ddp"}
    answer = plan(**asked)
    assert answer.advice
    assert all(advice.suggestion.endswith("By itself that is not enough.") for advice in answer.advice)
    for advice in answer.advice:
        assert not followed(answer, asked, {advice.field}).options


@pytest.mark.parametrize(
    "asked",
    [
        LARGE | {"gpus": 8, "max_nodes": 64},
        LARGE | {"nodes": 1, "recompute": "none"},
        LARGE | {"method": "full_finetune", "max_nodes": 1, "sharding": "none"},
        {"precision": "nvfp4", "method": "qlora"},
        {"tensor_parallel": 8, "gpus": 4, "micro_batch": 4096},
    ],
)
def test_every_change_that_is_given_alone_helps(asked: dict[str, Any]) -> None:
    answer = plan(**asked)
    assert not answer.options
    assert answer.advice
    for advice in answer.advice:
        assert followed(answer, asked, {advice.field}).options, advice
