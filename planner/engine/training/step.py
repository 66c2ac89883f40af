"""Step time of every candidate, as terms that sum to the total.

One optimizer step is ``m`` micro-batches through ``p`` pipeline stages, then gradient reduction and
the optimizer. Each term is what that resource adds to the wall clock: communication terms count only
the exposed part. Formulas: handbook sections 4 and 5; a matrix multiplication of M x K by K x N takes
``2 (M N K + m0 N K + n0 M K + k0 M N) / (efficiency x peak)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from planner.engine.training.candidates import Num, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import StepConstants
from planner.engine.training.exposed import data_comm_s, micro_batch_comm
from planner.engine.training.forward import forward_pass
from planner.engine.training.groups import expert_data_group, local_params
from planner.engine.training.parts import FloatArray, Parts
from planner.engine.training.work import ModelWork

BACKWARD_OF_ATTENTION = 2.5
"""Flash attention's backward recomputes the scores: 5 matrix products for the forward's 2."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTime(Parts):
    """Seconds of one optimizer step by term; arrays, one entry a candidate. Terms sum to ``total``."""

    compute: FloatArray
    """Matrix multiplications of layers and head, forward and backward."""
    attention: FloatArray
    elementwise: FloatArray
    recompute: FloatArray
    tensor_comm: FloatArray
    context_comm: FloatArray
    expert_comm: FloatArray
    pipeline_bubble: FloatArray
    pipeline_comm: FloatArray
    data_comm: FloatArray
    optimizer: FloatArray
    offload: FloatArray
    """Gradients to the host, its update, weights back."""
    teacher: FloatArray
    """Forward pass of the teacher (distillation)."""
    overhead: FloatArray
    straggler: FloatArray


RESOURCE_OF: Final = {
    "compute": "compute",
    "attention": "compute",
    "recompute": "memory",
    "elementwise": "memory_bandwidth",
    "optimizer": "memory_bandwidth",
    "tensor_comm": "scale_up_link",
    "context_comm": "scale_up_link",
    "expert_comm": "all_to_all",
    "pipeline_bubble": "pipeline_bubble",
    "pipeline_comm": "network",
    "data_comm": "network",
    "offload": "host",
    "teacher": "compute",
    "overhead": "launch_overhead",
    "straggler": "stragglers",
}


def longest_resource(step: StepTime, row: int) -> str:
    """The resource that most of a candidate's step is spent on."""
    shares: dict[str, float] = {}
    for field in fields(StepTime):
        resource = RESOURCE_OF[field.name]
        shares[resource] = shares.get(resource, 0.0) + float(getattr(step, field.name)[row])
    return max(shares, key=lambda name: shares[name])


def step_time(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: StepConstants,
    teacher: ModelWork | None = None,
) -> StepTime:
    """Seconds of one optimizer step for every candidate.

    A ``teacher`` runs forward on every micro-batch, laid out as the student.

    All arguments broadcast against each other. Micro-batches a rank is
    ``global_batch / (data x micro_batch)``; a candidate for which that is no whole number is
    the caller's to avoid.
    """
    micro_batches = recipe.global_batch / (cand.data * cand.micro_batch)
    one = _one_micro_batch(work, recipe, cand, constants)
    one["teacher"] = 0.0 if teacher is None else _teacher_pass(teacher, recipe, cand, constants)
    busy_one = sum_of(one)
    # Zero-bubble (ZB-H1): weight gradients, as long as a forward's multiplications, wait and fill the bubble twice.
    weight_grads = (1.0 - recipe.frozen_base) * one["compute"] / (3.0 - recipe.frozen_base)
    filled = np.where(np.equal(cand.zero_bubble, 1.0), np.minimum(2.0 * weight_grads, busy_one), 0.0)
    bubble = (busy_one - filled) * (cand.pipeline - 1.0) / cand.virtual
    hand_over = micro_batch_comm(work, recipe, cand, constants).pipeline
    once = {
        "pipeline_bubble": bubble,
        "pipeline_comm": hand_over * (micro_batches * cand.virtual + cand.pipeline - 1.0) * 2.0,
        "data_comm": data_comm_s(work, recipe, cand, constants, busy_one, micro_batches),
        **_update(work, recipe, cand, constants, micro_batches),
    }
    busy = busy_one * micro_batches + sum_of(once)
    nodes = np.maximum(1.0, cand.gpus / np.maximum(cand.gpus_per_node, 1.0))
    terms = {name: seconds * micro_batches for name, seconds in one.items()} | once
    terms["overhead"] = terms["overhead"] + constants.step_overhead_s
    terms["straggler"] = busy * constants.straggler * np.log2(nodes)
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in terms.values()))
    return StepTime(**dict(zip(terms, arrays, strict=True)))


def sum_of(terms: Mapping[str, Num]) -> Num:
    """Sum of terms that may be numbers or arrays."""
    total: Num = 0.0
    for seconds in terms.values():
        total = total + seconds
    return total


