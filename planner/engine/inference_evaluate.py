"""One model on every candidate: memory, admission and step coefficients, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.candidates import Candidates
from planner.engine.collectives import LINK_CLASSES, Topology, pcie_bytes_s
from planner.engine.columns import taken
from planner.engine.engine_versions import is_development_build, release_key
from planner.engine.kv_cache import kv_bytes_per_sequence, max_concurrency
from planner.engine.memory import ServingMemory, ServingMemoryProfile, serving_memory
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.serving import AdmissionLimits
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_candidates import MODES, ServingCandidates, engine_era
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_regimes import question_draft, regime_coefficients, resident_bytes
from planner.engine.sizing import cached_tokens
from planner.engine.speculation import cache_arch
from planner.engine.units import GB
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PREEMPTION_MARGIN: Final = 0.95
"""Share of the KV pool planned for: an engine that runs to its last block preempts (handbook 6.4)."""
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
            memory=taken(self.memory, rows),
            limits=taken(self.limits, rows),
            coefficients=taken(self.coefficients, rows),
            gpus_per_replica=self.gpus_per_replica[rows],
        )


def evaluate(
    arch: ModelArch,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
    given_draft: ModelArch | None = None,
) -> Evaluated:
    """Memory, admission limits and step coefficients of every candidate; ``given_draft`` is the draft model named."""
    serving = serving_candidates(shapes, candidates, question, profiles)
    draft = question_draft(question, arch, given_draft)
    memory = _memory(arch, draft, shapes, candidates, question, memory_profile)
    budget = token_budget(candidates, question)
    fits = _requests_held(cache_arch(arch, draft), candidates, question, memory, memory_profile)
    ranks = serving.attention_ranks
    return Evaluated(
        candidates=candidates,
        memory=memory,
        limits=AdmissionLimits(
            kv_sequences=np.floor(fits) * ranks,
            # A job never has more in flight than it is given.
            max_num_seqs=np.minimum(question.max_num_seqs * ranks, question.offline_requests or np.inf),
            max_num_batched_tokens=budget * ranks,
        ),
        coefficients=regime_coefficients(arch, draft, serving, question, profiles),
        gpus_per_replica=serving.gpus_per_replica.astype(np.int64),
    )


def token_budget(candidates: Candidates, question: InferenceQuestion) -> Any:
    """Tokens an iteration of one rank, a number or a column."""
    return question.max_num_batched_tokens if candidates.token_budget is None else candidates.token_budget


def _requests_held(
    arch: ModelArch,
    candidates: Candidates,
    question: InferenceQuestion,
    memory: ServingMemory,
    profile: ServingMemoryProfile,
) -> FloatArray:
    """Requests of the asked lengths, half answered, that the KV pool holds; a shared prefix is held once."""
    tokens = min(question.input_tokens + question.output_tokens / 2, 1e12)
    pool = memory.kv_pool * PREEMPTION_MARGIN
    layout = (arch, question.kv_format, candidates.tensor, candidates.pipeline)
    budget = token_budget(candidates, question)
    if question.prefix_kind == "shared":
        shared = cached_tokens(question, profile.allocator.block_tokens)
        if shared:
            pool = pool - kv_bytes_per_sequence(*layout, shared, allocator=profile.allocator)
            tokens -= shared
    held = max_concurrency(*layout, pool, tokens, max_num_batched_tokens=budget, allocator=profile.allocator)
    if question.max_model_len is None:
        return held
    # Started for longer requests than its pool holds, an engine refuses to run.
    longest = max_concurrency(
        *layout,
        memory.kv_pool,
        question.max_model_len,
        max_num_batched_tokens=budget,
        allocator=profile.allocator,
    )
    return np.where(longest < 1.0, 0.0, held)


def serving_candidates(
    shapes: Sequence[Shape], candidates: Candidates, question: InferenceQuestion, profiles: ServingProfiles
) -> ServingCandidates:
    """The candidates in the serving model's own columns."""
    engine = profiles.calibrated_as.get(question.engine, question.engine)
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
        engines=((engine, era_of(profiles, engine, question.engine_version)),),
        engine=np.zeros(count, dtype=np.int64),
        development=is_development_build(question.engine_version),
        tp=candidates.tensor.astype(np.float64),
        pp=candidates.pipeline.astype(np.float64),
        ep=candidates.expert.astype(np.float64),
        topology=topology_of_shapes(shapes, candidates.shape),
        mode=_mode(question, count),
        max_num_seqs=float(question.max_num_seqs),
    )


def era_of(profiles: ServingProfiles, engine: str, version: str) -> str:
    """The quarter of the latest release known up to ``version``; up to the newest one where none is stated.

    A build between releases has no number of its own: it is as new as what was fitted last.
    """
    key = release_key(version)
    passed = [date for number, date in profiles.releases.get(engine, ()) if not version or number <= key]
    return engine_era(max(passed)) if passed else profiles.newest_era(engine)


def _mode(question: InferenceQuestion, count: int) -> IntArray | None:
    """How the engine runs, where it isn't answering clients with continuous batches."""
    name = "offline" if question.offline_requests is not None else "static" if question.batching == "static" else ""
    return np.full(count, MODES.index(name), dtype=np.int64) if name else None


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
    return pcie_bytes_s(shape.accelerator.pcie_gen)


def network_bytes_s_per_gpu(shape: Shape) -> float:
    """One accelerator's share of its node's network, one direction."""
    return (shape.network_bytes_s or UNSTATED_NETWORK_BYTES_S) / max(shape.gpu_count, 1.0)


def _domain(shape: Shape) -> int:
    return max(int(shape.gpu_count), shape.link_domain_gpus)


def _memory(
    arch: ModelArch,
    draft: ModelArch | None,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    profile: ServingMemoryProfile,
) -> ServingMemory:
    """Memory by candidate: one call for each weight format, put together in candidate order."""
    memory_bytes = np.array([shape.accelerator.memory_bytes for shape in shapes], dtype=np.float64)
    columns: dict[str, Any] = {}
    budget = np.broadcast_to(token_budget(candidates, question), (len(candidates),))
    for code in np.unique(candidates.weight_format):
        rows = np.flatnonzero(candidates.weight_format == code)
        weight_format = candidates.weight_formats[code]
        parallel = (candidates.tensor, candidates.pipeline, candidates.expert)
        layout = [column[rows].astype(np.float64) for column in parallel]
        part = serving_memory(
            arch,
            profile=profile,
            weight_format=weight_format,
            memory_bytes=memory_bytes[candidates.shape[rows]],
            utilization=question.memory_utilization,
            tp=layout[0],
            pp=layout[1],
            ep=layout[2],
            max_num_batched_tokens=budget[rows],
            max_num_seqs=question.max_num_seqs,
            resident_bytes=resident_bytes(arch, draft, question, weight_format, *layout),
        )
        for f in fields(part):
            value = getattr(part, f.name)
            column = columns.setdefault(f.name, np.zeros(len(candidates), dtype=value.dtype))
            column[rows] = value
    return ServingMemory(**columns)
