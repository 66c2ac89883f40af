"""Runs that can't advance, and FLOPs that can't be: refused, or counted as the attention that is there."""

from __future__ import annotations

from typing import Any

import pytest

from planner.services.planning import plan_inference, plan_training

pytestmark = pytest.mark.usefixtures("catalog")
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize("minutes", [0.1, 0.17, 10_000, 100_000])
def test_an_interval_that_loses_everything_names_a_way_out_or_plans(minutes: float) -> None:
    plan = plan_training({"model": LLAMA, "tokens": 1, "checkpoint_minutes": minutes})
    assert all(option.speed.goodput > 0 for option in plan.options)
    assert plan.options or plan.advice


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "meta-llama/Llama-3.2-1B", "method": "full_finetune", "sequence_length": 131_072},
        {"model": LLAMA, "method": "full_finetune"},
        {"model": "meta-llama/Llama-3.2-1B", "method": "lora", "sequence_length": 32_768},
    ],
)
def test_packed_samples_count_the_attention_within_their_documents(asked: dict[str, Any]) -> None:
    plan = plan_training({**asked, "tokens": 1e8, "accelerators": ["h100-sxm"]})
    assert plan.options
    assert all(option.speed.mfu < 0.8 for option in plan.options)


def test_a_job_of_one_request_has_one_in_flight() -> None:
    plan = plan_inference({"model": LLAMA, "offline_requests": 1, "offline_hours": 1, "accelerators": ["h100-sxm"]})
    assert all(option.speed.concurrency == 1 for option in plan.options)
