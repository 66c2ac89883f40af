"""Every way to serve one model on every kind of node, as equal-length columns.

A candidate is a shape (kind of node) x tensor, pipeline and expert parallelism x weight format. Only
valid layouts are enumerated; what the question pins narrows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.engine.engine_support import ANYWHERE, EngineSupport
from planner.engine.errors import InvalidQuestion
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.parallelism import check_layout, splits_experts, valid_tensor_parallel, width_faults
from planner.engine.quantization import WEIGHT_FORMATS, compute_format, resolve_format
from planner.engine.workload import InferenceQuestion

IntArray = NDArray[np.int64]

MULTI_NODE_STAGES = (2, 3, 4, 6, 8)
"""Nodes one pipeline is spread over, each filled by tensor-parallel groups."""
WIDE_NODES = (1, 2, 4, 8)
"""Nodes one wide expert group is spread over, where none is asked for."""
MULTI_NODE_MIN_GPUS = 4
"""One model across smaller nodes would be held together by their network alone."""
MULTI_NODE_MIN_BYTES_S = 100e9 / 8
"""A node's network from which a replica may span nodes, where it is no RDMA fabric: 100 Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Columns of equal length; ``shape`` indexes the shapes given, ``weight_format`` the names."""

    shape: IntArray
    tensor: IntArray
    pipeline: IntArray
    expert: IntArray
    weight_format: IntArray
    weight_formats: tuple[str, ...]
    token_budget: IntArray | None = None
    """Tokens an iteration, where several were asked for; None: the question's own."""

    def __len__(self) -> int:
        return len(self.shape)

    def take(self, rows: IntArray) -> Candidates:
        """Some candidates only, in the order of ``rows``."""
        return Candidates(
            shape=self.shape[rows],
            tensor=self.tensor[rows],
            pipeline=self.pipeline[rows],
            expert=self.expert[rows],
            weight_format=self.weight_format[rows],
            weight_formats=self.weight_formats,
            token_budget=None if self.token_budget is None else self.token_budget[rows],
        )


