"""Worked numbers of the training handbook: states, activations, pipeline, batch, reliability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from catalog.model_files import find_model
from planner.engine.param_count import count_parameters
from planner.engine.training.batch import critical_batch_tokens, final_loss
from planner.engine.training.goodput import (
    Reliability,
    checkpoint_bytes,
    daly_interval_s,
    goodput,
    interruptions_per_day,
    mean_time_to_interruption_s,
    waste,
    young_interval_s,
)
from planner.engine.training.memory import in_flight, layer_activation_bytes, training_memory
from planner.engine.training.recipe import model_flops_per_token
from planner.engine.training.step import step_time
from planner.engine.training.work import model_work
from tests.engine.training.cases import (
    GIB,
    GPT3,
    LLAMA_8B,
    LLAMA_70B,
    decoder,
    layout,
    memory_constants,
    recipe,
    scalar,
    step_constants,
)

GB = 1e9


def states_gb(arch, sharding: str, gpus: float = 8.0, **of_recipe: float) -> float:
    memory = training_memory(
        model_work(arch), recipe(**of_recipe), layout(gpus=gpus, sharding=sharding), memory_constants()
    )
    return scalar(memory.weights + memory.gradients + memory.optimizer) / GB


@pytest.mark.parametrize(
    ("sharding", "expected"), [("none", 128.48), ("zero1", 44.17), ("zero2", 30.11), ("zero3", 16.06)]
)
def test_states_of_llama_8b_on_8_gpus(sharding: str, expected: float) -> None:
    assert states_gb(LLAMA_8B, sharding) == pytest.approx(expected, abs=0.005)


def test_states_of_llama_70b() -> None:
    assert states_gb(LLAMA_70B, "none") == pytest.approx(1128.9, abs=0.05)
    assert states_gb(LLAMA_70B, "zero3") == pytest.approx(141.1, abs=0.05)


def test_fsdp_8_against_128_ranks() -> None:
    for bytes_per_param, expected_gib in ((16.0, 14.02), (18.0, 15.78)):
        optimizer = bytes_per_param - 4.0
        difference = states_gb(LLAMA_8B, "zero3", optimizer_bytes=optimizer) - states_gb(
            LLAMA_8B, "zero3", gpus=128.0, optimizer_bytes=optimizer
        )
        assert difference * GB / GIB == pytest.approx(expected_gib, abs=0.01)


@pytest.mark.parametrize(
    ("grad_bytes", "expected"), [(2.0, lambda p, n: 2 * p + 14 * p / n), (4.0, lambda p, n: 2 * p + 16 * p / n)]
)
def test_zero2_exposes_the_gradient_type(grad_bytes: float, expected) -> None:
    params = scalar(model_work(LLAMA_8B).params_total)
    assert states_gb(LLAMA_8B, "zero2", grad_bytes=grad_bytes) * GB == pytest.approx(expected(params, 8))


def test_adam_of_6_7_billion_takes_107_gb() -> None:
    llama2 = decoder("7B", 32, 4096, 32, 32, 11008, 32000)
    assert states_gb(llama2, "none") == pytest.approx(107.8, abs=0.1)


def test_fp32_parameters_with_adam_take_12_bytes() -> None:
    llama2 = decoder("7B", 32, 4096, 32, 32, 11008, 32000)
    taken = states_gb(llama2, "none", weight_bytes=4.0, grad_bytes=0.0, optimizer_bytes=8.0)
    assert 80.4 <= taken <= 80.9


def test_four_bit_base_is_whole_on_every_rank() -> None:
    llama2_70b = decoder("70B", 80, 8192, 64, 8, 28672, 32000)
    qlora = {"frozen_base": 1.0, "base_weight_bytes": 4.127 / 8, "base_is_shardable": 0.0}
    assert states_gb(llama2_70b, "zero3", **qlora) == pytest.approx(35.6, abs=0.1)
    assert states_gb(llama2_70b, "zero3", gpus=64.0, **qlora) == pytest.approx(35.6, abs=0.1)


def activation_gib(arch, tokens: float, *, layers: float, recompute: str = "none", **of_recipe: float) -> float:
    work = model_work(arch)
    per_token = layer_activation_bytes(work, recipe(**of_recipe), layout(recompute=recompute))
    return scalar(per_token) * tokens / scalar(work.layers) * layers / GIB


def test_llama_8b_keeps_139264_bytes_a_token_and_layer() -> None:
    assert scalar(layer_activation_bytes(model_work(LLAMA_8B), recipe(), layout())) / 32 == 139_264


def test_activations_of_a_4096_wide_layer() -> None:
    gpt = decoder("gpt", 32, 4096, 32, 32, 16384, 51200, gated=False)
    old: dict[str, Any] = {"dropout": 1.0, "flash_attention": 0.0}
    assert activation_gib(gpt, 8192, layers=1, **old) == pytest.approx(11.0625, abs=0.01)
    assert activation_gib(gpt, 8192, layers=1, dropout=1.0) == pytest.approx(1.0625)
    assert activation_gib(gpt, 8192, layers=32, dropout=1.0) == pytest.approx(34.0)


def test_full_recompute_keeps_one_input_a_layer() -> None:
    gpt = decoder("gpt", 32, 4096, 32, 32, 16384, 51200, gated=False)
    memory = training_memory(
        model_work(gpt), recipe(dropout=1.0), layout(gpus=1.0, recompute="full"), memory_constants()
    )
    one_layer_peak = 1.0625
    assert scalar(memory.activations) / GIB == pytest.approx(2.0 + one_layer_peak)


def test_gpt3_layer_with_tensor_and_sequence_parallelism() -> None:
    per_layer = []
    for sequence_parallel in (0.0, 1.0):
        old = recipe(sequence_length=2048.0, dropout=1.0, sequence_parallel=sequence_parallel, flash_attention=0.0)
        per_token = layer_activation_bytes(model_work(GPT3), old, layout(tensor=8.0))
        per_layer.append(scalar(per_token) * 2048 / 96 / GIB)
    assert per_layer == pytest.approx([0.539, 0.334], abs=0.001)


def test_first_stage_of_8_holds_8_micro_batches() -> None:
    stages = layout(gpus=8.0, pipeline=8.0, recompute="full")
    assert scalar(in_flight(recipe(global_batch=32.0), stages)) == 8.0
    wide = decoder("wide", 80, 8192, 64, 8, 28672, 128256)
    memory = training_memory(model_work(wide), recipe(global_batch=32.0), stages, memory_constants())
    one_layer_peak = scalar(layer_activation_bytes(model_work(wide), recipe(), stages)) * 8192 / 80
    assert (scalar(memory.activations) - one_layer_peak) / GIB == pytest.approx(10.0)


def test_logits_of_one_sequence() -> None:
    for sequences, expected in ((1.0, 3.914), (2.0, 7.83)):
        memory = training_memory(
            model_work(LLAMA_8B), recipe(), layout(micro_batch=sequences), memory_constants(logits_bytes=4.0)
        )
        assert scalar(memory.logits) / GIB == pytest.approx(expected, abs=0.005)


def test_flops_per_token_and_published_mfu() -> None:
    work = model_work(LLAMA_8B)
    non_causal = scalar(model_flops_per_token(work, 8192, "non_causal"))
    assert scalar(model_flops_per_token(work, 8192, "causal")) / 1e9 == pytest.approx(51.472, abs=0.002)
    assert non_causal / 1e9 == pytest.approx(57.914, abs=0.002)
    assert 5762 * non_causal / 989e12 == pytest.approx(0.337, abs=0.0005)


@pytest.mark.parametrize(
    ("stages", "micro_batches", "chunks", "of_ideal", "of_total"),
    [(8, 32, 1, 0.219, 0.179), (8, 32, 4, 0.055, 0.052), (16, 128, 1, 0.117, 0.105)],
)
def test_pipeline_bubble(stages: int, micro_batches: int, chunks: int, of_ideal: float, of_total: float) -> None:
    arch = decoder("even", 128, 2048, 16, 16, 8192, 32000)
    step = step_time(
        model_work(arch),
        recipe(global_batch=float(micro_batches)),
        layout(gpus=float(stages), pipeline=float(stages), virtual=float(chunks)),
        step_constants(exposed_pipeline=0.0, step_overhead_s=0.0, optimizer_traffic=0.0, straggler=0.0),
    )
    bubble, total = scalar(step.pipeline_bubble), scalar(step.total)
    assert bubble / (total - bubble) == pytest.approx(of_ideal, abs=0.0006)
    assert bubble / total == pytest.approx(of_total, abs=0.0006)


def test_tensor_parallel_moves_four_reductions_a_layer() -> None:
    step = step_time(
        model_work(LLAMA_70B),
        recipe(global_batch=1.0),
        layout(tensor=8.0),
        step_constants(link_efficiency=1.0, link_latency_s=0.0, exposed_tensor=1.0),
    )
    message = 8192 * 8192 * 2
    assert message / 2**20 == 128
    assert scalar(step.tensor_comm) == pytest.approx(320 * 2 * 7 / 8 * message / 450e9)


def test_whole_run_arithmetic() -> None:
    for params, tokens, gpu_hours, tflops in (
        (8.03e9, 15e12, 1.46e6, 137.5),
        (70.55e9, 15e12, 7.0e6, 252),
        (405.85e9, 15.6e12, 30.84e6, 342),
    ):
        assert 6 * params * tokens / (gpu_hours * 3600) / 1e12 == pytest.approx(tflops, abs=0.6)
    # DeepSeek-V3: 14.8 T tokens in 2.664 M H800-hours.
    rate = 14.8e12 / (2.664e6 * 3600)
    assert rate == pytest.approx(1543, abs=0.5)
    arch = find_model("DeepSeek V3")
    assert arch is not None
    assert 6 * count_parameters(arch).active * rate / 1e12 == pytest.approx(343, rel=0.02)
    seconds = 6 * 70.55e9 * 15e12 / (1024 * 0.4 * 989e12)
    assert seconds / 86400 == pytest.approx(181.4, abs=0.1)


def test_loss_and_critical_batch() -> None:
    assert final_loss(70e9, 1.4e12) == pytest.approx(1.9739, abs=0.0001)
    assert final_loss(8e9, 15e12) == pytest.approx(2.0221, abs=0.0001)
    assert critical_batch_tokens(2.0) == pytest.approx(7.4e6, rel=0.01)


def test_interruptions_of_the_405b_run() -> None:
    fleet = Reliability()
    assert fleet.gpu_hours_per_interruption == pytest.approx(50_677, abs=1)
    assert mean_time_to_interruption_s(16_384, fleet) / 3600 == pytest.approx(3.093, abs=0.001)
    assert interruptions_per_day(16_384, fleet) == pytest.approx(419 / 54)
    assert 8760 / fleet.gpu_hours_per_interruption == pytest.approx(0.173, abs=0.001)
    assert scalar(goodput(16_384, fleet)) > 0.90


@pytest.mark.parametrize(("gpus", "hours"), [(1024, 28.8), (16_384, 1.80), (131_072, 0.225)])
def test_mttf_of_a_research_cluster(gpus: int, hours: float) -> None:
    fleet = Reliability(gpu_hours_per_interruption=1000 * 24 * 8 / 6.5)
    assert mean_time_to_interruption_s(gpus, fleet) / 3600 == pytest.approx(hours, rel=0.005)


@pytest.mark.parametrize(("stall", "interval", "lost"), [(10, 472, 0.096), (60, 1156, 0.158), (300, 2585, 0.286)])
def test_checkpoint_interval_and_waste(stall: float, interval: float, lost: float) -> None:
    mtti = 3.093 * 3600
    best = young_interval_s(stall, mtti)
    assert scalar(best) == pytest.approx(interval, abs=0.6)
    assert scalar(waste(stall, best, mtti, 600.0)) == pytest.approx(lost, abs=0.0006)
    assert daly_interval_s(stall, mtti) < scalar(best)


def test_checkpoint_sizes() -> None:
    assert checkpoint_bytes(70.55e9) / 1e12 == pytest.approx(0.99, abs=0.005)
    assert checkpoint_bytes(405.85e9) / 1e12 == pytest.approx(5.68, abs=0.005)


def test_deepspeed_estimator_of_zero3() -> None:
    plain = replace(model_work(LLAMA_8B), params_dense=6805e6, params_embedding=0.0, params_experts=0.0)
    memory = training_memory(plain, recipe(grad_bytes=4.0), layout(gpus=4.0, sharding="zero3"), memory_constants())
    states = scalar(memory.weights + memory.gradients + memory.optimizer)
    assert states / GIB == pytest.approx(28.52, abs=0.01)
    assert np.isclose(states / GIB + 4 * 131e6 / GIB, 29.01, atol=0.01)
