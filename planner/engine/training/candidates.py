"""Candidates as columns: every field is one number for all, or an array with one entry a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Num = float | FloatArray

SHARDING: Final = {"none": 0.0, "zero1": 1.0, "zero2": 2.0, "zero3": 3.0, "hsdp": 3.0}
"""What is sharded over data-parallel ranks: nothing, optimizer, + gradients, + weights. HSDP is
zero3 with a shard group smaller than the data-parallel group."""
RECOMPUTE: Final = {"none": 0.0, "selective": 1.0, "full": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingCandidates:
    """Equal-length arrays of layouts and of the hardware each would run on."""

    gpus: Num
    tensor: Num
    pipeline: Num
    virtual: Num
    """Model chunks a pipeline stage holds (interleaved schedule); 1 is plain 1F1B."""
    context: Num
    expert: Num
    expert_tensor: Num
    """Ranks one expert is cut over; 1 keeps experts whole."""
    data: Num
    micro_batch: Num
    """Sequences."""
    sharding: Num
    """``SHARDING`` code."""
    shard_group: Num
    """Data-parallel ranks that share one copy of the sharded states."""
    recompute: Num
    """``RECOMPUTE`` code."""
    peak_flops: Num
    """Dense, of the recipe's matrix-multiplication format."""
    peak_flops_16bit: Num
    power_share: Num
    """Power limit over the accelerator's nominal; 1 where it runs unlimited."""
    memory_bandwidth_bytes_s: Num
    memory_bytes: Num
    link_bytes_s: Num
    """Scale-up link of one GPU, one direction."""
    link_is_shared: Num
    """1 for PCIe without peer-to-peer: all pairs share the host bridge."""
    link_domain_gpus: Num
    gpus_per_node: Num
    network_bytes_s: Num
    """One GPU's share of the node's network, one direction."""
    zero_bubble: Num = 0.0
    """1 where weight gradients wait to fill the pipeline's bubble (ZB-H1)."""
    host_bytes_s: Num = 25e9
    """Between one GPU and its host, one direction."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingRecipe:
    """What one optimizer step does, and in which number formats."""

    sequence_length: Num
    document_tokens: Num
    """Mean length of a document in a packed sample: attention doesn't look past it."""
    global_batch: Num
    """Sequences an optimizer step."""
    frozen_base: Num
    """1 for LoRA and QLoRA: no weight gradients of the base model."""
    adapter_params: Num
    """Trainable parameters where the base is frozen."""
    low_precision: Num
    """1 where matrices are multiplied in 8 or 4 bit and have to be cast."""
    weight_bytes: Num
    """A parameter, as kept for computing."""
    base_weight_bytes: Num
    """A parameter of the frozen base."""
    grad_bytes: Num
    optimizer_bytes: Num
    """A parameter: moments, and the fp32 master where there is one."""
    grad_comm_bytes: Num
    param_comm_bytes: Num
    persistent_grads: Num
    """1 where gradients have a buffer of their own all through the step; 0 where they are freed in between."""
    base_is_shardable: Num
    """0 where a frozen base is quantized block-wise: sharding leaves it whole on every rank."""
    dropout: Num
    """1 where dropout masks are kept: 2 bytes a hidden element and layer."""
    flash_attention: Num
    """1 where attention scores never reach memory."""
    sequence_parallel: Num
    """1 where norms and residuals are cut over tensor-parallel ranks."""
    chunked_loss: Num
    """1 where logits are made and used chunk by chunk."""
    loss_parallel: Num
    """1 where logits are cut over tensor-parallel ranks."""
    keep_gathered: Num
    """1 where zero3 keeps gathered weights from forward to backward."""
    gather_for_stages: Num
    """1 where zero3 under pipeline stages keeps gathered weights and whole gradients until the last micro-batch."""
    eager: Num
    """1 where kernels are not fused: norms and gated activations keep their intermediates."""
    natural_routing: Num
    """1 where the router decides on real data, 0 where experts get equal shares."""
    mtp_modules: Num
    """Multi-token-prediction modules trained beside the model: a layer and a head each."""
    recompute_share: Num
    """Share of a forward pass that selective recomputation repeats; NaN: the framework's usual."""
    offload_optimizer: Num = 0.0
    """1 where the host keeps the optimizer states and does the update."""
    offload_weights: Num = 0.0
    """1 where the host keeps weights and gradients too, and every gathering comes from there."""
    update_flops_per_param: Num = 0.0
    """Of an optimizer that multiplies matrices (Muon), 16 bit."""
    expert_imbalance: Num = 1.0
    """Tokens of the busiest expert rank over the mean."""
