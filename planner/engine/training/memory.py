"""Memory of the fullest GPU of every candidate, as parts that sum to the total.

States follow ZeRO (arXiv 1910.02054): weights, gradients and optimizer states, each whole or cut over
the shard group. Activations follow Korthikanti et al. (arXiv 2205.05198) with grouped-query attention
and gated MLPs: ``2 (4 h + n_q d (2) + 2 n_kv d + 3 f)`` bytes a token and layer. The first pipeline stage
holds most micro-batches in flight, the last holds the logits: the fuller of the two is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.candidates import Num, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import MemoryConstants
from planner.engine.training.groups import data_group, expert_data_group
from planner.engine.training.parts import FloatArray, Parts
from planner.engine.training.work import ModelWork

Flag = Num | bool | np.bool_ | NDArray[np.bool_]

BF16_BYTES = 2.0
FP32_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingMemory(Parts):
    """Bytes of the fullest GPU by part; arrays, one entry a candidate. Parts sum to ``total``."""

    weights: FloatArray
    gradients: FloatArray
    optimizer: FloatArray
    activations: FloatArray
    logits: FloatArray
    gathered: FloatArray
    """Whole layers gathered from their shards, and copies in the matrix-multiplication format."""
    overhead: FloatArray
    """Driver context, communication library, allocator fragmentation."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class States:
    """Parameters one rank holds, by who shares them."""

    dense: Num
    experts: Num
    dense_shards: Num
    expert_shards: Num
    adapters: Num

    def bytes_of(self, per_param: Num, cut: Flag, *, adapters_only: Flag) -> Num:
        """Bytes of one state: ``cut`` is 1 where it is sharded over data ranks."""
        dense_cut = np.where(cut, self.dense_shards, 1.0)
        expert_cut = np.where(cut, self.expert_shards, 1.0)
        whole = per_param * (self.dense / dense_cut + self.experts / expert_cut)
        return np.where(adapters_only, per_param * self.adapters / dense_cut, whole)


def rank_states(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates) -> States:
    """Parameters of the fullest rank: a stage's layers with one vocabulary matrix (both without stages)."""
    matrices = np.where(np.greater(cand.pipeline, 1.0), 1.0, 2.0 - work.tied)
    stage = np.ceil(work.layers / cand.pipeline) / work.layers
    size, _ = data_group(cand)
    expert_size, _ = expert_data_group(cand)
    return States(
        dense=work.params_dense * stage / cand.tensor + matrices * work.params_embedding / cand.tensor,
        experts=work.params_experts * stage / (cand.expert * cand.expert_tensor),
        dense_shards=np.minimum(cand.shard_group, size),
        expert_shards=expert_size,
        adapters=recipe.adapter_params * stage / cand.tensor,
    )


def training_memory(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: MemoryConstants,
    teacher: ModelWork | None = None,
) -> TrainingMemory:
    """Bytes of the fullest GPU of every candidate; all arguments broadcast against each other.

    A ``teacher`` is laid out as the student: 16-bit weights, cut where weights are sharded, and logits of its own.
    """
    states = rank_states(work, recipe, cand)
    first, peak = kept_activations(work, recipe, cand, constants)
    logits = logits_bytes(work, recipe, cand, constants, teacher)
    last = first * in_flight_last(recipe, cand) / in_flight(recipe, cand) + peak
    one_stage = np.equal(cand.pipeline, 1.0)
    # The first stage holds most micro-batches, the last the logits: the fuller of the two counts.
    activations = first + peak
    shown_logits = np.where(one_stage, logits, np.maximum(0.0, last + logits - activations))
    taught = None if teacher is None else rank_states(teacher, recipe, cand)
    return assemble(work, recipe, cand, constants, states, taught, activations, shown_logits)


def assemble(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: MemoryConstants,
    states: States,
    taught: States | None,
    activations: Num,
    logits: Num,
) -> TrainingMemory:
    """All parts of a rank's memory from the parameters it holds and what it keeps for backward."""
    frozen = np.equal(recipe.frozen_base, 1.0)
    trained = states.bytes_of(recipe.weight_bytes, np.equal(cand.sharding, 3.0), adapters_only=frozen)
    base_cut = np.equal(cand.sharding, 3.0) & np.equal(recipe.base_is_shardable, 1.0)
    base = states.bytes_of(recipe.base_weight_bytes, base_cut, adapters_only=0.0)
    weights = trained + np.where(frozen, base, 0.0)
    if taught is not None:
        weights = weights + taught.bytes_of(BF16_BYTES, np.equal(cand.sharding, 3.0), adapters_only=0.0)
    gradients = states.bytes_of(recipe.grad_bytes, np.greater_equal(cand.sharding, 2.0), adapters_only=frozen)
    optimizer = states.bytes_of(recipe.optimizer_bytes, np.greater_equal(cand.sharding, 1.0), adapters_only=frozen)
    optimizer = optimizer * (1.0 - recipe.offload_optimizer)
    on_gpu = 1.0 - recipe.offload_weights
    weights, gradients = weights * on_gpu, gradients * on_gpu
    gathered = _gathered(work, recipe, cand, constants, states)
    # Without a buffer of their own, a lone micro-batch's gradients take the room activations leave.
    lone = np.less_equal(recipe.global_batch, cand.data * cand.micro_batch) & np.equal(recipe.persistent_grads, 0.0)
    gradients = np.where(lone, np.maximum(0.0, gradients - activations - logits), gradients)
    overhead = constants.reserve_bytes + constants.fragmentation * (gathered + activations + logits)
    parts = (weights, gradients, optimizer, activations, logits, gathered, overhead)
    names = ("weights", "gradients", "optimizer", "activations", "logits", "gathered", "overhead")
    arrays = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in parts))
    return TrainingMemory(**dict(zip(names, arrays, strict=True)))


