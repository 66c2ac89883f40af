"""Communication of a training step: what shows after compute has hidden its part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.engine.training.candidates import Num, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import StepConstants
from planner.engine.training.groups import (
    all_gather_s,
    data_group,
    expert_data_group,
    expert_group,
    group_rate,
    local_params,
)
from planner.engine.training.work import ModelWork

BF16_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MicroBatchComm:
    """Exposed seconds of one micro-batch, whole model, one direction (forward or backward)."""

    tensor: Num
    context: Num
    expert: Num
    pipeline: Num
    """One stage boundary."""


def micro_batch_comm(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants
) -> MicroBatchComm:
    """Exposed seconds of one micro-batch by kind of communication; all arguments broadcast."""
    tokens = cand.micro_batch * recipe.sequence_length / cand.context
    tensor_rate, tensor_latency = group_rate(cand, constants, cand.tensor, 1.0)
    # Attention and a dense MLP end in one all-reduce (or a reduce-scatter and an all-gather) each.
    reductions = 2.0 * work.layers - work.moe_layers
    ring = (cand.tensor - 1.0) / cand.tensor
    tensor = reductions * np.where(
        np.greater(cand.tensor, 1.0),
        2.0 * ring * tokens * work.hidden * BF16_BYTES / tensor_rate + 2.0 * tensor_latency,
        0.0,
    )
    context_rate, context_latency = group_rate(cand, constants, cand.context, cand.tensor)
    context = np.where(
        np.greater(cand.context, 1.0),
        (cand.context - 1.0)
        * (tokens * work.kv_width / cand.tensor * BF16_BYTES / context_rate + work.layers * context_latency),
        0.0,
    )
    expert = _all_to_all(work, recipe, cand, constants, tokens)
    cut = np.where(np.equal(recipe.sequence_parallel, 1.0), cand.tensor, 1.0)
    hop_rate, hop_latency = group_rate(cand, constants, 2.0, cand.gpus / cand.pipeline)
    pipeline = np.where(
        np.greater(cand.pipeline, 1.0), tokens * work.hidden * BF16_BYTES / cut / hop_rate + hop_latency, 0.0
    )
    return MicroBatchComm(
        tensor=tensor * constants.exposed_tensor,
        context=context * constants.exposed_context,
        expert=expert * constants.exposed_expert,
        pipeline=pipeline * constants.exposed_pipeline,
    )


def _all_to_all(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants, tokens: Num
) -> Num:
    """Dispatch and combine of one pass: what leaves the scale-up domain is sent once a destination domain."""
    size, inside = expert_group(cand)
    domains = np.maximum(1.0, size / inside)
    leaves = 1.0 - 1.0 / domains
    top_k = np.maximum(work.top_k, 1.0)
    per_copy = tokens / cand.tensor * work.routed_hidden / top_k * BF16_BYTES
    link_bytes = per_copy * top_k * (size - 1.0) / size
    network_bytes = per_copy * np.minimum(top_k, domains) * leaves
    congested = 1.0 + constants.network_congestion * np.log2(domains)
    seconds = link_bytes / (constants.link_efficiency * cand.link_bytes_s) + network_bytes * congested / (
        constants.network_efficiency * cand.network_bytes_s
    )
    return np.where(np.greater(size, 1.0), 2.0 * (seconds + work.moe_layers * constants.link_latency_s), 0.0)


def data_comm_s(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: StepConstants,
    micro_batch_s: Num,
    micro_batches: Num,
) -> Num:
    """Exposed gradient reduction and weight gathering of one step."""
    dense, experts = local_params(work, recipe, cand)
    size, stride = data_group(cand)
    expert_size, expert_stride = expert_data_group(cand)
    inner = np.minimum(cand.shard_group, size)
    replicas = np.maximum(1.0, size / inner)

    def sharded(bytes_per_param: Num) -> Num:
        return all_gather_s(cand, constants, dense * bytes_per_param, inner, stride) + all_gather_s(
            cand, constants, experts * bytes_per_param, expert_size, expert_stride
        )

    outer = 2.0 * all_gather_s(cand, constants, dense * recipe.grad_comm_bytes / inner, replicas, stride * inner)
    reduce_s = sharded(recipe.grad_comm_bytes)
    gather_s = np.where(np.equal(cand.sharding, 0.0), sharded(recipe.grad_comm_bytes), sharded(recipe.param_comm_bytes))
    once = reduce_s + gather_s + outer
    # One micro-batch of compute hides the reduction of gradients and the gathering of weights.
    hidden_once = constants.data_overlap * micro_batch_s
    exposed_once = np.maximum(constants.exposed_data * once, once - hidden_once)
    each = 2.0 * gather_s + reduce_s
    exposed_each = np.maximum(constants.exposed_data * each, each - constants.data_overlap * micro_batch_s)
    zero3 = micro_batches * exposed_each + np.maximum(0.0, outer - hidden_once)
    return np.where(np.equal(cand.sharding, 3.0), zero3, exposed_once)
