"""Why clusters can't train, with the number that broke; and the ways out when nothing is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Advice, Rejection
from planner.engine.offers import Shape
from planner.engine.sentences import say
from planner.engine.training.recipe import FROZEN_METHODS
from planner.engine.training.search import USABLE_SHARE, SearchResult
from planner.engine.training_clusters import Clusters, node_words
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_run import Run
from planner.engine.units import GIB

IntArray = NDArray[np.int64]

MOST_ADVICE = 3


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


def advise(question: TrainingQuestion, rejections: Sequence[Rejection]) -> tuple[Advice, ...]:
    """Up to three changes, each with the number that the closest rejected option needed."""
    closest: dict[str, Rejection] = {}
    for rejection in rejections:
        best = closest.get(rejection.code)
        if best is None or _excess(rejection) < _excess(best):
            closest[rejection.code] = rejection
    return tuple(_ways(question, closest))[:MOST_ADVICE]


def _excess(rejection: Rejection) -> float:
    if rejection.value is None or rejection.limit is None:
        return float("inf")
    return rejection.value - rejection.limit


def _ways(question: TrainingQuestion, closest: dict[str, Rejection]) -> Iterator[Advice]:
    short = closest.get("memory")
    # Where something does fit, memory is not what stands in the way.
    if short is not None and not {"finish_days", "budget"} & closest.keys():
        if question.gpus is not None:
            yield Advice(
                field="gpus", suggestion=say("More GPUs: {subject} came closest.", subject=short.subject), value=""
            )
        if question.recompute in ("none", "selective"):
            yield Advice(field="recompute", suggestion=say("Full recomputation keeps only layer inputs."), value="full")
        if question.method == "full_finetune":
            yield Advice(
                field="method", suggestion=say("LoRA keeps no optimizer states of the base model."), value="lora"
            )
        yield from _lighter_states(question)
    if "layout" in closest:
        yield Advice(field="global_batch_tokens", suggestion=say("Let the search choose the global batch."), value="")


def _lighter_states(question: TrainingQuestion) -> Iterator[Advice]:
    """Ways to fewer states on a GPU: cut them over more ranks, or leave the optimizer's on the host."""
    if question.framework == "ddp":
        suggestion = say("FSDP2 cuts weights, gradients and states over all GPUs; DDP keeps them whole.")
        yield Advice(field="framework", suggestion=suggestion, value="fsdp2")
    elif question.sharding == "none":
        yield Advice(
            field="sharding", suggestion=say("Sharding cuts the states over data-parallel ranks."), value="auto"
        )
    else:
        more = str(question.max_nodes * 2)
        yield Advice(field="max_nodes", suggestion=say("More nodes share the states."), value=more)
    if question.offload == "none" and question.method not in FROZEN_METHODS:
        suggestion = say("The host can keep the optimizer's states; every step waits for its update.")
        yield Advice(field="offload", suggestion=suggestion, value="optimizer")
