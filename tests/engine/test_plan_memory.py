"""What a plan says of its KV memory: how many requests it admits, and how sure that is."""

from __future__ import annotations

import pytest

from tests.engine.published_configs import LLAMA_8B_SIZES
from tests.engine.test_regime_plans import fault, one, plan


def test_concurrency_is_stated_at_the_asked_lengths_and_as_the_engine_logs_it() -> None:
    option = one(input_tokens=3500, output_tokens=596, max_model_len=4096)
    admission = option.admission
    pool = option.memory.parts_gib["kv_cache"] * 2**30
    assert admission.request_tokens == admission.max_model_len == 4096
    assert admission.concurrency == pytest.approx(int(pool / (131_072 * 16)) / 256)
    assert admission.log_lines == (
        f"GPU KV cache size: {admission.kv_cache_tokens:,} tokens",
        f"Maximum concurrency for 4,096 tokens per request: {admission.concurrency:.2f}x",
    )
    assert admission.kv_cache_tokens == int(admission.concurrency * 4096)
    assert fault(input_tokens=5000, max_model_len=4096) == ("max_model_len", "conflict")


def test_memory_says_how_sure_it_is() -> None:
    option = one()
    assert option.memory_confidence.kind == "calibrated"
    assert option.memory_confidence.low < 1 < option.memory_confidence.high
    assert option.memory_confidence.basis == "55 start-up logs, each without its own group in the fit"
    assert option.admission.confidence.kind == "exact"
    assert (option.admission.confidence.low, option.admission.confidence.high) == (1.0, 1.0)


def test_memory_of_an_engine_without_logs_is_extrapolated() -> None:
    option = plan(engine="sglang").options[0]
    assert option.memory_confidence.kind == option.admission.confidence.kind == "extrapolated"
    assert option.memory_confidence.high > one().memory_confidence.high
    unknown = plan(config=LLAMA_8B_SIZES | {"model_type": "brand_new"}, model="").options[0]
    assert unknown.memory_confidence.kind == unknown.admission.confidence.kind == "extrapolated"
