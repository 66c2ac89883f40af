"""Redundant experts: groups that divide experts and copies together, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from tests.engine.test_inference_plan import plan

WIDE: dict[str, Any] = {
    "model": "DeepSeek-V3",
    "attention_ranks": "data",
    "pools": "split",
    "requests_per_second": None,
    "concurrency": 20_000,
    "max_nodes": 100_000,
}


def test_a_group_of_144_ranks_holds_256_experts_and_32_copies() -> None:
    found = plan(**WIDE, expert_parallel=144, redundant_experts=32)
    assert {option.layout.expert for option in found.options} == {144}
    with pytest.raises(InvalidQuestion) as refused:
        plan(**WIDE, expert_parallel=144)
    (error,) = refused.value.errors
    assert (error.field, error.message) == ("expert_parallel", "256 experts are not divisible by 144.")


def test_the_search_takes_only_groups_that_experts_and_copies_divide_by() -> None:
    asked: dict[str, Any] = {"model": "qwen3-30b-a3b", "weight_formats": ["bf16"]}
    for copies in (0, 4, 8, 16, 24):
        for option in plan(**asked, redundant_experts=copies, max_options=500).options:
            assert (128 + copies) % option.layout.expert == 0
            assert option.layout.expert > 1 or not copies


def test_copies_without_expert_ranks_are_refused() -> None:
    with pytest.raises(InvalidQuestion) as refused:
        plan(model="qwen3-30b-a3b", redundant_experts=8, expert_parallel=1)
    assert {error.field for error in refused.value.errors} == {"redundant_experts"}
    nothing = plan(model="qwen3-30b-a3b", redundant_experts=3)
    assert not nothing.options
    assert ("redundant_experts", 0) in {(advice.field, advice.value) for advice in nothing.advice}
