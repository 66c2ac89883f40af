"""Layouts: which ways of spreading a model are valid, and why an asked one is not.

Rules (handbook 5.6): tensor ranks divide the query heads and the MLP width, and divide the KV heads
or are a multiple of them; stages hold at least one layer; experts divide over expert ranks; tensor
ranks share a scale-up domain; tensor x context x pipeline x data = GPUs; a global batch is a whole
number of micro-batches on every rank, and at least one for each stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.profile import FrameworkProfile
from planner.engine.training.work import ModelWork

FloatArray = NDArray[np.float64]

BATCH_SLACK = 0.125


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLayout:
    """What a question fixes; None means: search."""

    tensor: int | None = None
    pipeline: int | None = None
    context: int | None = None
    expert: int | None = None
    micro_batch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidSize:
    """An asked parallel size that can't be: which, why, and what would do."""

    field: str
    value: int
    reason: str
    valid: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutGrid:
    """Layouts of one GPU count as equal-length arrays."""

    tensor: FloatArray
    pipeline: FloatArray
    virtual: FloatArray
    context: FloatArray
    expert: FloatArray
    data: FloatArray
    micro_batch: FloatArray
    global_batch: FloatArray
    """Sequences a step, as this layout divides it."""

    def __len__(self) -> int:
        return len(self.tensor)


def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def valid_tensor(work: ModelWork, limit: int) -> tuple[int, ...]:
    """Tensor-parallel sizes a model allows, up to ``limit``.

    >>> from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
    >>> from planner.engine.training.work import model_work
    >>> qwen = ModelArch(name="7B", hidden=3584, layers=28, vocab=152064,
    ...     attention=(AttentionGroup(kind="full", layers=28, n_q=28, n_kv=4, head_dim=128),),
    ...     ffn=(FfnGroup(kind="dense", layers=28, intermediate=18944),))
    >>> valid_tensor(model_work(qwen), 28)
    (1, 2, 4)
    """
    heads = int(work.min_heads) or int(work.hidden)
    kv_heads = int(work.kv_heads) or heads
    width = int(work.intermediate) or heads
    return tuple(
        d for d in divisors(heads) if d <= limit and (kv_heads % d == 0 or d % kv_heads == 0) and width % d == 0
    )


def valid_pipeline(work: ModelWork, limit: int) -> tuple[int, ...]:
    """Stage counts that split the layers evenly, embedding and head counted as layers or not."""
    layers = int(work.layers)
    return tuple(p for p in range(1, min(limit, layers) + 1) if layers % p == 0 or (p > 1 and (layers + 2) % p == 0))


def valid_expert(work: ModelWork, limit: int) -> tuple[int, ...]:
    """Expert-parallel sizes: divisors of the expert count."""
    experts = int(work.experts)
    return tuple(d for d in divisors(experts) if d <= limit) if experts else (1,)


def invalid_sizes(work: ModelWork, asked: AskedLayout) -> list[InvalidSize]:
    """Every asked size the model itself rules out, with the valid ones."""
    faults = []
    tensor = valid_tensor(work, 1024)
    if asked.tensor is not None and asked.tensor not in tensor:
        faults.append(
            InvalidSize(
                field="tensor_parallel",
                value=asked.tensor,
                reason=(
                    f"{asked.tensor} does not divide {int(work.min_heads)} query heads, "
                    f"{int(work.kv_heads)} KV heads (or a multiple of them) and MLP width {int(work.intermediate)}."
                ),
                valid=tensor,
            )
        )
    pipeline = valid_pipeline(work, 256)
    if asked.pipeline is not None and asked.pipeline not in pipeline:
        faults.append(
            InvalidSize(
                field="pipeline_parallel",
                value=asked.pipeline,
                reason=f"{int(work.layers)} layers do not split evenly into {asked.pipeline} stages.",
                valid=pipeline,
            )
        )
    expert = valid_expert(work, 1024)
    if asked.expert is not None and asked.expert not in expert:
        experts = int(work.experts)
        why = f"{experts} experts do not divide by {asked.expert}." if experts else "The model has no experts."
        faults.append(InvalidSize(field="expert_parallel", value=asked.expert, reason=why, valid=expert))
    return faults


