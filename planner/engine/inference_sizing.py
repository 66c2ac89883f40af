"""Candidates sized for the peak: replicas that do both, split pools, or both kinds beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Rejection
from planner.engine.candidates import Candidates
from planner.engine.columns import taken
from planner.engine.inference_evaluate import Evaluated, evaluate, serving_candidates
from planner.engine.inference_ranking import Sized, frontier, nodes_needed, paid_for, request_latency_s, split_nodes
from planner.engine.inference_rejections import reject_nodes, reject_slow, reject_unfit
from planner.engine.kv_cache import kv_bytes_per_sequence
from planner.engine.memory import ServingMemoryProfile
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.serving import Cycle, replica_cycle
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_regimes import question_draft
from planner.engine.sizing import Demand, Sizing, load_of, size_replicas
from planner.engine.speculation import cache_arch
from planner.engine.split_pools import PrefillPools, TransferRates
from planner.engine.split_sizing import size_split
from planner.engine.units import GB
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What is served, and what drafts for it where the question names a model."""

    arch: ModelArch
    draft: ModelArch | None = None


class Sizes(NamedTuple):
    """What came of all candidates, counted by the offers of their nodes."""

    kept: Sized
    """Each shape's front."""
    refused: list[Rejection]
    beaten: int
    """Within every limit, but neither cheaper nor faster than another on the same nodes."""
    tried: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """One kind of deployment, sized, on its nodes; equal lengths."""

    rows: IntArray
    """Of the evaluated candidates: the side that decodes."""
    sizing: Sizing
    replicas: IntArray
    """Spares included."""
    prefill: PrefillPools
    nodes: IntArray
    cycle: Cycle | None
    """Of split pools; others have theirs made for those that are kept."""


def size_candidates(
    models: Models,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    demand: Demand,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
    offers: IntArray,
) -> Sizes:
    """Candidates that hold the peak within every limit, thinned to each shape's front; and what came of the others."""
    everything = evaluate(models.arch, shapes, candidates, question, profiles, memory_profile, models.draft)
    refused = list(reject_unfit(everything, shapes, question, offers))
    fits = everything.memory.fits & (np.asarray(everything.limits.kv_sequences) >= 1)
    fitting = everything.take(np.flatnonzero(fits))
    gpu_count = np.array([shape.gpu_count for shape in shapes], dtype=np.float64)[fitting.candidates.shape]
    placed = []
    if question.pools != "split":
        placed.append(_together(fitting, gpu_count, question, demand))
    if question.pools != "together":
        rates = _rates(models, shapes, fitting, question, profiles, memory_profile)
        placed.append(_split(fitting, gpu_count, question, demand, rates))
    good = []
    tried = int(offers[candidates.shape[~fits]].sum())
    for part in placed:
        side = fitting.candidates.take(part.rows)
        refused += reject_slow(side, part.sizing, shapes, question, offers)
        fast = part.sizing.fault == 0
        refused += reject_nodes(side, np.where(fast, part.nodes, 0), shapes, question, offers)
        good.append(np.flatnonzero(fast & (part.nodes <= question.max_nodes)))
        tried += int(offers[side.shape].sum())
    front = _front(fitting, placed, good, question)
    kept = [_sized(fitting, part, rows, question, demand) for part, rows in zip(placed, front, strict=True)]
    return Sizes(
        kept=kept[0] if len(kept) == 1 else _beside(fitting, placed, front, kept),
        refused=refused,
        beaten=_count(fitting, placed, good, offers) - _count(fitting, placed, front, offers),
        tried=tried,
    )


def _count(fitting: Evaluated, placed: Sequence[Placed], rows: Sequence[IntArray], offers: IntArray) -> int:
    """On how many offers the rows of each kind of deployment are options, all together."""
    shape = fitting.candidates.shape
    return int(sum(offers[shape[part.rows[own]]].sum() for part, own in zip(placed, rows, strict=True)))


def _front(
    fitting: Evaluated, placed: Sequence[Placed], good: Sequence[IntArray], question: InferenceQuestion
) -> list[IntArray]:
    """Of the good rows of each kind of deployment, those that none of any kind beats on their shape."""
    shape = np.concatenate([fitting.candidates.shape[part.rows[rows]] for part, rows in zip(placed, good, strict=True)])
    nodes = np.concatenate([part.nodes[rows] for part, rows in zip(placed, good, strict=True)])
    latency = np.concatenate(
        [request_latency_s(part.sizing, question)[rows] for part, rows in zip(placed, good, strict=True)]
    )
    unbeaten = frontier(shape, paid_for(nodes.astype(np.float64), latency, question), latency)
    ends = np.cumsum([len(rows) for rows in good])[:-1]
    return [rows[keep] for rows, keep in zip(good, np.split(unbeaten, ends), strict=True)]


