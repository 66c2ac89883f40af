"""Rentable node shapes as training hardware, and the cluster sizes a question allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from planner.engine.answers import Rejection
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.sentences import Code, joined, say
from planner.engine.training.nodes import NodeHardware
from planner.engine.training.power import power_share
from planner.engine.training.profile import Context, FrameworkProfile, TrainingProfiles
from planner.engine.training.recipe import FROZEN_METHODS, PEAK_FORMAT, is_eager
from planner.engine.training.search_types import ClusterSize
from planner.engine.training_question import TrainingQuestion

PCIE_BYTES_S: Final = {3: 12e9, 4: 25e9, 5: 50e9, 6: 100e9}
"""One direction of a x16 slot as collectives reach it; the slowest where the generation is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Kinds of node that can train, the sizes to try, and what was refused before any sum."""

    shapes: tuple[int, ...]
    """Row of the offer table's shapes, by node kind."""
    hardware: tuple[NodeHardware, ...]
    sizes: tuple[ClusterSize, ...]
    rejections: tuple[Rejection, ...]


def training_clusters(
    shapes: Sequence[Shape],
    used: Sequence[int],
    offers: Sequence[int],
    question: TrainingQuestion,
    arch: ModelArch,
    framework: FrameworkProfile,
    profiles: TrainingProfiles,
    today: date,
) -> Clusters:
    """Clusters to search; ``offers`` counts the offers of each used shape."""
    kept: list[int] = []
    hardware: list[NodeHardware] = []
    sizes: list[ClusterSize] = []
    rejections: list[Rejection] = []
    for row, count in zip(used, offers, strict=True):
        shape = shapes[row]
        refusal = _refusal(shape, question, framework, count)
        if refusal is not None:
            rejections.append(refusal)
            continue
        found = _sizes(shape, question, len(kept))
        is_lone = shape.network_bytes_s is None and most_nodes(question) > 1
        if is_lone:
            rejections.append(_unknown_network(shape, count))
        if not found:
            # Nodes asked by number fail on an unknown network alone, which is said already.
            if question.nodes is None:
                rejections.append(_wrong_count(shape, question, count))
            continue
        kept.append(row)
        hardware.append(_hardware(shape, question, arch, framework, profiles, today))
        sizes += found
    return Clusters(shapes=tuple(kept), hardware=tuple(hardware), sizes=tuple(sizes), rejections=tuple(rejections))


def node_words(shape: Shape) -> str:
    """How a node is called in a sentence: ``8x H100 SXM``."""
    return f"{shape.gpu_count:g}x {shape.accelerator.name}"


def _refusal(shape: Shape, question: TrainingQuestion, framework: FrameworkProfile, count: int) -> Rejection | None:
    accelerator = shape.accelerator
    if accelerator.vendor not in framework.vendors:
        reason = say("{framework} does not run on {vendor}.", framework=framework.label, vendor=accelerator.vendor)
        return _rejection(shape, "framework", reason, count)
    wanted = PEAK_FORMAT[question.precision]
    if wanted not in accelerator.peak_flops:
        has = joined([Code(name) for name in sorted(accelerator.peak_flops)], ", ")
        reason = say("No {wanted} matrix units; it has {has}.", wanted=Code(wanted), has=has)
        return _rejection(shape, "precision", reason, count)
    return None


def _rejection(shape: Shape, code: str, reason: str, count: int) -> Rejection:
    return Rejection(
        subject=node_words(shape),
        code=code,
        reason=reason,
        value=None,
        limit=None,
        unit="offers",
        count=count,
        tried=False,
    )


def _unknown_network(shape: Shape, count: int) -> Rejection:
    return _rejection(
        shape, "network_unknown", say("The provider states no network speed, so only one node can be timed."), count
    )


def _wrong_count(shape: Shape, question: TrainingQuestion, count: int) -> Rejection:
    return Rejection(
        subject=node_words(shape),
        code="gpus",
        reason=say(
            "{gpus} GPUs are no whole number of nodes within {nodes} nodes.",
            gpus=question.gpus,
            nodes=question.max_nodes,
        ),
        value=float(question.gpus or 0),
        limit=shape.gpu_count * question.max_nodes,
        unit="GPUs",
        count=count,
        tried=False,
    )


