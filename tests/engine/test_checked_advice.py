"""Ways out of a serving plan: each is planned with before it is given."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.units import GIB
from tests.engine.small_catalog import accelerator, snapshot
from tests.engine.test_inference_plan import plan

SMALL = snapshot(card=accelerator(memory_bytes=24 * GIB))


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3.1-70b", "max_nodes": 1, "weight_formats": ["bf16"], "tensor_parallel": 1},
        {"model": "llama-3.1-70b", "max_nodes": 1, "weight_formats": ["bf16"], "tensor_parallel": 4},
        {"requests_per_second": 1e5, "max_nodes": 1},
        {"budget_usd_per_month": 1},
        {"ttft_ms": 1, "tpot_ms": 0.1},
        {"ttft_ms": 1, "requests_per_second": 1},
        {"budget_usd_per_month": 1, "ttft_ms": 1},
    ],
)
def test_advice_helps_alone_or_says_that_it_does_not(asked: dict[str, Any]) -> None:
    answer = plan(SMALL, **asked)
    assert not answer.options
    ways = [advice for advice in answer.advice if not advice.is_warning]
    assert ways
    for way in ways:
        helped = bool(plan(SMALL, **{**asked, **way.changes}).options)
        assert helped != way.suggestion.endswith("By itself that is not enough."), way
