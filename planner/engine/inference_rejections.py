"""Why candidates can't serve: one entry for each kind of node and reason, with the number that broke.

Of the candidates that share a node and a reason the entry names the one that came closest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Rejection
from planner.engine.candidates import Candidates, asked_formats
from planner.engine.engine_support import ANYWHERE, EngineSupport
from planner.engine.hardware import Accelerator
from planner.engine.inference_evaluate import Evaluated
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.sentences import Code, joined, say
from planner.engine.sizing import TOO_MANY_REPLICAS, TOO_SLOW_TPOT, TOO_SLOW_TTFT, Sizing
from planner.engine.units import GIB, HOURS_PER_MONTH
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def node_name(shape: Shape) -> str:
    """How a node is called in a sentence: ``8x H100 SXM``."""
    return f"{shape.gpu_count:g}x {shape.accelerator.name}"


def layout_name(candidates: Candidates, row: int) -> str:
    """``TP8 PP2 EP8, fp8``; parts that are 1 are left out except TP."""
    parts = [f"TP{candidates.tensor[row]}"]
    if candidates.pipeline[row] > 1:
        parts.append(f"PP{candidates.pipeline[row]}")
    if candidates.expert[row] > 1:
        parts.append(f"EP{candidates.expert[row]}")
    return joined([" ".join(parts), Code(candidates.weight_formats[candidates.weight_format[row]])], ", ")


def reject_shapes(
    arch: ModelArch,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    offers: IntArray,
    support: EngineSupport = ANYWHERE,
) -> Iterator[Rejection]:
    """Kinds of node that the engine, every layout or every weight format rules out before any sum is made."""
    present = set(candidates.shape.tolist())
    for index, shape in enumerate(shapes):
        if index in present:
            continue
        card = shape.accelerator
        peaks = frozenset(card.peak_flops)
        if not support.runs_on(card):
            reason = _not_run(card, question, support)
            code = "engine"
        elif not support.caches(question.kv_format, card):
            reason = say(
                "{engine} needs compute capability {least:.1f} for a KV cache in {kv}; it has {has}.",
                engine=Code(question.engine),
                least=support.kv_formats.get(question.kv_format, 0.0),
                kv=Code(question.kv_format),
                has=card.compute_capability or "–",
            )
            code = "kv_format"
        elif not peaks:
            reason = say("The catalog has no peak rate of its matrix units, so no time can be stated.")
            code = "no_peak"
        elif not asked_formats(arch, question, peaks):
            reason = say(
                "No matrix units for the asked weight format ({asked}); it has {has}.",
                asked=joined([Code(name) for name in question.weight_formats], ", "),
                has=joined([Code(name) for name in sorted(peaks)], ", "),
            )
            code = "weight_format"
        elif not any(support.loads(name, card) for name in asked_formats(arch, question, peaks)):
            reason = say(
                "{engine} has no kernels there for the weight format asked ({asked}).",
                engine=Code(question.engine),
                asked=joined([Code(name) for name in asked_formats(arch, question, peaks)], ", "),
            )
            code = "weight_format"
        else:
            reason = say(
                "No valid layout: the asked parallel sizes don't fit {gpus:g} GPUs a node.", gpus=shape.gpu_count
            )
            code = "layout"
        yield Rejection(
            subject=node_name(shape),
            code=code,
            reason=reason,
            value=shape.gpu_count,
            limit=None,
            unit="GPUs a node",
            count=int(offers[index]),
            tried=False,
        )


def _not_run(card: Accelerator, question: InferenceQuestion, support: EngineSupport) -> str:
    if support.vendors and card.vendor not in support.vendors:
        return say(
            "{engine} doesn't run on {vendor}: only on {vendors}.",
            engine=Code(question.engine),
            vendor=card.vendor,
            vendors=", ".join(support.vendors),
        )
    return say(
        "{engine} needs compute capability {least:.1f}; it has {has}.",
        engine=Code(question.engine),
        least=support.least_capability,
        has=card.compute_capability,
    )


def reject_unfit(
    evaluated: Evaluated, shapes: Sequence[Shape], question: InferenceQuestion, offers: IntArray
) -> Iterator[Rejection]:
    """Candidates whose memory holds the weights not at all, or not one request."""
    memory, candidates = evaluated.memory, evaluated.candidates
    taken = (memory.weights + memory.resident + memory.activation_peak + memory.non_torch + memory.cuda_graphs) / GIB
    lowered = memory.is_lowered(question.memory_utilization)
    budget = memory.budget / GIB
    unfit = ~memory.fits
    for row, count in _closest(candidates, unfit, taken - budget, offers):
        weights, capacity = float(memory.weights[row]) / GIB, float(memory.capacity[row]) / GIB
        reason = say(
            "{layout}: weights {weights:.1f} GiB and run time {rest:.1f} GiB a GPU exceed "
            "{share:g} x {capacity:.1f} GiB.",
            layout=layout_name(candidates, row),
            weights=weights,
            rest=float(taken[row]) - weights,
            share=question.memory_utilization,
            capacity=capacity,
        )
        if lowered[row]:
            reason = say(
                "{layout}: weights {weights:.1f} GiB and run time {rest:.1f} GiB a GPU, {beside:.1f} GiB of it beside "
                "the engine's budget, exceed {capacity:.1f} GiB.",
                layout=layout_name(candidates, row),
                weights=weights,
                rest=float(taken[row] + memory.unbudgeted[row] / GIB) - weights,
                beside=float(memory.unbudgeted[row]) / GIB,
                capacity=capacity,
            )
        yield Rejection(
            subject=node_name(shapes[candidates.shape[row]]),
            code="memory",
            reason=reason,
            value=float(taken[row]),
            limit=float(budget[row]),
            unit="GiB a GPU",
            count=count,
        )
    tokens = question.max_model_len or question.input_tokens + question.output_tokens
    held = np.asarray(evaluated.limits.kv_sequences, dtype=np.float64)
    for row, count in _closest(candidates, memory.fits & (held < 1), -memory.kv_pool, offers):
        yield Rejection(
            subject=node_name(shapes[candidates.shape[row]]),
            code="kv_memory",
            reason=say(
                "{layout}: {pool:.2f} GiB a GPU left for the KV cache holds no request of {tokens:,} tokens.",
                layout=layout_name(candidates, row),
                pool=float(memory.kv_pool[row]) / GIB,
                tokens=tokens,
            ),
            value=float(memory.kv_pool[row] / GIB),
            limit=None,
            unit="GiB a GPU",
            count=count,
        )


def reject_slow(
    candidates: Candidates,
    sizing: Sizing,
    shapes: Sequence[Shape],
    question: InferenceQuestion,
    offers: IntArray,
) -> Iterator[Rejection]:
    """Candidates that miss a latency limit even when idle, or that no number of replicas carries."""
    at = question.slo_percentile
    for fault, code, label, best, limit_ms in (
        (TOO_SLOW_TTFT, "ttft_slo", "TTFT", sizing.best_ttft_s * 1e3, question.ttft_ms),
        (TOO_SLOW_TPOT, "tpot_slo", "TPOT", sizing.best_tpot_s * 1e3, question.tpot_ms),
    ):
        if limit_ms is None:
            continue
        for row, count in _closest(candidates, sizing.fault == fault, best, offers):
            yield Rejection(
                subject=node_name(shapes[candidates.shape[row]]),
                code=code,
                reason=say(
                    "{layout}: {name} {at} is {best:,.4g} ms on an idle replica, over the limit of {limit:g} ms.",
                    layout=layout_name(candidates, row),
                    name=label,
                    at=Code(at),
                    best=float(best[row]),
                    limit=limit_ms,
                ),
                value=float(best[row]),
                limit=limit_ms,
                unit="ms",
                count=count,
            )
    for row, count in _closest(candidates, sizing.fault == TOO_MANY_REPLICAS, sizing.best_ttft_s, offers):
        yield Rejection(
            subject=node_name(shapes[candidates.shape[row]]),
            code="replicas",
            reason=say("{layout}: more than a million replicas would be needed.", layout=layout_name(candidates, row)),
            value=None,
            limit=None,
            unit="replicas",
            count=count,
        )


def reject_nodes(
    candidates: Candidates, nodes: IntArray, shapes: Sequence[Shape], question: InferenceQuestion, offers: IntArray
) -> Iterator[Rejection]:
    """Candidates that need more nodes than asked for."""
    for row, count in _closest(candidates, nodes > question.max_nodes, nodes.astype(np.float64), offers):
        yield Rejection(
            subject=node_name(shapes[candidates.shape[row]]),
            code="max_nodes",
            reason=say(
                "{layout}: needs {nodes:,} nodes, more than {most:,}.",
                layout=layout_name(candidates, row),
                nodes=int(nodes[row]),
                most=question.max_nodes,
            ),
            value=float(nodes[row]),
            limit=float(question.max_nodes),
            unit="nodes",
            count=count,
        )


def reject_budget(usd_per_hour: FloatArray, within: BoolArray, question: InferenceQuestion) -> Iterator[Rejection]:
    """Options that cost more than the budget, named by the cheapest of them."""
    over = usd_per_hour[~within]
    if len(over) and question.budget_usd_per_month is not None:
        cheapest = float(over.min()) * HOURS_PER_MONTH
        yield Rejection(
            subject=say("{count:,} options", count=len(over)),
            code="budget",
            reason=say(
                "The cheapest costs {usd:,.0f} USD a month, over {limit:,.0f}.",
                usd=cheapest,
                limit=question.budget_usd_per_month,
            ),
            value=cheapest,
            limit=question.budget_usd_per_month,
            unit="USD/month",
            count=len(over),
        )


def _closest(
    candidates: Candidates, rejected: BoolArray, excess: FloatArray, offers: IntArray
) -> Iterator[tuple[int, int]]:
    """For each kind of node: the rejected candidate with the least excess, and how many options it stands for."""
    rows = np.flatnonzero(rejected)
    order = rows[np.lexsort((excess[rows], candidates.shape[rows]))]
    shapes, starts, sizes = np.unique(candidates.shape[order], return_index=True, return_counts=True)
    for shape, start, size in zip(shapes.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        yield int(order[start]), size * int(offers[shape])
