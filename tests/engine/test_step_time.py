"""The step time's launch floor, and what candidates are keyed by."""

from dataclasses import replace

import numpy as np
import pytest

from catalog.profiles import serving_profiles
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
        ("vllm", "2026H1", "server", 512.0),
        ("vllm", "2024H1", "server", 0.0),
        ("vllm", "2026H1", "eager", NO_GRAPHS),
        ("tensorrt_llm", "2026H1", "server", 0.0),
        ("unheard of", "", "server", 0.0),
    ],
)
def test_graphs_that_hold_prompts_by_engine_and_era(engine, era, mode, tokens):
    one = replace(candidates(), engines=((engine, era),), mode=np.array([MODES.index(mode)]))
    assert build_coefficients(LLAMA_8B, one, serving_profiles()).step.graph_tokens.tolist() == [tokens]


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
