"""Memory by pipeline rank: what every stage of one layout holds, the fullest of which the plan is sized by.

Under 1F1B stage i of p keeps ``min(m, p - i)`` micro-batches; with v chunks a stage
``(2 (p - i - 1) + (v - 1) p + 1) / v`` (Megatron's warm-up, arXiv 2104.04473). The first stage holds the input
embedding, the last the head and the logits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.candidates import TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import MemoryConstants
from planner.engine.training.memory import (
    States,
    TrainingMemory,
    assemble,
    in_flight,
    kept_activations,
    logits_bytes,
    rank_states,
)
from planner.engine.training.work import ModelWork

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageMemories:
    """One entry a stage, in order."""

    layers: FloatArray
    in_flight: FloatArray
    """Micro-batches whose activations it keeps."""
    memory: TrainingMemory


def stage_layers(layers: float, pipeline: int, virtual: float) -> FloatArray:
    """Layers of each stage; embedding and head take a layer's place where only so it divides.

    >>> stage_layers(126, 8, 1).tolist()
    [15.0, 16.0, 16.0, 16.0, 16.0, 16.0, 16.0, 15.0]
    >>> stage_layers(80, 4, 5).tolist()
    [20.0, 20.0, 20.0, 20.0]
    """
    chunks = pipeline * virtual
    if layers % chunks and (layers + 2) % chunks == 0:
        each = np.full(pipeline, (layers + 2) / pipeline)
        each[0] -= 1.0
        each[-1] -= 1.0
        return each
    return np.full(pipeline, layers / pipeline)


def stage_memories(
    work: ModelWork,
    recipe: TrainingRecipe,
    cand: TrainingCandidates,
    constants: MemoryConstants,
    teacher: ModelWork | None = None,
) -> StageMemories:
    """Memory of every stage of one layout (scalars or arrays of one entry)."""
    cand = TrainingCandidates(**{f.name: float(np.ravel(getattr(cand, f.name))[0]) for f in fields(cand)})
    pipeline = int(float(np.asarray(cand.pipeline)))
    virtual = float(np.asarray(cand.virtual))
    layers = stage_layers(float(np.asarray(work.layers)), pipeline, virtual)
    place = np.arange(pipeline, dtype=np.float64)
    warm_up = (2.0 * (pipeline - place - 1.0) + (virtual - 1.0) * pipeline + 1.0) / virtual
    flights = warm_up if virtual > 1.0 else pipeline - place
    flights = np.minimum(flights, in_flight(recipe, cand))
    first, peak = kept_activations(work, recipe, cand, constants)
    fullest = np.ceil(work.layers / pipeline) * in_flight(recipe, cand)
    is_last = place == pipeline - 1.0
    memory = assemble(
        work,
        recipe,
        cand,
        constants,
        _stage_states(work, recipe, cand, layers, is_last),
        None if teacher is None else rank_states(teacher, recipe, cand),
        first * layers * flights / fullest + peak,
        np.where(is_last, logits_bytes(work, recipe, cand, constants, teacher), 0.0),
    )
    return StageMemories(layers=layers, in_flight=flights, memory=memory)


def _stage_states(
    work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates, layers: FloatArray, is_last: NDArray[np.bool_]
) -> States:
    """Parameters of each stage's rank."""
    share = layers / work.layers
    is_first = np.arange(len(layers)) == 0
    # A tied head is a copy of the embedding, unless one stage holds both.
    matrices = is_first * 1.0 + is_last * (1.0 if len(layers) > 1 else 1.0 - work.tied)
    return replace(
        rank_states(work, recipe, cand),
        dense=work.params_dense * share / cand.tensor + matrices * work.params_embedding / cand.tensor,
        experts=work.params_experts * share / (cand.expert * cand.expert_tensor),
        adapters=recipe.adapter_params * share / cand.tensor,
    )