def enumerate_candidates(
    arch: ModelArch, shapes: Sequence[Shape], question: InferenceQuestion, support: EngineSupport = ANYWHERE
) -> Candidates:
    """All valid candidates of ``shapes`` that the engine runs on; the order is by shape, then format, then layout."""
    names = tuple(WEIGHT_FORMATS)
    rows: list[tuple[int, int, int, int, int]] = []
    layouts: dict[tuple[int, int, bool, bool], list[tuple[int, int, int]]] = {}
    formats: dict[str, list[int]] = {}
    known: dict[tuple[int, bool, str], bool] = {}
    valid = valid_tensor_parallel(arch, max((_tensor_domain(shape) for shape in shapes), default=1))
    for index, shape in enumerate(shapes):
        card = shape.accelerator
        if not support.runs_on(card) or not support.caches(question.kv_format, card):
            continue
        if card.key not in formats:
            loaded = asked_formats(arch, question, frozenset(card.peak_flops))
            formats[card.key] = [names.index(name) for name in loaded if support.loads(name, card)]
        key = (int(shape.gpu_count), _tensor_domain(shape), shape.intra_node_link in ("pcie", "none"), _spans(shape))
        if key not in layouts:
            layouts[key] = list(_layouts(arch, valid, *key, question))
        rows += [
            (index, *layout, fmt)
            for fmt in formats[card.key]
            for layout in layouts[key]
            if _splits(arch, layout, names[fmt], known)
        ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    found = Candidates(
        shape=columns[0],
        tensor=columns[1],
        pipeline=columns[2],
        expert=columns[3],
        weight_format=columns[4],
        weight_formats=names,
    )
    return _with_budgets(found, [int(budget) for budget in question.token_budgets])


def _with_budgets(candidates: Candidates, budgets: Sequence[int]) -> Candidates:
    """Every candidate at every token budget asked for."""
    if not budgets:
        return candidates
    repeated = candidates.take(np.repeat(np.arange(len(candidates)), len(budgets)))
    return replace(repeated, token_budget=np.tile(np.array(budgets, dtype=np.int64), len(candidates)))


def _splits(
    arch: ModelArch, layout: tuple[int, int, int], weight_format: str, known: dict[tuple[int, bool, str], bool]
) -> bool:
    """Whether the MLP widths split over the ranks in this format: blocks of scales aren't cut."""
    tp, _pp, ep = layout
    key = (tp, ep > 1, weight_format)
    if key not in known:
        known[key] = not width_faults(arch, tp, ep, weight_format)
    return known[key]


def asked_formats(arch: ModelArch, question: InferenceQuestion, peaks: frozenset[str]) -> list[str]:
    """The weight formats to try on an accelerator with these peaks.

    ``auto`` is the format the checkpoint ships in, and FP8 beside it where a 16-bit model meets an
    accelerator with FP8 matrix units: a well-tested step that needs no calibration data.
    """
    names = []
    for asked in question.weight_formats:
        if asked != "auto":
            names.append(asked)
            continue
        native = resolve_format(arch, "auto").name
        names.append("fp16" if native == "bf16" and "bf16" not in peaks else native)
        if native in ("bf16", "fp16") and "fp8" in peaks:
            names.append("fp8")
    return [name for name in dict.fromkeys(names) if compute_format(WEIGHT_FORMATS[name], peaks) is not None]


def _tensor_domain(shape: Shape) -> int:
    """GPUs a tensor-parallel group may span: the node, or a rack-scale link domain."""
    return max(int(shape.gpu_count), shape.link_domain_gpus)


def _spans(shape: Shape) -> bool:
    """Whether one replica may be spread over several such nodes."""
    fast = shape.fabric in ("infiniband", "roce", "efa") or (shape.network_bytes_s or 0.0) >= MULTI_NODE_MIN_BYTES_S
    return shape.gpu_count >= MULTI_NODE_MIN_GPUS and (fast or shape.link_domain_gpus > shape.gpu_count)


def _layouts(
    arch: ModelArch,
    valid: Sequence[int],
    gpus: int,
    domain: int,
    slow_link: bool,
    spans: bool,
    question: InferenceQuestion,
) -> list[tuple[int, int, int]]:
    tensors = [tp for tp in valid if tp <= domain and (tp <= gpus or tp % gpus == 0)]
    if question.tensor_parallel is not None:
        tensors = [tp for tp in tensors if tp == question.tensor_parallel]
    if question.attention_ranks == "data":
        return _wide_expert_layouts(arch, gpus, spans, question)
    layouts = [
        (tp, pp, ep)
        for tp in tensors
        for pp in _stages(arch, valid, tp, gpus, slow_link, spans, question)
        for ep in _expert_groups(arch, tp, question)
    ]
    return layouts + _wide_expert_layouts(arch, gpus, spans, question)


def _wide_expert_layouts(
    arch: ModelArch, gpus: int, spans: bool, question: InferenceQuestion
) -> list[tuple[int, int, int]]:
    """Data-parallel attention over an expert-parallel group: for latent attention, whose cache a
    tensor-parallel group would only replicate, and where it is asked for."""
    latent = any(group.kind == "mla" for group in arch.attention)
    wanted = question.attention_ranks == "data" or (question.attention_ranks == "auto" and latent)
    if not wanted or gpus <= 1 or question.pipeline_parallel not in (None, 1):
        return []
    tensor = question.tensor_parallel or 1
    if tensor > 1 and question.attention_ranks != "data":
        return []
    sizes = [gpus * nodes for nodes in (WIDE_NODES if spans else (1,))]
    asked = question.expert_parallel
    if asked is not None:
        sizes = [asked] if asked == gpus or (spans and asked % gpus == 0) else []
    return [
        (tensor, 1, ep)
        for ep in sizes
        if ep > tensor and ep % tensor == 0 and splits_experts(arch, ep, question.redundant_experts)
    ]


def _stages(
    arch: ModelArch,
    valid: Sequence[int],
    tp: int,
    gpus: int,
    slow_link: bool,
    spans: bool,
    question: InferenceQuestion,
) -> list[int]:
    if question.pipeline_parallel is not None:
        return [question.pipeline_parallel] if question.pipeline_parallel <= arch.layers else []
    # Inside a node a pipeline pays only where tensor parallelism can't: slow links, or heads that don't divide.
    undivided = not any(tp < wider <= gpus for wider in valid)
    within = list(range(2, gpus // tp + 1)) if slow_link or undivided else []
    # Across nodes a stage fills its node: anything less leaves rented GPUs idle.
    fills = spans and tp <= gpus and gpus % tp == 0 and (2 * tp > gpus or slow_link)
    across = [nodes * gpus // tp for nodes in MULTI_NODE_STAGES] if fills else []
    return [pp for pp in dict.fromkeys([1, *within, *across]) if pp <= arch.layers]


def _expert_groups(arch: ModelArch, tp: int, question: InferenceQuestion) -> list[int]:
    copies = question.redundant_experts
    asked = question.expert_parallel
    if asked is not None:
        sizes = [asked] if asked in (1, tp) else []
    else:
        sizes = [1, tp] if tp > 1 and any(group.kind == "moe" for group in arch.ffn) else [1]
    # Copies are of experts that have ranks of their own.
    return [ep for ep in sizes if splits_experts(arch, ep, copies) and (ep > 1 or not copies)]


def check_pinned(arch: ModelArch, question: InferenceQuestion) -> None:
    """Raise ``InvalidQuestion`` when a pinned layout can't work on any hardware, listing what can."""
    errors = check_layout(
        arch,
        tp=question.tensor_parallel or 1,
        pp=question.pipeline_parallel or 1,
        ep=question.expert_parallel or 1,
        copies=question.redundant_experts,
        weight_format=None,
    )
    if errors:
        raise InvalidQuestion(errors)
