"""Step time of every candidate, as terms that sum to the total.

One optimizer step is ``m`` micro-batches through ``p`` pipeline stages, then gradient reduction and
the optimizer. Each term is what that resource adds to the wall clock: communication terms count only
the exposed part. Formulas: handbook sections 4 and 5; a matrix multiplication of M x K by K x N takes
``2 (M N K + m0 N K + n0 M K + k0 M N) / (efficiency x peak)``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

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

FloatArray = NDArray[np.float64]

BF16_BYTES = 2.0
BACKWARD_OF_ATTENTION = 2.5
"""Flash attention's backward recomputes the scores: 5 matrix products for the forward's 2."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTime:
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
    overhead: FloatArray
    straggler: FloatArray

    @property
    def total(self) -> FloatArray:
        """Seconds; the sum of all terms."""
        total: FloatArray = np.zeros_like(getattr(self, fields(self)[0].name))
        for part in fields(self):
            total = total + getattr(self, part.name)
        return total


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pass:
    """Seconds of one forward pass of one micro-batch through the whole model, one tensor rank's work."""

    gemm: Num
    attention: Num
    elementwise: Num
    overhead: Num
    head: Num

    @property
    def layers(self) -> Num:
        return self.gemm + self.attention + self.elementwise + self.overhead


def step_time(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants) -> StepTime:
    """Seconds of one optimizer step for every candidate.

    All arguments broadcast against each other. Micro-batches a rank is
    ``global_batch / (data x micro_batch)``; a candidate for which that is no whole number is
    the caller's to avoid.
    """
    micro_batches = recipe.global_batch / (cand.data * cand.micro_batch)
    forward = _forward_pass(work, recipe, cand, constants)
    # Backward: gradients by inputs and, unless the base is frozen, by weights.
    backward_gemms = 2.0 - recipe.frozen_base
    passes = 1.0 + backward_gemms
    slow = constants.slowdown * np.where(np.equal(recipe.natural_routing, 1.0), constants.natural_routing_cost, 1.0)
    blocks = np.where(np.greater(work.moe_layers, 0.0), work.moe_layers, np.maximum(work.layers, 1.0))
    stage = slow * _stage_share(work, cand) * (1.0 + recipe.mtp_modules / blocks)
    head_share = slow * _head_share(work, cand) * (1.0 + recipe.mtp_modules)
    gemm = stage * forward.gemm * passes + head_share * forward.head * passes
    attention = stage * forward.attention * (1.0 + BACKWARD_OF_ATTENTION)
    elementwise = stage * forward.elementwise * 3.0
    overhead = stage * forward.overhead * (1.0 + backward_gemms / 2.0)
    selective = np.where(np.isnan(recipe.recompute_share), constants.selective_share, recipe.recompute_share)
    again = np.where(np.equal(cand.recompute, 2.0), 1.0, np.where(np.equal(cand.recompute, 1.0), selective, 0.0))
    recompute = stage * forward.layers * again
    comm = _micro_batch_comm(work, recipe, cand, constants)
    fully = np.equal(cand.recompute, 2.0)
    tensor_comm = stage * comm.tensor * (2.0 + fully)
    expert_comm = stage * comm.expert * (2.0 + fully)
    context_comm = stage * comm.context * 2.0
    one = gemm + attention + elementwise + overhead + recompute + tensor_comm + expert_comm + context_comm
    bubble = one * (cand.pipeline - 1.0) / cand.virtual
    pipeline_comm = comm.pipeline * (micro_batches * cand.virtual + cand.pipeline - 1.0) * 2.0
    data_comm = _data_comm(work, recipe, cand, constants, one, micro_batches)
    optimizer = _optimizer(work, recipe, cand, constants)
    busy = one * micro_batches + bubble + pipeline_comm + data_comm + optimizer
    nodes = np.maximum(1.0, cand.gpus / np.maximum(cand.gpus_per_node, 1.0))
    straggler = busy * constants.straggler * np.log2(nodes)
    terms = {
        "compute": gemm * micro_batches,
        "attention": attention * micro_batches,
        "elementwise": elementwise * micro_batches,
        "recompute": recompute * micro_batches,
        "tensor_comm": tensor_comm * micro_batches,
        "context_comm": context_comm * micro_batches,
        "expert_comm": expert_comm * micro_batches,
        "pipeline_bubble": bubble,
        "pipeline_comm": pipeline_comm,
        "data_comm": data_comm,
        "optimizer": optimizer,
        "overhead": overhead * micro_batches + constants.step_overhead_s,
        "straggler": straggler,
    }
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in terms.values()))
    return StepTime(**dict(zip(terms, arrays, strict=True)))