def _together(fitting: Evaluated, gpu_count: FloatArray, question: InferenceQuestion, demand: Demand) -> Placed:
    sizing = size_replicas(fitting.coefficients, fitting.limits, question, demand)
    replicas = sizing.replicas + question.spare_replicas
    return Placed(
        rows=np.arange(len(replicas)),
        sizing=sizing,
        replicas=replicas,
        prefill=PrefillPools.none(len(replicas)),
        nodes=nodes_needed(gpu_count, fitting.gpus_per_replica, replicas),
        cycle=None,
    )


def _split(
    fitting: Evaluated, gpu_count: FloatArray, question: InferenceQuestion, demand: Demand, rates: TransferRates
) -> Placed:
    found = size_split(fitting, question, demand, rates)
    replicas = found.sizing.replicas + question.spare_replicas
    return Placed(
        rows=found.rows,
        sizing=found.sizing,
        replicas=replicas,
        prefill=found.prefill,
        nodes=split_nodes(
            gpu_count[found.rows],
            fitting.gpus_per_replica[found.rows],
            replicas,
            found.prefill.gpus_per_replica,
            found.prefill.replicas,
        ),
        cycle=found.cycle,
    )


def _rates(
    models: Models,
    shapes: Sequence[Shape],
    fitting: Evaluated,
    question: InferenceQuestion,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
) -> TransferRates:
    """KV of one prompt on one GPU, and what moves it."""
    candidates = fitting.candidates
    topology = serving_candidates(shapes, candidates, question, profiles).topology
    arch = cache_arch(models.arch, question_draft(question, models.arch, models.draft))
    asked = question.kv_transfer_gb_s
    network = profiles.collectives.network_share * topology.network_bytes_s
    return TransferRates(
        prompt_bytes=kv_bytes_per_sequence(
            arch,
            question.kv_format,
            candidates.tensor,
            candidates.pipeline,
            question.input_tokens,
            allocator=memory_profile.allocator,
        ),
        network_bytes_s=network if asked is None else np.full_like(network, asked * GB),
        link_bytes_s=topology.link_bytes_s if asked is None else np.full_like(network, asked * GB),
        domain_gpus=topology.domain_gpus.astype(np.float64),
    )


def _sized(fitting: Evaluated, part: Placed, rows: IntArray, question: InferenceQuestion, demand: Demand) -> Sized:
    kept = fitting.take(part.rows[rows])
    chosen = taken(part.sizing, rows)
    prefill = part.prefill.take(rows)
    limits = kept.limits
    by_memory = np.asarray(limits.kv_sequences) < np.asarray(limits.max_num_seqs)
    if part.cycle is None:
        load = load_of(question, demand, chosen.replicas)
        places = np.asarray(limits.sequences, dtype=np.float64)
        full = replica_cycle(kept.coefficients, load, limits, places)
        prefill_share = np.asarray(places * full.prompt_s / full.cycle_s)
        running = np.clip(chosen.estimate.running, 1.0, places)
        cycle = replica_cycle(kept.coefficients, load, limits, running)
    else:
        gpus = prefill.replicas * prefill.gpus_per_replica
        prefill_share = gpus / (gpus + chosen.replicas * kept.gpus_per_replica)
        cycle = taken(part.cycle, rows)
    return Sized(
        evaluated=kept,
        sizing=chosen,
        replicas=part.replicas[rows],
        nodes=part.nodes[rows],
        latency_s=request_latency_s(chosen, question),
        cycle=cycle,
        full_limit=tuple(
            "prefill_compute" if share > 0.5 else "kv_memory" if memory else "decode_bandwidth"
            for share, memory in zip(prefill_share.tolist(), by_memory.tolist(), strict=True)
        ),
        prefill=prefill,
    )


def _beside(fitting: Evaluated, placed: Sequence[Placed], rows: Sequence[IntArray], parts: Sequence[Sized]) -> Sized:
    """Deployments of several kinds in one table."""
    counts = [len(part.nodes) for part in parts]
    return Sized(
        evaluated=fitting.take(np.concatenate([part.rows[kept] for part, kept in zip(placed, rows, strict=True)])),
        full_limit=tuple(limit for part in parts for limit in part.full_limit),
        **{
            name: _joined([getattr(part, name) for part in parts], counts)
            for name in ("sizing", "replicas", "nodes", "latency_s", "cycle", "prefill")
        },
    )


def _joined(parts: Sequence[Any], counts: Sequence[int]) -> Any:
    """Columns one after the other, however deep; what one number stands for is written out."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {name: _joined([part[name] for part in parts], counts) for name in first}
    if is_dataclass(first):
        columns = {f.name: _joined([getattr(part, f.name) for part in parts], counts) for f in fields(first)}
        build: Any = type(first)
        return build(**columns)
    return np.concatenate([np.broadcast_to(np.asarray(part), (n,)) for part, n in zip(parts, counts, strict=True)])
