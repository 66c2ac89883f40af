"""The step time's launch floor, and what candidates are keyed by."""

from dataclasses import replace

import numpy as np
import pytest

from catalog.profiles import serving_profiles
from planner.engine.model_arch import AttentionGroup
from planner.engine.serving_candidates import MODES, candidate_keys, power_class
from planner.engine.serving_coefficients import build_coefficients
from planner.engine.step_time import NO_GRAPHS, TERMS, StepCoefficients, decode_time, step_terms, step_time
from tests.engine.serving_cases import LLAMA_8B, QWEN_30B_A3B, accelerator, candidates

COEFFICIENTS = StepCoefficients(*[0.0] * len(StepCoefficients._fields))._replace(
    pipeline=1.0,
    attention_ranks=1.0,
    prompt_ranks=1.0,
    dense_token_s=1e-5,
    prefill_launch_s=0.02,
    graph_tokens=512.0,
    step_s=1e-3,
)


def launch_s(decodes: float, prompt: float) -> float:
    return float(step_terms(COEFFICIENTS, decodes, 0.0, prompt, 0.0)[TERMS.index("prefill_launch")])


def test_a_prompt_that_a_captured_graph_holds_costs_no_launch():
    assert launch_s(0.0, 512.0) == 0.0
    assert launch_s(12.0, 500.0) == 0.0


def test_decoding_alone_costs_no_launch_however_large_the_batch():
    assert launch_s(1000.0, 0.0) == 0.0


def test_an_uncaptured_iteration_lasts_at_least_its_launches():
    assert step_time(COEFFICIENTS, 0.0, 0.0, 600.0, 0.0) == pytest.approx(0.02 + 1e-3, rel=0.01)
    assert step_time(COEFFICIENTS, 300.0, 0.0, 300.0, 0.0) == pytest.approx(0.02 + 1e-3, rel=0.01)


def test_graphs_are_a_ranks_own():
    """Two ranks of 200 decodes and a prompt of 300 on one of them: 500 tokens there, which a graph holds."""
    two = COEFFICIENTS._replace(attention_ranks=2.0)
    launch = TERMS.index("prefill_launch")
    assert step_terms(two, 400.0, 0.0, 300.0, 0.0)[launch] == 0.0
    assert step_terms(two, 440.0, 0.0, 300.0, 0.0)[launch] > 0.0


def test_decodes_beside_prompts_cost_more_where_the_kernel_gives_each_a_tile():
    c = COEFFICIENTS._replace(context_token_s=1e-7, mixed_context_token_s=5e-8, graph_tokens=1e9)
    attention = TERMS.index("attention_decode")
    assert step_terms(c, 10.0, 1e5, 0.0, 0.0)[attention] == pytest.approx(0.010)
    assert step_terms(c, 10.0, 1e5, 300.0, 0.0)[attention] == pytest.approx(0.015)
    window = c._replace(window_token_s=1e-7, window_tokens=1e3, mixed_window_token_s=1e-7)
    assert step_terms(window, 10.0, 1e5, 300.0, 0.0)[attention] == pytest.approx(0.015 + 10 * 1e3 * 2e-7)


def test_without_graphs_decoding_waits_for_its_launches_too():
    assert step_time(COEFFICIENTS._replace(graph_tokens=NO_GRAPHS), 8.0, 0.0, 0.0, 0.0) == pytest.approx(
        0.021, rel=0.01
    )


@pytest.mark.parametrize("arch", [LLAMA_8B, QWEN_30B_A3B])
@pytest.mark.parametrize("mode", MODES)
def test_decoding_alone_is_the_step_without_prompts(arch, mode):
    several = replace(candidates((1, 2, 4)), mode=np.full(3, MODES.index(mode)), pp=np.array([1.0, 2.0, 1.0]))
    c = build_coefficients(arch, several, serving_profiles()).step
    for sequences in (0.0, 1.0, 300.0):
        decoding = np.full(3, sequences)
        expected = step_time(c, decoding, decoding * 900.0, 0.0, 0.0)
        assert decode_time(c, decoding, decoding * 900.0) == pytest.approx(expected, rel=1e-12)


def test_work_longer_than_the_launches_hides_them():
    assert step_time(COEFFICIENTS, 0.0, 0.0, 8192.0, 0.0) == pytest.approx(0.08192 + 1e-3, rel=0.01)


