"""Series behind the charts of one training option: memory by stage, strong scaling, micro-batch against speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date

import numpy as np

from planner.engine.answers import Layout
from planner.engine.hardware import CatalogSnapshot
from planner.engine.model_arch import ModelArch
from planner.engine.offers import OfferTable, offer_table
from planner.engine.training.candidates import RECOMPUTE, SHARDING, TrainingCandidates
from planner.engine.training.memory import TrainingMemory, training_memory
from planner.engine.training.nodes import NodeHardware, hardware_columns
from planner.engine.training.profile import TrainingProfiles, memory_constants, step_constants
from planner.engine.training.search import USABLE_SHARE, search_layouts
from planner.engine.training.search_types import BestLayouts
from planner.engine.training.stages import stage_memories
from planner.engine.training.step import StepTime, step_time
from planner.engine.training_answers import TrainingOption
from planner.engine.training_clusters import Clusters, training_clusters
from planner.engine.training_options import layout_of, recompute_name, sharding_name
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_run import Run, describe_run, useful_share, wall_hours
from planner.engine.units import GIB

MICRO_BATCHES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """What one GPU of a pipeline stage holds; parts sum to the total."""

    stage: int
    """From 0."""
    layers: float
    has_embedding: bool
    has_head: bool
    in_flight: float
    """Micro-batches whose activations are kept."""
    parts_gib: dict[str, float]
    total_gib: float
    capacity_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """The best layout on so many nodes of the option's kind."""

    nodes: int
    gpus: int
    layout: Layout
    micro_batch: int
    recompute: str
    sharding: str
    step_s: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    efficiency: float
    """Tokens a second and GPU over those on the fewest nodes."""
    mfu: float
    goodput: float
    days: float
    gpu_hours: float
    usd: float
    """At the option's price a node, spare nodes included."""
    seconds: dict[str, float]
    """Of one step, by term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchPoint:
    """The option's layout with another micro-batch or degree of recomputation."""

    micro_batch: int
    recompute: str
    memory_gib: float
    capacity_gib: float
    fits: bool
    step_s: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSeries:
    """Everything that is drawn of one option: memory by stage, more and fewer nodes, other micro-batches."""

    option: str
    """Its id."""
    ranks: tuple[StageMemory, ...]
    scaling: tuple[ScalingPoint, ...]
    micro_batches: tuple[MicroBatchPoint, ...]


def training_series(
    question: TrainingQuestion,
    arch: ModelArch,
    snapshot: CatalogSnapshot,
    profiles: TrainingProfiles,
    today: date,
    option: TrainingOption,
    teacher: ModelArch | None = None,
) -> TrainingSeries:
    """Series of an option of the plan that ``question`` has on the same catalog; none where its offer is gone."""
    run = describe_run(question, arch, profiles, today, teacher)
    table = offer_table(snapshot)
    offer = _offer_row(table, option)
    if offer is None:
        return TrainingSeries(option=option.id, ranks=(), scaling=(), micro_batches=())
    shape = table.shapes[table.shape[offer]]
    whole = replace(question, gpus=None, nodes=None)
    clusters = training_clusters([shape], [0], [1], whole, arch, run.framework, profiles, today)
    (hardware,) = clusters.hardware
    candidates = _candidates(option, hardware, run)
    return TrainingSeries(
        option=option.id,
        ranks=tuple(_ranks(run, option, candidates, hardware, profiles)),
        scaling=tuple(_scaling(run, option, clusters, question, profiles)),
        micro_batches=tuple(_micro_batches(run, option, candidates, hardware, profiles)),
    )


def _offer_row(table: OfferTable, option: TrainingOption) -> int | None:
    """The row of the option's offer: option ids begin with the offer's."""
    of_kind = np.flatnonzero(table.provider == option.cluster.provider)
    return next((row for row in of_kind.tolist() if option.id.startswith(table.offers[row].id + ":n")), None)


def _candidates(option: TrainingOption, hardware: NodeHardware, run: Run) -> TrainingCandidates:
    """The option's layout as a candidate of one row."""
    layout, gpus = option.layout, float(option.cluster.gpus_used)
    ranks = float(layout.replicas * layout.context)
    inside = max(1.0, min(ranks, hardware.link_domain_gpus / layout.tensor))
    return TrainingCandidates(
        gpus=gpus,
        tensor=float(layout.tensor),
        pipeline=float(layout.pipeline),
        virtual=float(option.virtual_stages),
        context=float(layout.context),
        expert=float(layout.expert),
        expert_tensor=1.0,
        data=float(layout.replicas),
        micro_batch=float(option.micro_batch),
        sharding=SHARDING[option.sharding],
        shard_group=inside if option.sharding == "hsdp" else ranks,
        recompute=RECOMPUTE[option.recompute],
        zero_bubble=float(run.layout_question.schedule == "zero_bubble" and layout.pipeline > 1),
        **hardware_columns(hardware),
    )


