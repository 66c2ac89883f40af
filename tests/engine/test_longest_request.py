"""The longest request an engine is started for: what cannot hold it is not offered, or says what it can hold."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.answers import InferencePlan
from planner.engine.units import GIB
from tests.engine.test_regime_plans import plan

TIGHT: dict[str, Any] = {
    "model": "llama-3.1-70b", "requests_per_second": 0.1, "tensor_parallel": 1, "weight_formats": ["awq_int4"],
    "memory_utilization": 0.8,
}  # fmt: skip


def warned(found: InferencePlan) -> list[str]:
    return [item.suggestion for item in found.advice if item.is_warning]


def test_what_the_engine_must_be_started_with_is_said() -> None:
    found = plan(**TIGHT)
    option = next(each for each in found.options if each.id == found.recommended)
    # 327,680 bytes a token at 16 bit: a pool of so many tokens, in blocks of 16.
    held = int(option.memory.parts_gib["kv_cache"] * GIB / 327_680) // 16 * 16
    assert 1_250 < held < 131_072
    (said,) = warned(found)
    assert f"max_model_len) of up to {held:,} tokens" in said
    assert "none of the model's 131,072" in said
    # Started so, it runs; with a block more it doesn't.
    assert warned(plan(**TIGHT, max_model_len=held)) == []
    assert plan(**TIGHT, max_model_len=held).recommended == found.recommended
    assert plan(**TIGHT, max_model_len=held + 16).options == ()


def test_engines_that_cut_the_length_are_not_warned_of() -> None:
    assert warned(plan(**TIGHT, engine="sglang")) == []


def test_a_pool_that_holds_the_whole_context_needs_no_word() -> None:
    assert warned(plan(model="llama-3.1-8b")) == []


def test_an_option_that_cannot_start_as_asked_is_rejected_with_the_length() -> None:
    found = plan(**TIGHT, max_model_len=131_072)
    assert found.options == ()
    refused = next(item for item in found.rejections if item.code == "kv_memory")
    assert "holds no request of 131,072 tokens" in refused.reason


@pytest.mark.parametrize("longest", [2_000, 16_384, 131_072])
def test_every_option_holds_the_longest_request_asked_for(longest: int) -> None:
    found = plan(
        **TIGHT | {"tensor_parallel": None, "weight_formats": ["auto"]}, max_model_len=longest, max_options=200
    )
    assert found.options
    assert min(each.admission.concurrency_at_max_model_len for each in found.options) >= 1.0