def _teacher_pass(
    teacher: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants
) -> Num:
    """Seconds of a teacher's forward pass of one micro-batch on its fullest stage."""
    forward = forward_pass(teacher, recipe, cand, constants)
    comm = micro_batch_comm(teacher, recipe, cand, constants)
    stage = np.ceil(teacher.layers / cand.pipeline) / teacher.layers
    busy = forward.layers + comm.tensor + comm.context + comm.expert
    return constants.slowdown * (stage * busy + forward.head)


def _one_micro_batch(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants
) -> dict[str, Num]:
    """Seconds of one micro-batch on the fullest stage, forward and backward, by term."""
    forward = forward_pass(work, recipe, cand, constants)
    comm = micro_batch_comm(work, recipe, cand, constants)
    # Backward: gradients by inputs and, unless the base is frozen, by weights.
    backward_gemms = 2.0 - recipe.frozen_base
    slow = constants.slowdown * np.where(np.equal(recipe.natural_routing, 1.0), constants.natural_routing_cost, 1.0)
    blocks = np.where(np.greater(work.moe_layers, 0.0), work.moe_layers, np.maximum(work.layers, 1.0))
    stage = slow * _stage_share(work, cand) * (1.0 + recipe.mtp_modules / blocks)
    head_share = slow * _head_share(work, cand) * (1.0 + recipe.mtp_modules)
    selective = np.where(np.isnan(recipe.recompute_share), constants.selective_share, recipe.recompute_share)
    fully = np.equal(cand.recompute, 2.0)
    again = np.where(fully, 1.0, np.where(np.equal(cand.recompute, 1.0), selective, 0.0))
    return {
        "compute": (stage * forward.gemm + head_share * forward.head) * (1.0 + backward_gemms),
        "attention": stage * forward.attention * (1.0 + BACKWARD_OF_ATTENTION),
        "elementwise": stage * forward.elementwise * 3.0,
        "recompute": stage * forward.layers * again,
        "tensor_comm": stage * comm.tensor * (2.0 + fully),
        "context_comm": stage * comm.context * 2.0,
        "expert_comm": stage * comm.expert * (2.0 + fully),
        "overhead": stage * forward.overhead * (1.0 + backward_gemms / 2.0),
    }


def _stage_share(work: ModelWork, cand: TrainingCandidates) -> Num:
    """The fullest stage's share of the layers.

    Where layers + 2 divide evenly, embedding and head take a layer's place each (126 layers over 8
    stages of 16); otherwise stages hold whole layers and the fullest sets the pace.
    """
    chunks = cand.pipeline * cand.virtual
    with_ends = np.equal(np.mod(work.layers + 2.0, chunks), 0.0) & np.not_equal(np.mod(work.layers, chunks), 0.0)
    fullest = np.where(with_ends, (work.layers + 2.0) / cand.pipeline, np.ceil(work.layers / cand.pipeline))
    return fullest / work.layers


def _head_share(work: ModelWork, cand: TrainingCandidates) -> Num:
    """1 where the last stage carries the head on top of its layers, less where ends took a layer's place."""
    chunks = cand.pipeline * cand.virtual
    with_ends = np.equal(np.mod(work.layers + 2.0, chunks), 0.0) & np.not_equal(np.mod(work.layers, chunks), 0.0)
    return np.where(with_ends, 0.0, 1.0)


HOST_UPDATE_BYTES_S: Final = 40e9
"""Host memory that one GPU's share of an update passes a second: two sockets of DDR5-4800 with 8 channels each
(614 GB/s peak) shared by 8 GPUs, half reached."""


def _update(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants, micro_batches: Num
) -> dict[str, Num]:
    """Seconds of the optimizer, on the GPU or on its host."""
    dense, experts = local_params(work, recipe, cand)
    sharded = np.greater(cand.sharding, 0.0)
    expert_size, _ = expert_data_group(cand)
    params = dense / np.where(sharded, cand.shard_group, 1.0) + experts / np.where(sharded, expert_size, 1.0)
    state_bytes = recipe.weight_bytes + recipe.grad_bytes + 2.0 * recipe.optimizer_bytes
    flop_rate = constants.gemm_efficiency * cand.peak_flops_16bit
    on_gpu = params * (
        constants.optimizer_traffic * state_bytes / cand.memory_bandwidth_bytes_s
        + recipe.update_flops_per_param / flop_rate
    )
    once = recipe.grad_bytes + recipe.param_comm_bytes
    # Weights kept on the host come over for every forward and backward, gradients go back every time.
    each = 2.0 * recipe.param_comm_bytes + recipe.grad_comm_bytes
    across = np.where(np.equal(recipe.offload_weights, 1.0), each * micro_batches, once) / cand.host_bytes_s
    on_host = params * (across + state_bytes / HOST_UPDATE_BYTES_S)
    offloaded = recipe.offload_optimizer
    return {"optimizer": on_gpu * (1.0 - offloaded), "offload": on_host * offloaded}