@pytest.mark.parametrize(
    ("engine", "era", "mode", "tokens"),
    [
        ("vllm", "2026Q1", "server", 512.0),
        ("vllm", "2024Q1", "server", 0.0),
        ("vllm", "2026Q1", "eager", NO_GRAPHS),
        ("tensorrt_llm", "2026Q1", "server", 0.0),
        ("unheard of", "", "server", 0.0),
    ],
)
def test_graphs_that_hold_prompts_by_engine_and_era(engine, era, mode, tokens):
    one = replace(candidates(), engines=((engine, era),), mode=np.array([MODES.index(mode)]))
    assert build_coefficients(LLAMA_8B, one, serving_profiles()).step.graph_tokens.tolist() == [tokens]


def test_graphs_reach_twice_the_batch_limit_at_most():
    small = replace(candidates((1, 2)), max_num_seqs=np.array([128.0, 1024.0]))
    assert build_coefficients(LLAMA_8B, small, serving_profiles()).step.graph_tokens.tolist() == [256.0, 512.0]


@pytest.mark.parametrize(
    ("engine", "era", "capability", "slower"),
    [
        ("vllm", "2026Q1", "8.9", True),
        ("vllm", "2026Q1", "12.0", True),
        ("vllm", "2026Q1", "9.0", False),
        ("vllm", "2024Q1", "8.9", False),
        ("sglang", "2026Q1", "8.9", False),
    ],
)
def test_which_engines_decode_slower_beside_prompts(engine, era, capability, slower):
    """A card of much compute for its memory's rate: 64 queries of a tile still take longer than reading once."""
    card = accelerator(compute_capability=capability, memory_bandwidth_bytes_s=3e12, peak_flops={"bf16": 3e14})
    one = replace(candidates(accelerators=[card]), engines=((engine, era),))
    step = build_coefficients(LLAMA_8B, one, serving_profiles()).step
    tile_s = 64 * step.pair_s[0]
    assert tile_s > step.context_token_s[0]
    expected = tile_s - step.context_token_s[0] if slower else 0.0
    assert step.mixed_context_token_s[0] == pytest.approx(expected)


def test_latent_attention_decodes_in_a_kernel_of_its_own():
    card = accelerator(compute_capability="8.0", peak_flops={"bf16": 3e13})
    latent = replace(
        LLAMA_8B,
        attention=(
            AttentionGroup(
                kind="mla",
                layers=32,
                n_q=32,
                n_kv=1,
                head_dim=0,
                kv_lora_rank=512,
                rope_dim=64,
                nope_dim=128,
                v_head_dim=128,
            ),
        ),
    )
    step = build_coefficients(latent, candidates(accelerators=[card]), serving_profiles()).step
    assert step.mixed_context_token_s.tolist() == [0.0]


def test_attention_and_mlp_side_by_side_sum_once_a_layer():
    twice = build_coefficients(LLAMA_8B, candidates((4,)), serving_profiles()).step
    once = build_coefficients(replace(LLAMA_8B, parallel_block=True), candidates((4,)), serving_profiles()).step
    assert once.collective_s[0] == pytest.approx(twice.collective_s[0] / 2)
    assert once.collective_token_s[0] == pytest.approx(twice.collective_token_s[0] / 2)


@pytest.mark.parametrize(
    ("watts", "flops", "expected"), [(450.0, 165.2e12, "ample"), (350.0, 362e12, "tight"), (None, 362e12, "unknown")]
)
def test_cards_whose_power_holds_their_peak(watts, flops, expected):
    assert power_class(accelerator(tdp_w=watts, peak_flops={"bf16": flops})) == expected


@pytest.mark.parametrize(
    ("arch", "tp", "ep", "expected"),
    [
        (LLAMA_8B, 2, 1, "none"),
        (QWEN_30B_A3B, 2, 1, "sliced"),
        (QWEN_30B_A3B, 2, 2, "whole"),
        (QWEN_30B_A3B, 1, 2, "whole"),
    ],
)
def test_expert_layouts(arch, tp, ep, expected):
    assert candidate_keys(arch, candidates((tp,), ep=ep)).attributes(0)["experts"] == expected
