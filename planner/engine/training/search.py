"""The layout search: every valid layout on every node shape and node count, the fastest that fits of each.

A *cluster* is a shape with a number of nodes. All layouts of all clusters are columns of one table:
memory is evaluated for each degree of recomputation and the least that fits is kept, then step time
is evaluated for what fits, and the layout with most tokens a second wins its cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.candidates import RECOMPUTE, SHARDING, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import MemoryConstants
from planner.engine.training.layouts import LayoutGrid, enumerate_layouts
from planner.engine.training.memory import training_memory
from planner.engine.training.nodes import NodeHardware, hardware_columns
from planner.engine.training.profile import (
    TrainingProfiles,
    memory_constants,
    step_constants,
    take_memory,
    take_step,
)
from planner.engine.training.search_types import BestLayouts, ClusterSize, LayoutQuestion, LayoutTable, SearchResult
from planner.engine.training.step import step_time
from planner.engine.training.work import ModelWork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

USABLE_SHARE = 0.94
"""Of driver-visible memory: the rest is lost to fragmentation at the peak."""


def search_layouts(
    work: ModelWork,
    question: LayoutQuestion,
    hardware: Sequence[NodeHardware],
    clusters: Sequence[ClusterSize],
    profiles: TrainingProfiles,
) -> SearchResult:
    """The fastest layout that fits, for every cluster."""
    table = with_hybrid_shards(build_table(work, question, hardware, clusters), question)
    contexts = [node.context for node in hardware]
    memory_laws = memory_constants(profiles, contexts)
    recipe = replace(question.recipe, global_batch=table.global_batch)
    memory_law = take_memory(memory_laws, table.node)
    chosen, need, code = _least_recompute(work, recipe, table, memory_law, question)
    least, leanest = _leanest(need, table, len(clusters), question)
    fit_rows = np.flatnonzero(chosen)
    candidates = take_candidates(replace(table.candidates, recompute=code), fit_rows)
    recipe = replace(question.recipe, global_batch=table.global_batch[fit_rows])
    step_laws = step_constants(profiles, contexts)
    law = take_step(step_laws, table.node[fit_rows])
    seconds = step_time(work, recipe, candidates, law, question.teacher).total
    rate = table.global_batch[fit_rows] * question.sequence_length / seconds
    winners = _fastest(table.cluster[fit_rows], rate)
    rows = fit_rows[winners]
    kept = take_candidates(candidates, winners)
    kept_recipe = replace(question.recipe, global_batch=table.global_batch[rows])
    best = BestLayouts(
        cluster=table.cluster[rows],
        global_batch=table.global_batch[rows],
        candidates=kept,
        memory=training_memory(work, kept_recipe, kept, take_memory(memory_laws, table.node[rows]), question.teacher),
        step=step_time(work, kept_recipe, kept, take_step(step_laws, table.node[rows]), question.teacher),
        tokens_per_s=rate[winners],
    )
    return SearchResult(best=best, tried=len(table.cluster), least_memory_bytes=least, leanest=leanest)


def build_table(
    work: ModelWork, question: LayoutQuestion, hardware: Sequence[NodeHardware], clusters: Sequence[ClusterSize]
) -> LayoutTable:
    """All valid layouts of all clusters; grids are made once for each (GPUs, domain) pair."""
    grids: dict[tuple[int, int], LayoutGrid] = {}
    chosen = []
    for cluster in clusters:
        domain = min(hardware[cluster.node].link_domain_gpus, cluster.gpus)
        key = (cluster.gpus, domain)
        if key not in grids:
            grids[key] = enumerate_layouts(
                work,
                gpus=cluster.gpus,
                domain_gpus=domain,
                global_batch=question.global_batch,
                batch_is_fixed=question.batch_is_fixed,
                sequence_length=question.sequence_length,
                asked=question.asked,
                framework=question.framework,
                sharding=question.sharding_name,
                interleave=question.schedule in ("auto", "interleaved"),
                teacher=question.teacher,
            )
        chosen.append(grids[key])
    counts = np.array([len(grid) for grid in chosen], dtype=np.int64)
    cluster_of = np.repeat(np.arange(len(clusters), dtype=np.int64), counts)
    node_of = np.array([cluster.node for cluster in clusters], dtype=np.int64)[cluster_of]
    columns = {
        f.name: np.concatenate([getattr(grid, f.name) for grid in chosen]) if len(chosen) else np.zeros(0)
        for f in fields(LayoutGrid)
    }
    batch = columns.pop("global_batch")
    gpus = np.array([cluster.gpus for cluster in clusters], dtype=np.float64)[cluster_of]
    return LayoutTable(
        cluster=cluster_of,
        node=node_of,
        global_batch=batch,
        candidates=_candidates(question, hardware, node_of, gpus, columns),
    )


def with_hybrid_shards(table: LayoutTable, question: LayoutQuestion) -> LayoutTable:
    """The table with every layout that cuts weights over more than a scale-up domain once more, cut inside it (HSDP).

    Only where the framework shards weights unless told otherwise, and the question leaves the sharding to it.
    """
    framework, candidates = question.framework, table.candidates
    tries = question.sharding == "auto" and framework.default_sharding == "zero3" and "hsdp" in framework.shardings
    if not tries or not len(table.cluster):
        return table
    group = np.asarray(candidates.shard_group)
    inside = np.minimum(group, np.asarray(candidates.link_domain_gpus) / candidates.tensor)
    again = np.flatnonzero((inside > 1.0) & (inside < group) & np.equal(candidates.sharding, SHARDING["zero3"]))
    rows = np.concatenate([np.arange(len(table.cluster), dtype=np.int64), again])
    order = np.argsort(table.cluster[rows], kind="stable")
    is_again, rows = (np.arange(len(rows)) >= len(table.cluster))[order], rows[order]
    both = take_candidates(candidates, rows)
    return LayoutTable(
        cluster=table.cluster[rows],
        node=table.node[rows],
        global_batch=table.global_batch[rows],
        candidates=replace(both, shard_group=np.where(is_again, inside[rows], group[rows])),
    )


def _candidates(
    question: LayoutQuestion,
    hardware: Sequence[NodeHardware],
    node_of: IntArray,
    gpus: FloatArray,
    columns: Mapping[str, FloatArray],
) -> TrainingCandidates:
    of_node = [hardware_columns(node) for node in hardware]

    def per_node(name: str) -> FloatArray:
        return np.array([node[name] for node in of_node])[node_of]

    ranks = columns["data"] * columns["context"]
    name = question.sharding_name
    domain = per_node("link_domain_gpus")
    inside = np.maximum(1.0, np.minimum(ranks, domain / columns["tensor"]))
    return TrainingCandidates(
        **columns,
        gpus=gpus,
        expert_tensor=1.0,
        sharding=np.where(ranks > 1.0, SHARDING[name], 0.0),
        shard_group=inside if name == "hsdp" else ranks,
        recompute=0.0,
        **{name: per_node(name) for name in (of_node[0] if of_node else ())},
        zero_bubble=np.where(columns["pipeline"] > 1.0, 1.0, 0.0) if question.schedule == "zero_bubble" else 0.0,
    )


def _least_recompute(
    work: ModelWork, recipe: TrainingRecipe, table: LayoutTable, law: MemoryConstants, question: LayoutQuestion
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """(fits, bytes of the leanest degree, recompute code chosen) of every row."""
    names = list(RECOMPUTE) if question.recompute == "auto" else [question.recompute]
    code = np.full(len(table.cluster), RECOMPUTE[names[-1]])
    fits = np.zeros(len(table.cluster), dtype=np.bool_)
    need = np.full(len(table.cluster), np.inf)
    limit = USABLE_SHARE * np.asarray(table.candidates.memory_bytes)
    for name in names:
        rows = np.flatnonzero(~fits)
        every = len(rows) == len(fits)
        candidates = table.candidates if every else take_candidates(table.candidates, rows)
        candidates = replace(candidates, recompute=RECOMPUTE[name])
        part = replace(recipe, global_batch=table.global_batch[rows])
        total = training_memory(work, part, candidates, take_memory(law, rows), question.teacher).total
        total = np.broadcast_to(total, rows.shape)
        need[rows] = np.minimum(need[rows], total)
        good = rows[total <= limit[rows]]
        code[good] = RECOMPUTE[name]
        fits[good] = True
    return fits, need, code


def _leanest(
    need: FloatArray, table: LayoutTable, clusters: int, question: LayoutQuestion
) -> tuple[FloatArray, list[str]]:
    least = np.full(clusters, np.nan)
    words = [""] * clusters
    for row in _first_of_each(table.cluster, -need).tolist():
        cluster = int(table.cluster[row])
        least[cluster] = need[row]
        words[cluster] = layout_words(table.candidates, row, question.sharding_name)
    return least, words


def layout_words(candidates: TrainingCandidates, row: int, sharding: str) -> str:
    """A layout in words: ``TP4 PP2 DP8, micro-batch 1, zero1``; sizes of 1 are left out."""
    sizes = (
        ("TP", candidates.tensor),
        ("PP", candidates.pipeline),
        ("CP", candidates.context),
        ("EP", candidates.expert),
        ("DP", candidates.data),
    )
    parts = [f"{name}{int(np.asarray(size)[row])}" for name, size in sizes if np.asarray(size)[row] > 1]
    return f"{' '.join(parts) or 'one GPU'}, micro-batch {int(np.asarray(candidates.micro_batch)[row])}, {sharding}"


def _fastest(cluster: IntArray, rate: FloatArray) -> IntArray:
    """For each cluster the row with the highest rate; rows of a cluster are neighbours."""
    return _first_of_each(cluster, rate)


def _first_of_each(cluster: IntArray, value: FloatArray) -> IntArray:
    """For each run of equal clusters the first row with its largest value.

    >>> _first_of_each(np.array([0, 0, 0, 2, 2]), np.array([1.0, 3.0, 3.0, 5.0, 4.0])).tolist()
    [1, 3]
    """
    if not len(cluster):
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.r_[True, cluster[1:] != cluster[:-1]])
    lengths = np.diff(np.r_[starts, len(cluster)])
    rows = np.flatnonzero(value == np.repeat(np.maximum.reduceat(value, starts), lengths))
    owner = cluster[rows]
    return rows[np.r_[True, owner[1:] != owner[:-1]]].astype(np.int64)


def take_candidates(candidates: TrainingCandidates, rows: IntArray) -> TrainingCandidates:
    """Some rows of the candidates' columns."""
    columns = {f.name: np.asarray(getattr(candidates, f.name)) for f in fields(TrainingCandidates)}
    return TrainingCandidates(**{name: value[rows] if value.ndim else value for name, value in columns.items()})
