"""Worked values of the modelling handbook that no other test file states in its own words."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.collectives import LINK_CLASSES, Topology, all_reduce
from planner.engine.cost import usd_per_million_tokens
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu, kv_pages, logged_tokens
from planner.engine.model_arch import ModelArch
from planner.engine.serving import AdmissionLimits, ServingLoad, steady_state
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_work import token_work
from planner.engine.sizing import cached_tokens, demand_of, load_of
from planner.engine.step_time import TERMS, StepCoefficients, step_terms, step_time
from planner.engine.units import GIB
from planner.engine.workload import InferenceQuestion


def model(name: str) -> ModelArch:
    arch = find_model(name)
    assert arch is not None
    return arch


@pytest.mark.parametrize(
    ("name", "pool_gib", "tokens"),
    [("qwen2.5-14b", 41.43, 226_240), ("gemma-3-27b", 109.86, 205_696), ("deepseek-v3", 41.60, 635_648)],
)
def test_token_line_of_a_pool(name: str, pool_gib: float, tokens: int) -> None:
    """The pool is printed to 0.01 GiB, so a line is reproduced to that rounding."""
    line = logged_tokens(model(name), "bf16", 1, 1, pool_gib * GIB, max_model_len=4096, by_concurrency=False)
    assert float(line) == pytest.approx(tokens, rel=2.5e-3)


@pytest.mark.parametrize(("tokens", "percent"), [(1, 3.1), (8, 22.4), (32, 63.8), (64, 86.9), (128, 98.3)])
def test_experts_covered_by_a_batch(tokens: int, percent: float) -> None:
    """8 of 256 experts a token: the share of expert weights an iteration streams."""
    idle = StepCoefficients(*[0.0] * len(StepCoefficients._fields))
    one_second = idle._replace(
        pipeline=1.0,
        attention_ranks=1.0,
        prompt_ranks=1.0,
        expert_weights_s=1.0,
        expert_miss_log=float(np.log1p(-8 / 256)),
    )
    experts = step_terms(one_second, float(tokens), 0.0, 0.0, 0.0)[TERMS.index("experts")]
    assert 100 * experts == pytest.approx(percent, abs=0.06)


NOTHING = StepCoefficients(*[0.0] * len(StepCoefficients._fields))._replace(
    pipeline=1.0, attention_ranks=1.0, prompt_ranks=1.0
)


def step_ms(coefficients: StepCoefficients, sequences: float, context: float) -> float:
    return 1e3 * float(step_time(coefficients, sequences, sequences * context, 0.0, 0.0))


def test_attention_flops_of_a_token_in_the_middle_of_its_prompt() -> None:
    """Llama 3.1 8B, 8,192 tokens: 2.147 GFLOP a token beside 15.010 in the matrices."""
    work = token_work(model("llama-3.1-8b"))
    assert work.pair_flops * 8192 / 2 / 1e9 == pytest.approx(2.147, abs=0.001)
    assert (work.dense_flops + work.head_flops) / 1e9 == pytest.approx(15.010, abs=0.001)


def test_blocks_of_a_small_models_pool() -> None:
    """0.80 x 79.19 - 1.12 - 0.16 - 0.23 = 61.84 GiB hold 36,184 blocks of Qwen3 0.6B."""
    pool_gib = 0.80 * 79.19 - 1.12 - 0.16 - 0.23
    assert pool_gib == pytest.approx(61.84, abs=0.005)
    assert int(pool_gib * GIB // float(kv_pages(model("qwen3-0.6b"), "bf16", 1, 1).block_bytes)) == pytest.approx(
        36_184, abs=3
    )


def test_pool_of_the_120b_in_blocks_of_half_its_layers() -> None:
    """5.38 GiB: 9,793 +- 10 blocks of 18 x 32,768 bytes, printed as 78,384 tokens of all 36 layers."""
    arch = model("gpt-oss-120b")
    pages = kv_pages(arch, "bf16", 1, 1)
    assert float(pages.block_bytes) == 18 * 32_768
    assert int(5.38 * GIB // float(pages.block_bytes)) == pytest.approx(9_793, abs=10)
    line = logged_tokens(arch, "bf16", 1, 1, 5.38 * GIB, max_model_len=131_072, by_concurrency=False)
    assert float(line) == pytest.approx(78_384, abs=90)


def test_measured_token_time_at_8192_tokens_of_context() -> None:
    """6.44 ms + 4.37e-5 ms a context token (Llama 3.1 8B on one H100): 6.80 ms."""
    measured = NOTHING._replace(dense_weights_s=6.44e-3, context_token_s=4.37e-8)
    assert step_ms(measured, 1.0, 8192.0) == pytest.approx(6.80, abs=0.003)
    assert round(1e3 / step_ms(measured, 1.0, 8192.0)) == 147


def test_one_step_of_the_70b_on_eight_gpus() -> None:
    """64 sequences of 2,048 tokens: 6.10 ms weights, 1.89 ms KV, 160 all-reduces of 1 MiB at 15.0 us; 6,160 tok/s."""
    arch = model("llama-3.1-70b")
    weights_s = 17.4e9 / (0.85 * 3.35e12)
    context_s = float(kv_bytes_per_token_per_gpu(arch, "bf16", 8, 1)) / (0.85 * 3.35e12)
    reduce_s = 2 * arch.layers * 15.0e-6
    assert 64 * arch.hidden * 2 == 2**20
    assert reduce_s * 1e3 == pytest.approx(2.40)
    assert weights_s * 1e3 == pytest.approx(6.10, abs=0.02)
    assert 64 * 2048 * context_s * 1e3 == pytest.approx(1.89, abs=0.01)
    step = step_ms(
        NOTHING._replace(dense_weights_s=weights_s, context_token_s=context_s, collective_s=reduce_s), 64.0, 2048.0
    )
    assert step == pytest.approx(10.4, abs=0.02)
    assert 64 / step * 1e3 == pytest.approx(6_160, rel=0.003)


def test_all_reduce_over_four_nodes() -> None:
    """4 GiB over 32 ranks at 377.34 GB/s of bus bandwidth take 22.05 ms: 36.5 GB/s a NIC of 50, 73 %."""
    nic_share = 377.34 * (4 - 1) / (32 - 1) / 50
    assert nic_share == pytest.approx(0.73, abs=0.001)
    laws = replace(serving_profiles().collectives, network_share=nic_share, network_latency_s=0.0)
    topology = Topology(
        link_class=np.array([LINK_CLASSES.index("nvlink")] * 2),
        link_bytes_s=np.full(2, 900e9),
        domain_gpus=np.full(2, 8),
        network_bytes_s=np.full(2, 50e9),
    )
    _, byte_s = all_reduce(laws, topology, np.array([32.0, 8.0]))
    assert float(byte_s[0] - byte_s[1]) * 4 * GIB * 1e3 == pytest.approx(22.05, abs=0.02)


def test_fixed_point_of_an_open_loop() -> None:
    """10 req/s of 1,000 + 200 tokens on an 8B: prefill takes 0.231 of the time, 19.1 decode at 9.57 ms (7.13 alone)."""
    step = NOTHING._replace(dense_weights_s=6.44e-3, context_token_s=4.37e-8, pair_s=0.0231 / (1000 * 500))
    nothing_else: dict[str, Any] = {f.name: np.zeros(1) for f in fields(ServingCoefficients) if f.name != "step"}
    c = ServingCoefficients(step=step, **nothing_else)
    load = ServingLoad(kind="open", input_tokens=1000.0, output_tokens=200.0, requests_s=np.array([10.0]))
    limits = AdmissionLimits(kv_sequences=500.0, max_num_seqs=256.0, max_num_batched_tokens=8192.0)
    found = steady_state(c, load, limits)
    assert float(found.tpot_s["mean"][0]) * 1e3 == pytest.approx(9.57, rel=0.03)
    quiet = steady_state(replace(c, step=step._replace(pair_s=step.pair_s * 1e-6)), load, limits)
    assert float(quiet.tpot_s["mean"][0]) * 1e3 == pytest.approx(7.13, rel=0.01)


# Users' questions with a settled answer


def test_a_stage_of_32_layers_needs_two_thirds_of_the_cache() -> None:
    """vllm#34076: 262,144 tokens of a 48-layer model split 16 / 32: 8 and 16 GiB, not 24 on each."""
    arch = model("Qwen3-Coder 30B-A3B")
    whole = 262_144 * float(kv_bytes_per_token_per_gpu(arch, "bf16", 1, 1)) / GIB
    assert (whole, whole * 16 / 48, whole * 32 / 48) == (24.0, 8.0, 16.0)