def enumerate_layouts(
    work: ModelWork,
    *,
    gpus: int,
    domain_gpus: int,
    global_batch: float,
    batch_is_fixed: bool,
    sequence_length: int,
    asked: AskedLayout,
    framework: FrameworkProfile,
    sharding: str = "zero1",
    interleave: bool = True,
    teacher: ModelWork | None = None,
) -> LayoutGrid:
    """All valid layouts on ``gpus`` GPUs; an empty grid where there is none.

    Only what the framework offers; tensor sizes suit a teacher too. ``global_batch`` is in sequences.
    Micro-batches are powers of two up to 8. Unless the batch is fixed, a layout may take up to an eighth
    more or less of it, so that it divides.
    """
    tensor_limit = min(gpus, domain_gpus) if framework.tensor else 1
    sizes = [t for t in valid_tensor(work, tensor_limit) if gpus % t == 0]
    if teacher is not None:
        sizes = sorted({*sizes} & {*valid_tensor(teacher, tensor_limit)})
    staged = framework.pipelines and sharding in framework.pipeline_shardings
    tensors = _chosen(asked.tensor, sizes)
    pipes = _chosen(asked.pipeline, valid_pipeline(work, gpus if staged else 1))
    contexts = _chosen(asked.context, _context_sizes(sequence_length, gpus if framework.context else 1))
    experts = _chosen(asked.expert, valid_expert(work, gpus if framework.experts else 1))
    micros = _chosen(asked.micro_batch, (1, 2, 4, 8))
    mesh = np.meshgrid(
        *(np.array(axis, dtype=np.float64) for axis in (tensors, pipes, contexts, experts, micros)), indexing="ij"
    )
    tensor, pipeline, context, expert, micro = (axis.ravel() for axis in mesh)
    ranks = tensor * pipeline * context
    per_stage = gpus / pipeline
    keep = (
        (tensor <= tensor_limit)
        & (np.mod(gpus, ranks) == 0)
        & (expert <= per_stage)
        & (np.mod(per_stage, expert) == 0)
        & (np.mod(sequence_length, 2 * context) == 0)
    )
    keep |= (gpus == 1) & (ranks == 1) & (expert == 1)
    tensor, pipeline, context, expert, micro = (axis[keep] for axis in (tensor, pipeline, context, expert, micro))
    data = gpus / (tensor * pipeline * context)
    exact = global_batch / (data * micro)
    micro_batches = np.maximum(1.0, exact if batch_is_fixed else np.round(exact))
    batch = micro_batches * data * micro
    keep = (micro_batches >= pipeline) & (np.mod(micro_batches, 1.0) == 0)
    keep &= np.abs(batch / global_batch - 1.0) <= (1e-9 if batch_is_fixed else BATCH_SLACK)
    tensor, pipeline, context, expert, micro, data, batch, micro_batches = (
        axis[keep] for axis in (tensor, pipeline, context, expert, micro, data, batch, micro_batches)
    )
    chunks = framework.interleaves and interleave
    virtual = _virtual(work, pipeline, micro_batches) if chunks else np.ones_like(pipeline)
    return LayoutGrid(
        tensor=tensor,
        pipeline=pipeline,
        virtual=virtual,
        context=context,
        expert=expert,
        data=data,
        micro_batch=micro,
        global_batch=batch,
    )


def _chosen(asked: int | None, options: tuple[int, ...] | list[int]) -> tuple[int, ...]:
    if asked is None:
        return tuple(options) or (1,)
    return (asked,)


def _context_sizes(sequence_length: int, gpus: int) -> tuple[int, ...]:
    """Powers of two that leave a rank at least 2,048 tokens: shorter pieces only add communication."""
    sizes = [1]
    while sizes[-1] * 2 <= min(gpus, 64) and sequence_length / (sizes[-1] * 2) >= 2048:
        sizes.append(sizes[-1] * 2)
    return tuple(sizes)


def _virtual(work: ModelWork, pipeline: FloatArray, micro_batches: FloatArray) -> FloatArray:
    """Chunks a stage holds: the most (up to 8) that divide its layers; the schedule needs p | m."""
    layers = float(work.layers)
    virtual = np.ones_like(pipeline)
    for chunks in range(2, 9):
        even = (np.mod(layers, pipeline * chunks) == 0) | (np.mod(layers + 2, pipeline * chunks) == 0)
        usable = even & (pipeline > 1) & (np.mod(micro_batches, pipeline) == 0)
        virtual = np.where(usable, float(chunks), virtual)
    return virtual
