"""Why clusters can't train, with the number that broke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Rejection
from planner.engine.offers import Shape
from planner.engine.sentences import say
from planner.engine.training.search import USABLE_SHARE
from planner.engine.training.search_types import SearchResult
from planner.engine.training_clusters import Clusters, node_words
from planner.engine.training_run import Run
from planner.engine.units import GIB

IntArray = NDArray[np.int64]


def reject_clusters(
    result: SearchResult, clusters: Clusters, shapes: Sequence[Shape], run: Run, offers: IntArray
) -> Iterator[Rejection]:
    """Clusters without a layout that fits: one entry a node kind, for the cluster that came closest."""
    solved = set(result.best.cluster.tolist())
    failed_of: dict[int, list[int]] = {}
    for index, size in enumerate(clusters.sizes):
        if index not in solved:
            failed_of.setdefault(size.node, []).append(index)
    for kind, shape_row in enumerate(clusters.shapes):
        failed = failed_of.get(kind)
        if not failed:
            continue
        count = len(failed) * int(offers[kind])
        valid = [i for i in failed if not np.isnan(result.least_memory_bytes[i])]
        if valid:
            closest = min(valid, key=lambda i: float(result.least_memory_bytes[i]))
            yield _memory(result, clusters, shapes[shape_row], closest, count)
        else:
            yield _no_layout(clusters, shapes[shape_row], failed[0], run, count)


def _memory(result: SearchResult, clusters: Clusters, shape: Shape, cluster: int, count: int) -> Rejection:
    need = float(result.least_memory_bytes[cluster]) / GIB
    limit = USABLE_SHARE * shape.accelerator.memory_bytes / GIB
    nodes = clusters.sizes[cluster].nodes
    return Rejection(
        subject=f"{nodes} x {node_words(shape)}" if nodes > 1 else node_words(shape),
        code="memory",
        reason=say(
            "{layout}: {need:,.1f} GiB a GPU exceed {share:g} x {capacity:,.1f} GiB.",
            layout=result.leanest[cluster],
            need=need,
            share=USABLE_SHARE,
            capacity=shape.accelerator.memory_bytes / GIB,
        ),
        value=need,
        limit=limit,
        unit="GiB a GPU",
        count=count,
    )


def _no_layout(clusters: Clusters, shape: Shape, cluster: int, run: Run, count: int) -> Rejection:
    size = clusters.sizes[cluster]
    return Rejection(
        subject=f"{size.nodes} x {node_words(shape)}" if size.nodes > 1 else node_words(shape),
        code="layout",
        reason=say(
            "No valid layout on {gpus} GPUs: {sequences:,.0f} sequences a step do not divide over them with the "
            "asked parallel sizes.",
            gpus=size.gpus,
            sequences=run.batch_sequences,
        ),
        value=float(size.gpus),
        limit=run.batch_sequences,
        unit="GPUs",
        count=count,
    )
