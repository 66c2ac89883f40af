"""Strategies and jobs: each costs and saves what its law says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.engine.training.memory import training_memory
from planner.engine.training.recipe import GRADIENT_BYTES, NATURAL_IMBALANCE
from planner.engine.training.stages import stage_memories
from planner.engine.training.step import HOST_UPDATE_BYTES_S, step_time
from planner.engine.training.work import model_work
from tests.engine.training.cases import (
    GIB,
    LLAMA_8B,
    LLAMA_70B,
    MOE_30B,
    layout,
    memory_constants,
    recipe,
    scalar,
    step_constants,
)

WORK_8B, WORK_70B = model_work(LLAMA_8B), model_work(LLAMA_70B)


def test_zero_bubble_leaves_a_third_of_the_bubble_of_plain_multiplications() -> None:
    """ZB-H1: (p - 1)(F + B - W) where 1F1B waits (p - 1)(F + B + W); F = B = W where only matrices count."""
    where = layout(gpus=32.0, tensor=8.0, pipeline=4.0, zero_bubble=np.array([0.0, 1.0]))
    plain = step_constants(exposed_tensor=0.0, layer_overhead_s=0.0, elementwise_traffic=0.0, attention_efficiency=1e9)
    step = step_time(WORK_70B, recipe(global_batch=32.0), where, plain)
    assert step.pipeline_bubble[1] / step.pipeline_bubble[0] == pytest.approx(1 / 3, rel=0.02)
    assert step.compute[0] == step.compute[1]


def test_an_offloaded_optimizer_leaves_the_gpu_and_pays_on_the_host() -> None:
    where = layout(sharding="zero1", host_bytes_s=50e9)
    on_gpu, on_host = recipe(), recipe(offload_optimizer=1.0)
    kept, moved = (training_memory(WORK_8B, r, where, memory_constants()) for r in (on_gpu, on_host))
    assert scalar(kept.optimizer) / GIB == pytest.approx(12 * 8.030e9 / 8 / GIB, rel=1e-3)
    assert scalar(moved.optimizer) == 0.0
    assert scalar(moved.weights) == scalar(kept.weights)
    step = step_time(WORK_8B, on_host, where, step_constants())
    params = 8.030e9 / 8
    by_hand = params * ((2 + 2) / 50e9 + (2 + 2 + 24) / HOST_UPDATE_BYTES_S)
    assert scalar(step.offload) == pytest.approx(by_hand, rel=1e-3)
    assert scalar(step.optimizer) == 0.0


@pytest.mark.parametrize(("name", "share"), [("none", 1.0), ("8bit", 0.5), ("1bit", 1 / 16)])
def test_compressed_gradients_take_their_share_of_the_network(name: str, share: float) -> None:
    where = layout(gpus=64.0, sharding="none", micro_batch=1.0)
    shown = step_constants(data_overlap=0.0, exposed_data=1.0, network_latency_s=0.0, link_latency_s=0.0)
    whole = scalar(step_time(WORK_8B, recipe(), where, shown).data_comm)
    less = scalar(step_time(WORK_8B, recipe(grad_comm_bytes=GRADIENT_BYTES[name]), where, shown).data_comm)
    assert less / whole == pytest.approx(share)


def test_muon_multiplies_matrices_where_others_only_move_states() -> None:
    where = layout(sharding="zero1")
    muon = recipe(optimizer_bytes=8.0, update_flops_per_param=30.0 * 4096)
    plain = scalar(step_time(WORK_8B, recipe(optimizer_bytes=8.0), where, step_constants()).optimizer)
    more = scalar(step_time(WORK_8B, muon, where, step_constants()).optimizer) - plain
    assert more == pytest.approx(8.030e9 / 8 * 30 * 4096 / (0.7 * 989e12), rel=1e-3)


def test_a_teacher_costs_one_forward_pass_its_weights_and_its_logits() -> None:
    where = layout(sharding="zero3", gpus=64.0)
    alone = step_time(WORK_8B, recipe(), where, step_constants())
    taught = step_time(WORK_8B, recipe(), where, step_constants(), WORK_8B)
    forward = (alone.compute + alone.elementwise) / 3 + alone.attention / 3.5
    assert scalar(taught.teacher) > scalar(forward)
    assert scalar(taught.teacher) == pytest.approx(scalar(forward), rel=0.05)
    assert scalar(taught.compute) == scalar(alone.compute)
    own = training_memory(WORK_8B, recipe(), where, memory_constants())
    both = training_memory(WORK_8B, recipe(), where, memory_constants(), WORK_70B)
    assert scalar(both.weights) - scalar(own.weights) == pytest.approx(2 * 70.554e9 / 64, rel=1e-3)
    assert scalar(both.logits) == pytest.approx(2 * scalar(own.logits))


def test_unequal_experts_keep_more_activations_on_the_busiest_rank() -> None:
    where = layout(expert=8.0)
    work = model_work(MOE_30B)
    even = scalar(training_memory(work, recipe(), where, memory_constants()).activations)
    real = scalar(
        training_memory(work, recipe(expert_imbalance=NATURAL_IMBALANCE), where, memory_constants()).activations
    )
    tokens, routed = 8192, 48 * 8 * (3 * 768 + 2048)
    assert real - even == pytest.approx(0.3 * tokens * 2 * routed, rel=1e-6)


def test_the_fullest_stage_is_what_the_plan_is_sized_by() -> None:
    where = layout(gpus=64.0, tensor=4.0, pipeline=4.0, virtual=5.0, sharding="zero1")
    law = memory_constants(fragmentation=0.05, reserve_bytes=1e9)
    for batch in (8.0, 64.0):
        asked = recipe(global_batch=batch)
        found = stage_memories(WORK_70B, asked, where, law)
        assert found.memory.total.max() == pytest.approx(scalar(training_memory(WORK_70B, asked, where, law).total))
    assert found.layers.sum() == 80
    assert (np.diff(found.in_flight) < 0).all()


def test_the_first_stage_keeps_p_micro_batches_and_the_last_one() -> None:
    found = stage_memories(WORK_70B, recipe(), layout(gpus=32.0, pipeline=8.0), memory_constants())
    assert found.in_flight.tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    assert np.flatnonzero(found.memory.logits).tolist() == [7]
    embedding = 128256 * 8192 * 2
    assert found.memory.weights[0] - found.memory.weights[1] == pytest.approx(embedding)
    assert found.memory.weights[-1] == found.memory.weights[0]


def test_stages_of_126_layers_give_the_ends_a_layers_place() -> None:
    work = replace(WORK_70B, layers=126.0)
    found = stage_memories(work, recipe(), layout(gpus=64.0, pipeline=8.0), memory_constants())
    assert found.layers.tolist() == [15, 16, 16, 16, 16, 16, 16, 15]


def test_a_quantized_base_is_unpacked_twice_a_micro_batch() -> None:
    """NF4: 0.516 bytes read, 2 written, 2 read for each weight, forward and backward, over memory bandwidth."""
    frozen = {"frozen_base": 1.0, "adapter_params": 1e7, "base_weight_bytes": 4.127 / 8, "global_batch": 1.0}
    where = layout(gpus=1.0)
    packed, plain = (
        step_time(WORK_70B, recipe(base_is_shardable=flag, **frozen), where, step_constants()).elementwise
        for flag in (0.0, 1.0)
    )
    weights = 70.554e9 - 2 * 128256 * 8192
    assert scalar(packed) - scalar(plain) == pytest.approx(2 * weights * (4.127 / 8 + 4) / 3.35e12, rel=1e-3)