def most_nodes(question: TrainingQuestion) -> int:
    """Nodes an option may have: as many as are asked for by number, else up to the limit."""
    return question.max_nodes if question.nodes is None else max(question.nodes, question.max_nodes)


def next_size(nodes: float) -> int:
    """The next power of two, as the search tries them: layers and heads divide best over those.

    >>> next_size(11.5), next_size(2.1), next_size(8.0)
    (16, 4, 8)
    """
    return 1 << max(1, math.ceil(math.log2(nodes)))


def _sizes(shape: Shape, question: TrainingQuestion, node: int) -> list[ClusterSize]:
    """Node counts to try: powers of two, or what holds the asked GPUs."""
    per_node = int(shape.gpu_count)
    most = most_nodes(question) if shape.network_bytes_s is not None else 1
    if question.nodes is not None:
        asked = ClusterSize(node=node, nodes=question.nodes, gpus=question.nodes * per_node)
        return [asked] if question.nodes <= most else []
    if question.gpus is not None:
        nodes = -(-question.gpus // per_node)
        whole = nodes == 1 or question.gpus % per_node == 0
        return [ClusterSize(node=node, nodes=nodes, gpus=question.gpus)] if whole and nodes <= most else []
    counts = [1 << power for power in range(most.bit_length())]
    if counts[-1] != most:
        counts.append(most)
    return [ClusterSize(node=node, nodes=nodes, gpus=nodes * per_node) for nodes in counts]


def _hardware(
    shape: Shape,
    question: TrainingQuestion,
    arch: ModelArch,
    framework: FrameworkProfile,
    profiles: TrainingProfiles,
    today: date,
) -> NodeHardware:
    accelerator = shape.accelerator
    per_node = int(shape.gpu_count)
    linked = accelerator.link_bytes_s > 0 and shape.link_domain_gpus > 1
    pcie = PCIE_BYTES_S.get(accelerator.pcie_gen or 0, min(PCIE_BYTES_S.values()))
    network = pcie if shape.network_bytes_s is None else shape.network_bytes_s / per_node
    peaks = accelerator.peak_flops
    return NodeHardware(
        gpus=per_node,
        peak_flops=peaks[PEAK_FORMAT[question.precision]],
        peak_flops_16bit=_sixteen_bit(accelerator),
        power_share=power_share(
            accelerator.generation, accelerator.tdp_w, _sixteen_bit(accelerator), profiles.reference_watts_per_tflop
        ),
        memory_bytes=float(accelerator.memory_bytes),
        memory_bandwidth_bytes_s=accelerator.memory_bandwidth_bytes_s,
        link_bytes_s=accelerator.link_bytes_s if linked else pcie,
        link_is_shared=not linked,
        link_domain_gpus=shape.link_domain_gpus if linked else per_node,
        network_bytes_s=network,
        host_bytes_s=pcie,
        context=Context(
            framework=framework.key,
            family=framework.family,
            generation=accelerator.generation,
            precision="bf16" if question.precision == "fp16" else question.precision,
            kind="moe" if any(group.kind == "moe" for group in arch.ffn) else "dense",
            measure="allocated",
            trains_adapters=question.method in FROZEN_METHODS,
            fusion="eager" if is_eager(question.method, framework) else "fused",
            messages="bucketed" if framework.buckets_messages else "single",
            async_tensor=question.async_tensor_parallel,
            accelerator=accelerator.key,
            architecture=profiles.architectures.get(accelerator.generation, accelerator.generation),
            year=today.year + (today.timetuple().tm_yday - 0.5) / 365,
        ),
    )


def _sixteen_bit(accelerator: Accelerator) -> float:
    peaks = accelerator.peak_flops
    return peaks.get("bf16") or peaks.get("fp16") or max(peaks.values())