def test_pages_and_tokens_are_not_the_same_million() -> None:
    """olmocr#249: 3 pages, 2,190 tokens in 32.82 s at $0.001097/s: $16.44 a million tokens, $12,001 a million pages."""
    hour = Decimal("0.001097") * 3600
    assert float(usd_per_million_tokens(hour, 2190 / 32.82)) == pytest.approx(16.44, abs=0.005)
    assert float(usd_per_million_tokens(hour, 3 / 32.82)) == pytest.approx(12_001, abs=1)


def test_input_and_output_of_a_day_are_counted_apart() -> None:
    """ai_for_the_win#270: 2,500 requests a day of 3k + 500 tokens are 7.5M in and 1.25M out."""
    asked = InferenceQuestion(
        model="m", input_tokens=3000, output_tokens=500, users=2500, requests_per_user_per_day=1, peak_factor=1
    )
    day = demand_of(asked).mean_requests_s * 86_400
    assert day * asked.input_tokens == pytest.approx(7.5e6)
    assert day * asked.output_tokens == pytest.approx(1.25e6)


def test_cached_tokens_are_a_part_of_the_input() -> None:
    """agentic-coding-harness-benchmarks#136: cache reads partition the input, they don't add to it."""
    asked = InferenceQuestion(model="m", requests_per_second=1, input_tokens=10_000, prefix_cache_hit=0.97)
    load = load_of(asked, demand_of(asked, 16), 1.0)
    cached = cached_tokens(asked, 16)
    assert cached == 9696
    assert load.prompt_tokens + cached == pytest.approx(10_000)