def in_flight(recipe: TrainingRecipe, cand: TrainingCandidates) -> Num:
    """Micro-batches whose activations the first stage holds: p (1F1B), more when interleaved."""
    micro_batches = np.maximum(1.0, recipe.global_batch / (cand.data * cand.micro_batch))
    interleaved = np.where(
        np.greater(cand.virtual, 1.0), 1.0 + (cand.pipeline - 1.0) / (cand.pipeline * cand.virtual), 1.0
    )
    return np.minimum(micro_batches * 1.0, cand.pipeline) * interleaved


def in_flight_last(recipe: TrainingRecipe, cand: TrainingCandidates) -> Num:
    """The same of the last stage: 1, or ``((v - 1) p + 1) / v`` when interleaved."""
    warm_up = ((cand.virtual - 1.0) * cand.pipeline + 1.0) / cand.virtual
    return np.minimum(np.where(np.greater(cand.virtual, 1.0), warm_up, 1.0), in_flight(recipe, cand))


def layer_activation_bytes(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates) -> Num:
    """Bytes a token keeps for backward, all layers of the model, one tensor rank, nothing recomputed."""
    cut = np.where(np.equal(recipe.sequence_parallel, 1.0), cand.tensor, 1.0)
    inner = work.qo_width + work.kv_width + work.ffn_width + work.expert_width * recipe.expert_imbalance
    # Where scores reach memory: 5 bytes each (soft-max, dropout mask, dropout output) for s keys.
    scores = np.where(
        np.equal(recipe.flash_attention, 1.0) | np.greater(cand.recompute, 0.0),
        0.0,
        5.0 * work.heads * recipe.sequence_length / cand.tensor,
    )
    return (BF16_BYTES * 4.0 + 2.0 * recipe.dropout) * work.hidden * work.layers / cut + (
        BF16_BYTES * inner / cand.tensor + scores
    )


def kept_activations(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, constants: MemoryConstants
) -> tuple[Num, Num]:
    """(kept by the first stage over all micro-batches in flight, one layer's peak while recomputing)."""
    tokens = cand.micro_batch * recipe.sequence_length / cand.context
    stage = np.ceil(work.layers / cand.pipeline) / work.layers
    per_token = layer_activation_bytes(work, recipe, cand)
    # A frozen base needs no inputs kept for weight gradients: about a third of what a layer keeps.
    kept = per_token * (1.0 - constants.frozen_saving * recipe.frozen_base)
    cut = np.where(np.equal(recipe.sequence_parallel, 1.0), cand.tensor, 1.0)
    # Root-mean-square norms written as separate operations keep an fp32 copy each, gated MLPs the gate's result.
    unfused = FP32_BYTES * 2.0 * work.hidden * work.layers / cut + BF16_BYTES * work.ffn_width / 3.0 / cand.tensor
    kept = kept + recipe.eager * constants.eager_activations * work.gated * unfused
    inputs = BF16_BYTES * work.hidden * work.layers / cut
    by_recompute = np.where(
        np.equal(cand.recompute, 2.0),
        constants.full_factor * inputs,
        np.where(np.equal(cand.recompute, 1.0), constants.selective_factor, constants.activation_factor) * kept,
    )
    peak = np.where(np.greater(cand.recompute, 0.0), tokens * per_token / work.layers, 0.0)
    return tokens * stage * by_recompute * in_flight(recipe, cand), peak


def logits_bytes(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: MemoryConstants,
    teacher: ModelWork | None = None,
) -> Num:
    """Bytes of the logits of one micro-batch, a teacher's beside the model's."""
    tokens = cand.micro_batch * recipe.sequence_length / cand.context
    cut = np.where(np.equal(recipe.loss_parallel, 1.0), cand.tensor, 1.0)
    vocab = work.vocab if teacher is None else work.vocab + teacher.vocab
    whole = constants.logits_bytes * tokens * vocab / cut
    return np.where(np.equal(recipe.chunked_loss, 1.0), whole / 8.0, whole)


def _gathered(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: MemoryConstants,
    states: States,
) -> Num:
    layers = np.maximum(1.0, work.layers)
    one_layer = (work.params_dense / cand.tensor + work.params_experts / (cand.expert * cand.expert_tensor)) / layers
    ends = work.params_embedding / cand.tensor
    some = constants.unsharded_layers * one_layer + ends
    rank_params = states.dense + states.experts
    kept = np.where(np.equal(recipe.keep_gathered, 1.0), rank_params, 0.0)
    staged = np.equal(recipe.gather_for_stages, 1.0) & np.greater(cand.pipeline, 1.0)
    gathered = BF16_BYTES * np.maximum(np.maximum(some, kept), np.where(staged, 2.0 * rank_params, 0.0))
    copies = recipe.low_precision * constants.cast_weight_bytes * (states.dense + states.experts)
    return np.where(np.equal(cand.sharding, 3.0) | np.equal(recipe.offload_weights, 1.0), gathered, copies)
