"""The measured constants of training: efficiencies, overlaps, overheads. Values come from data.

Each is a number, or an array with one entry a candidate (an accelerator generation each has its
own). What they were fitted on is recorded beside the values, in the profile file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Num = float | FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepConstants:
    """Constants of step time; dimensionless unless the name says otherwise."""

    gemm_efficiency: Num
    """Share of the dense peak that large matrix multiplications reach."""
    power_exponent: Num
    """Matrix-multiplication rate goes with the power limit to this power."""
    gemm_m0: Num
    """Rows, columns and depth whose time a matrix multiplication spends on top of its own."""
    gemm_n0: Num
    gemm_k0: Num
    expert_efficiency: Num
    """Of grouped expert matrix multiplications, relative to dense ones."""
    expert_m0: Num
    expert_n0: Num
    """As the three above, for one expert's matrices (columns and depth alike)."""
    attention_efficiency: Num
    """Share of the 16-bit dense peak; causal FLOPs."""
    attention_s0: Num
    """Tokens of context at which attention reaches half of that."""
    attention_d0: Num
    scan_cost: Num
    """Time of a recurrent scan over its FLOPs at the attention rate."""
    score_traffic: Num
    """Bytes moved per attention score where scores reach memory, forward."""
    elementwise_traffic: Num
    """Bytes moved by norms, activations and residuals, over the least possible."""
    cast_traffic: Num
    """Bytes moved for each 8/4-bit operand element."""
    permute_traffic: Num
    """Bytes moved by routing, over one read and one write of the routed tokens."""
    layer_overhead_s: Num
    """Launch gaps of one layer, one pass."""
    moe_overhead_s: Num
    """Routing, synchronisation and launch gaps of one MoE layer, one pass."""
    expert_overhead_s: Num
    """Each expert a rank holds adds this to a MoE layer's pass: its own launches, padding and tail."""
    step_overhead_s: Num
    slowdown: Num
    """Of everything in a micro-batch, by software release."""
    natural_routing_cost: Num
    """The same where experts get unequal shares of real data."""
    optimizer_traffic: Num
    """Bytes moved in the optimizer step, over the bytes of its states."""
    selective_share: Num
    """Share of the forward pass that selective recomputation repeats."""
    link_efficiency: Num
    link_latency_s: Num
    network_efficiency: Num
    network_latency_s: Num
    bucket_bytes: Num
    """Bytes one gradient or weight message carries."""
    network_congestion: Num
    """Loss of network rate for each doubling of nodes."""
    exposed_tensor: Num
    """Share of tensor-parallel communication that compute does not hide."""
    exposed_pipeline: Num
    exposed_context: Num
    exposed_expert: Num
    data_overlap: Num
    """Share of backward (and forward) compute that data-parallel communication can hide behind."""
    exposed_data: Num
    """Share of data-parallel communication that shows however much compute there is."""
    straggler: Num
    """Slow-down for each doubling of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryConstants:
    """Constants of memory for one GPU."""

    activation_factor: Num
    """Kept activations over the closed formula, without recomputation."""
    eager_activations: Num
    """Intermediates kept by unfused norms and gated MLPs, over one fp32 copy a norm and one element a gate."""
    selective_factor: Num
    """The same with selective recomputation."""
    full_factor: Num
    """Kept layer inputs over one copy, with full recomputation."""
    logits_bytes: Num
    """Bytes kept at the peak for one logit."""
    frozen_saving: Num
    """Share of a layer's activations that a frozen base need not keep."""
    cast_weight_bytes: Num
    """Bytes a parameter of weight copies in the 8/4-bit format, where weights are not sharded."""
    unsharded_layers: Num
    """Layers whose full weights (and gradients) are in memory at a time, with zero3."""
    reserve_bytes: Num
    """Driver context, communication library, workspace."""
    fragmentation: Num
    """Share the allocator holds on top of what is allocated."""