def _ranks(
    run: Run,
    option: TrainingOption,
    candidates: TrainingCandidates,
    hardware: NodeHardware,
    profiles: TrainingProfiles,
) -> Iterator[StageMemory]:
    recipe = replace(run.layout_question.recipe, global_batch=_sequences(option, run))
    law = memory_constants(profiles, [hardware.context])
    found = stage_memories(run.work, recipe, candidates, law, run.layout_question.teacher)
    last = option.layout.pipeline - 1
    for stage, total in enumerate(found.memory.total.tolist()):
        yield StageMemory(
            stage=stage,
            layers=float(found.layers[stage]),
            has_embedding=stage == 0,
            has_head=stage == last,
            in_flight=float(found.in_flight[stage]),
            parts_gib={f.name: float(getattr(found.memory, f.name)[stage]) / GIB for f in fields(TrainingMemory)},
            total_gib=total / GIB,
            capacity_gib=hardware.memory_bytes / GIB,
        )


def _sequences(option: TrainingOption, run: Run) -> float:
    return option.global_batch_tokens / run.layout_question.sequence_length


def _scaling(
    run: Run, option: TrainingOption, clusters: Clusters, question: TrainingQuestion, profiles: TrainingProfiles
) -> Iterator[ScalingPoint]:
    best = search_layouts(run.work, run.layout_question, clusters.hardware, clusters.sizes, profiles).best
    sizes = [clusters.sizes[cluster] for cluster in best.cluster.tolist()]
    gpus = np.array([size.gpus for size in sizes], dtype=np.float64)
    nodes = np.array([size.nodes for size in sizes], dtype=np.float64)
    useful = useful_share(run, question, gpus, nodes, is_spot=option.cluster.purchase_option == "spot")
    hours = wall_hours(run, best.tokens_per_s, useful)
    each = best.tokens_per_s / gpus
    usd = hours * float(option.price.usd_per_node_hour) * (nodes + question.spare_nodes)
    peak = clusters.hardware[0].peak_flops_16bit
    for row in np.argsort(gpus).tolist():
        yield ScalingPoint(
            nodes=sizes[row].nodes,
            gpus=sizes[row].gpus,
            layout=layout_of(best, row),
            micro_batch=int(np.asarray(best.candidates.micro_batch)[row]),
            recompute=recompute_name(best, row),
            sharding=sharding_name(best, row),
            step_s=float(best.step.total[row]),
            tokens_per_s=float(best.tokens_per_s[row]),
            tokens_per_s_per_gpu=float(each[row]),
            efficiency=float(each[row] / each[np.argmin(gpus)]),
            mfu=float(each[row] * run.flops_per_token / peak),
            goodput=float(useful[row]),
            days=float(hours[row]) / 24.0,
            gpu_hours=float(hours[row] * gpus[row]),
            usd=float(usd[row]),
            seconds=_seconds(best, row),
        )


def _seconds(best: BestLayouts, row: int) -> dict[str, float]:
    return {f.name: float(getattr(best.step, f.name)[row]) for f in fields(StepTime)}


def _micro_batches(
    run: Run,
    option: TrainingOption,
    candidates: TrainingCandidates,
    hardware: NodeHardware,
    profiles: TrainingProfiles,
) -> Iterator[MicroBatchPoint]:
    sequences = _sequences(option, run)
    share = sequences / option.layout.replicas
    usable = [size for size in MICRO_BATCHES if share % size == 0 and share / size >= option.layout.pipeline]
    pairs = [(size, name) for name in RECOMPUTE for size in usable]
    tried = replace(
        candidates,
        micro_batch=np.array([size for size, _ in pairs], dtype=np.float64),
        recompute=np.array([RECOMPUTE[name] for _, name in pairs]),
        virtual=_virtual(candidates, share, [size for size, _ in pairs], option),
    )
    recipe = replace(run.layout_question.recipe, global_batch=sequences)
    teacher = run.layout_question.teacher
    memory = training_memory(run.work, recipe, tried, memory_constants(profiles, [hardware.context]), teacher).total
    seconds = step_time(run.work, recipe, tried, step_constants(profiles, [hardware.context]), teacher).total
    for row, (size, name) in enumerate(pairs):
        rate = option.global_batch_tokens / float(seconds[row])
        yield MicroBatchPoint(
            micro_batch=size,
            recompute=name,
            memory_gib=float(memory[row]) / GIB,
            capacity_gib=hardware.memory_bytes / GIB,
            fits=bool(memory[row] <= USABLE_SHARE * hardware.memory_bytes),
            step_s=float(seconds[row]),
            tokens_per_s=rate,
            tokens_per_s_per_gpu=rate / option.cluster.gpus_used,
        )


def _virtual(candidates: TrainingCandidates, share: float, sizes: Sequence[int], option: TrainingOption) -> np.ndarray:
    """Chunks a stage: the option's where micro-batches divide over the stages, as interleaving needs."""
    divides = np.mod(share / np.array(sizes, dtype=np.float64), option.layout.pipeline) == 0
    return np.where(divides, candidates.virtual, 1.0)
