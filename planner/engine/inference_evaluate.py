"""One model on every candidate: memory, admission and step coefficients, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.candidates import Candidates
from planner.engine.collectives import LINK_CLASSES, Topology
from planner.engine.kv_cache import max_concurrency
from planner.engine.memory import ServingMemory, ServingMemoryProfile, serving_memory
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.serving import AdmissionLimits
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_candidates import ServingCandidates, ServingCoefficients, build_coefficients
from planner.engine.sizing import take, take_limits
from planner.engine.units import GB
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PREEMPTION_MARGIN: Final = 0.95
"""Share of the KV pool planned for: an engine that runs to its last block preempts (handbook 6.4)."""
PCIE_BYTES_S_BY_GEN: Final = {3: 16.0 * GB, 4: 32.0 * GB, 5: 64.0 * GB, 6: 128.0 * GB}
"""A x16 slot, one direction, by generation (PCI-SIG)."""
UNSTATED_NETWORK_BYTES_S: Final = 10.0 * GB / 8
"""Where a provider states no network rate: 10 Gbit/s, the slowest that multi-GPU nodes are sold with."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """Candidates with what the engine knows of each; every column has the same length."""

    candidates: Candidates
    memory: ServingMemory
    limits: AdmissionLimits
    """Of one replica, all its attention ranks together."""
    coefficients: ServingCoefficients
    gpus_per_replica: IntArray

    def take(self, rows: IntArray) -> Evaluated:
        """Some candidates only, in the order of ``rows``."""
        return Evaluated(
            candidates=self.candidates.take(rows),
            memory=ServingMemory(**{f.name: getattr(self.memory, f.name)[rows] for f in fields(self.memory)}),
            limits=take_limits(self.limits, rows),
            coefficients=take(self.coefficients, rows),
            gpus_per_replica=self.gpus_per_replica[rows],
        )


def evaluate(
    arch: ModelArch,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
) -> Evaluated:
    """Memory, admission limits and step coefficients of every candidate."""
    serving = serving_candidates(shapes, candidates, question, profiles)
    memory = _memory(arch, shapes, candidates, question, memory_profile)
    tokens = min(question.input_tokens + question.output_tokens / 2, 1e12)
    fits = max_concurrency(
        arch,
        question.kv_format,
        candidates.tensor,
        candidates.pipeline,
        memory.kv_pool * PREEMPTION_MARGIN,
        tokens,
        max_num_batched_tokens=question.max_num_batched_tokens,
        allocator=memory_profile.allocator,
    )
    ranks = serving.attention_ranks
    return Evaluated(
        candidates=candidates,
        memory=memory,
        limits=AdmissionLimits(
            kv_sequences=np.floor(fits) * ranks,
            max_num_seqs=question.max_num_seqs * ranks,
            max_num_batched_tokens=question.max_num_batched_tokens * ranks,
        ),
        coefficients=build_coefficients(arch, serving, profiles),
        gpus_per_replica=serving.gpus_per_replica.astype(np.int64),
    )


def serving_candidates(
    shapes: Sequence[Shape], candidates: Candidates, question: InferenceQuestion, profiles: ServingProfiles
) -> ServingCandidates:
    """The candidates in the serving model's own columns."""
    accelerators = tuple({shape.accelerator.key: shape.accelerator for shape in shapes}.values())
    position = {accelerator.key: index for index, accelerator in enumerate(accelerators)}
    by_shape = np.array([position[shape.accelerator.key] for shape in shapes], dtype=np.int64)
    count = len(candidates)
    return ServingCandidates(
        accelerators=accelerators,
        accelerator=by_shape[candidates.shape],
        weight_formats=candidates.weight_formats,
        weight_format=candidates.weight_format,
        kv_formats=(question.kv_format,),
        kv_format=np.zeros(count, dtype=np.int64),
        engines=((question.engine, profiles.newest_era(question.engine)),),
        engine=np.zeros(count, dtype=np.int64),
        tp=candidates.tensor.astype(np.float64),
        pp=candidates.pipeline.astype(np.float64),
        ep=candidates.expert.astype(np.float64),
        topology=topology_of_shapes(shapes, candidates.shape),
    )


def topology_of_shapes(shapes: Sequence[Shape], index: IntArray) -> Topology:
    """Links and networks of shapes, expanded by ``index``."""
    return Topology(
        link_class=np.array([LINK_CLASSES.index(shape.intra_node_link) for shape in shapes], dtype=np.int64)[index],
        link_bytes_s=np.array([link_bytes_s(shape) for shape in shapes], dtype=np.float64)[index],
        domain_gpus=np.array([_domain(shape) for shape in shapes], dtype=np.int64)[index],
        network_bytes_s=np.array([network_bytes_s_per_gpu(shape) for shape in shapes], dtype=np.float64)[index],
    )


def link_bytes_s(shape: Shape) -> float:
    """Scale-up rate of one accelerator, one direction; its PCIe slot where the node has no such link."""
    if shape.intra_node_link not in ("pcie", "none") and shape.accelerator.link_bytes_s:
        return shape.accelerator.link_bytes_s
    return PCIE_BYTES_S_BY_GEN.get(shape.accelerator.pcie_gen or 4, PCIE_BYTES_S_BY_GEN[4])


def network_bytes_s_per_gpu(shape: Shape) -> float:
    """One accelerator's share of its node's network, one direction."""
    return (shape.network_bytes_s or UNSTATED_NETWORK_BYTES_S) / max(shape.gpu_count, 1.0)


def _domain(shape: Shape) -> int:
    return max(int(shape.gpu_count), shape.link_domain_gpus)


def _memory(
    arch: ModelArch,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    profile: ServingMemoryProfile,
) -> ServingMemory:
    """Memory by candidate: one call for each weight format, put together in candidate order."""
    memory_bytes = np.array([shape.accelerator.memory_bytes for shape in shapes], dtype=np.float64)
    columns: dict[str, Any] = {}
    for code in np.unique(candidates.weight_format):
        rows = np.flatnonzero(candidates.weight_format == code)
        part = serving_memory(
            arch,
            profile=profile,
            weight_format=candidates.weight_formats[code],
            memory_bytes=memory_bytes[candidates.shape[rows]],
            utilization=question.memory_utilization,
            tp=candidates.tensor[rows],
            pp=candidates.pipeline[rows],
            ep=candidates.expert[rows],
            max_num_batched_tokens=question.max_num_batched_tokens,
            max_num_seqs=question.max_num_seqs,
        )
        for f in fields(part):
            value = getattr(part, f.name)
            column = columns.setdefault(f.name, np.zeros(len(candidates), dtype=value.dtype))
            column[rows] = value
    return ServingMemory(**columns)