def _forward_pass(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants) -> _Pass:
    tokens = cand.micro_batch * recipe.sequence_length / cand.context
    power = cand.power_share**constants.power_exponent
    flop_rate = constants.gemm_efficiency * cand.peak_flops * power
    tensor = cand.tensor
    cut_nk = work.dense_nk - work.whole_nk
    dense = (
        (tokens + constants.gemm_m0) * (cut_nk / tensor + work.whole_nk)
        + constants.gemm_n0 * tokens * (work.column_k + work.row_k / tensor)
        + constants.gemm_k0 * tokens * (work.column_n / tensor + work.row_n)
    )
    expert_tokens = tokens / tensor
    experts = (
        expert_tokens * work.active_expert_nk
        + constants.expert_m0 * work.expert_nk / (cand.expert * cand.expert_tensor)
        + expert_tokens * constants.expert_n0 * (work.active_expert_k + work.active_expert_n)
    )
    gemm = 2.0 * (dense + experts / constants.expert_efficiency) / flop_rate
    attention = _attention(work, recipe, cand, constants, tokens)
    elementwise = _elementwise(work, recipe, cand, constants, tokens)
    local_experts = work.experts / cand.expert
    overhead = constants.layer_overhead_s * work.layers + work.moe_layers * (
        constants.moe_overhead_s + constants.expert_overhead_s * local_experts
    )
    vocab = work.vocab / tensor
    head = (
        2.0
        * ((tokens + constants.gemm_m0) * work.hidden * vocab + tokens * (constants.gemm_n0 * work.hidden))
        / (constants.gemm_efficiency * cand.peak_flops_16bit * power)
        # Logits in fp32: written, read for the soft-max, gradient written and read, over three passes.
        + tokens * vocab * 16.0 / 3.0 / cand.memory_bandwidth_bytes_s
    )
    return _Pass(gemm=gemm, attention=attention, elementwise=elementwise, overhead=overhead, head=head)


def _attention(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants, tokens: Num
) -> Num:
    seq = np.minimum(recipe.sequence_length, recipe.document_tokens)
    # A causal token sees half of the sequence on average; a window's token at most the window.
    window = np.minimum(work.window, seq)
    keys_window = np.where(window > 0, window * (1.0 - window / (2.0 * seq)), 0.0)
    flops = tokens * (work.score_full * seq / 2.0 + work.score_window * keys_window) / cand.tensor
    slow = (1.0 + constants.attention_s0 / seq) * (1.0 + constants.attention_d0 / np.maximum(work.head_dim, 1.0))
    rate = constants.attention_efficiency * cand.peak_flops_16bit
    flash = flops * slow / rate + constants.scan_cost * tokens * work.state_flops / cand.tensor / rate
    # Without a fused kernel all scores are computed (no causal saving) and pass through memory;
    # heads whose width is no multiple of 8 miss the tensor cores.
    misaligned = np.where(np.mod(work.head_dim, 8.0) > 0, 4.0, 1.0)
    scores = tokens * seq * work.heads / cand.tensor
    gemm_rate = constants.gemm_efficiency * cand.peak_flops_16bit
    unfused = (
        2.0 * flops * misaligned * (1.0 + constants.attention_d0 / np.maximum(work.head_dim, 1.0)) / gemm_rate
        + scores * constants.score_traffic / cand.memory_bandwidth_bytes_s
    )
    return np.where(np.equal(recipe.flash_attention, 1.0), flash, unfused)


def _elementwise(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants, tokens: Num
) -> Num:
    # Norms, residuals: about 8 elements of the hidden state a layer; activation, rope: what they read and write.
    residual = 8.0 * work.hidden * work.layers / np.where(np.equal(recipe.sequence_parallel, 1.0), cand.tensor, 1.0)
    inner = (work.ffn_width + work.expert_width + work.qo_width + work.kv_width) / cand.tensor
    routed = 2.0 * work.routed_hidden / cand.tensor * constants.permute_traffic
    casts = recipe.low_precision * (
        (work.column_k + work.row_k / cand.tensor + work.active_expert_k / cand.tensor)
        + (work.dense_nk / cand.tensor + work.expert_nk / (cand.expert * cand.expert_tensor)) / tokens
    )
    elements = constants.elementwise_traffic * (residual + inner) + routed
    moved = tokens * (BF16_BYTES * elements + constants.cast_traffic * casts)
    return moved / cand.memory_bandwidth_bytes_s


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Comm:
    """Exposed seconds of one micro-batch, whole model, one direction (forward or backward)."""

    tensor: Num
    context: Num
    expert: Num
    pipeline: Num
    """One stage boundary."""


def _micro_batch_comm(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants
) -> _Comm:
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
    return _Comm(
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


def _data_comm(
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


def _optimizer(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants) -> Num:
    dense, experts = local_params(work, recipe, cand)
    sharded = np.greater(cand.sharding, 0.0)
    expert_size, _ = expert_data_group(cand)
    params = dense / np.where(sharded, cand.shard_group, 1.0) + experts / np.where(sharded, expert_size, 1.0)
    state_bytes = recipe.weight_bytes + recipe.grad_bytes + 2.0 * recipe.optimizer_bytes
    return constants.optimizer_traffic * params * state_bytes / cand.memory_bandwidth_bytes_s
