"""One forward pass of one micro-batch: matrix multiplications, attention, what moves memory, launches.

A matrix multiplication of M x K by K x N takes ``2 (M N K + m0 N K + n0 M K + k0 M N)`` over the reached
share of the peak: a roofline without a corner, so small micro-batches and narrow shards lose efficiency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.engine.training.candidates import Num, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import StepConstants
from planner.engine.training.work import ModelWork

BF16_BYTES = 2.0
PASSES = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardPass:
    """Seconds of one forward pass of one micro-batch through the whole model, one tensor rank's work."""

    gemm: Num
    attention: Num
    elementwise: Num
    overhead: Num
    head: Num

    @property
    def layers(self) -> Num:
        return self.gemm + self.attention + self.elementwise + self.overhead


def forward_pass(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: StepConstants
) -> ForwardPass:
    """Seconds of one forward pass through the whole model, one tensor rank's share; all arguments broadcast."""
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
    return ForwardPass(gemm=gemm, attention=attention, elementwise=elementwise, overhead=overhead, head=head)


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
    inner = (work.ffn_width + work.expert_width + work.position_width) / cand.tensor
    routed = 2.0 * work.routed_hidden / cand.tensor * constants.permute_traffic
    casts = recipe.low_precision * (
        (work.column_k + work.row_k / cand.tensor + work.active_expert_k / cand.tensor)
        + (work.dense_nk / cand.tensor + work.expert_nk / (cand.expert * cand.expert_tensor)) / tokens
    )
    elements = constants.elementwise_traffic * (residual + inner) + routed
    moved = tokens * (BF16_BYTES * elements + constants.cast_traffic * casts)
    return (moved + _unpacked_bytes(work, recipe, cand)) / cand.memory_bandwidth_bytes_s


def _unpacked_bytes(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates) -> Num:
    """Bytes of unpacking a block-wise quantized base for one pass: read packed, written and read in 16 bit.

    Of a step's three passes two unpack: forward, and backward for the gradients of inputs.
    """
    weights = work.dense_nk / cand.tensor + work.expert_nk / (cand.expert * cand.expert_tensor)
    packed = (1.0 - recipe.base_is_shardable) * recipe.frozen_base
    return packed * weights * (recipe.base_weight_bytes + 2.0 * BF16_BYTES) * 2.0 / PASSES
