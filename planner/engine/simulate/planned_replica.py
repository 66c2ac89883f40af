"""One option of a plan as a replica to simulate: the plan's own step time, KV pool and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.engine.answers import InferenceOption, Layout
from planner.engine.candidates import Candidates
from planner.engine.hardware import CatalogSnapshot
from planner.engine.inference_evaluate import evaluate
from planner.engine.kv_cache import max_concurrency
from planner.engine.memory import ServingMemoryProfile
from planner.engine.model_arch import ModelArch
from planner.engine.offers import OfferTable, Shape, offer_table
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_regimes import RegimeCoefficients, question_draft
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.setup import BatchedReplica, ContinuousReplica
from planner.engine.speculation import cache_arch
from planner.engine.step_time import StepCoefficients, step_time
from planner.engine.workload import InferenceQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean prompt and answer of the traffic, tokens: what a hybrid model's KV pool is counted at."""

    input_tokens: float
    output_tokens: float


def planned_replica(
    option: InferenceOption,
    arch: ModelArch,
    question: InferenceQuestion,
    settings: SimulationQuestion,
    snapshot: CatalogSnapshot,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
    *,
    lengths: Lengths,
    hash_tokens: int | None,
    draft: ModelArch | None = None,
    own_prefixes: bool = False,
    layout: Layout | None = None,
) -> ContinuousReplica | BatchedReplica:
    """The replica that ``option`` is made of; ``draft`` is the question's draft model, where it names one.

    ``layout`` is that of its prefill pool, where one of that is asked for. An LLM engine, or another model's batches on
    the same GPUs where the scenario says so.
    """
    if settings.batching != "continuous":
        gpus = option.layout.gpus_per_replica
        return batched_replica(settings, gpus=float(gpus))
    return replica_on(
        _shape_of(option, offer_table(snapshot)),
        layout or option.layout,
        option.weight_format,
        arch,
        # Of several token budgets that were searched over, the option's own.
        replace(question, max_num_batched_tokens=option.max_num_batched_tokens, token_budgets=()),
        settings,
        profiles,
        memory_profile,
        lengths=lengths,
        hash_tokens=hash_tokens,
        draft=draft,
        own_prefixes=own_prefixes,
    )


def replica_on(
    shape: Shape,
    layout: Layout,
    weight_format: str,
    arch: ModelArch,
    question: InferenceQuestion,
    settings: SimulationQuestion,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
    *,
    lengths: Lengths,
    hash_tokens: int | None,
    draft: ModelArch | None = None,
    own_prefixes: bool = False,
) -> ContinuousReplica:
    """One replica in a layout on a kind of node, with the plan's own step time and memory.

    KV blocks are those of the whole pool (no planning margin), whatever the lengths. Where layers differ (sliding
    windows, recurrent state), a sequence's share of the pool isn't linear in its length: blocks are then counted so
    that requests of the traffic's mean length fit as often as they do in the engine. With ``own_prefixes`` each
    prompt finds the question's share of it cached, as its client's own.
    """
    candidates = _one_candidate(layout, weight_format)
    evaluated = evaluate(arch, [shape], candidates, question, profiles, memory_profile, draft)
    block = settings.block_tokens
    # Sequences take whole blocks, of which the pool holds so many: counted in whole ones they come out the same.
    blocks_each = math.ceil((lengths.input_tokens + lengths.output_tokens / 2) / block)
    fits = max_concurrency(
        cache_arch(arch, question_draft(question, arch, draft)),
        question.kv_format,
        candidates.tensor,
        candidates.pipeline,
        evaluated.memory.kv_pool,
        float(blocks_each * block),
        max_num_batched_tokens=question.max_num_batched_tokens,
        allocator=memory_profile.allocator,
    )
    coefficients = StepCoefficients(*(float(np.ravel(column)[0]) for column in evaluated.coefficients.step))
    ranks = coefficients.attention_ranks
    return ContinuousReplica(
        coefficients=coefficients,
        kv_blocks=int(float(fits[0]) * ranks * blocks_each + 1e-6),
        block_tokens=block,
        max_num_seqs=int(question.max_num_seqs * ranks),
        max_num_batched_tokens=int(question.max_num_batched_tokens * ranks),
        max_context_tokens=arch.max_context or None,
        lookahead=settings.lookahead and bool(np.ravel(evaluated.coefficients.lookahead)[0]),
        chunked_prefill=settings.chunked_prefill,
        request_s=float(np.ravel(evaluated.coefficients.request_s)[0]),
        prefix_cache=settings.prefix_caching,
        hash_tokens=_hash_unit(hash_tokens, block),
        found_tokens=int(question.prefix_cache_hit * lengths.input_tokens) // block * block if own_prefixes else 0,
        **_drafting(question, settings, evaluated.coefficients),
        gpus=float(evaluated.gpus_per_replica[0]),
        max_waiting=settings.max_waiting,
        queue_timeout_s=settings.queue_timeout_s,
    )


def _drafting(
    question: InferenceQuestion, settings: SimulationQuestion, coefficients: ServingCoefficients
) -> dict[str, Any]:
    """Drafts as the scenario has them, or else as the plan's question does, at the cost of its own draft step."""
    speculation = coefficients.speculation if isinstance(coefficients, RegimeCoefficients) else None
    if settings.draft_tokens or speculation is None:
        return {
            "draft_tokens": settings.draft_tokens,
            "acceptance": settings.acceptance,
            "draft_share": settings.draft_share,
        }
    share = 0.0
    if speculation.draft is not None:
        alone = (1.0, float(question.input_tokens), 0.0, 0.0)
        share = float(np.ravel(step_time(speculation.draft, *alone) / step_time(coefficients.step, *alone))[0])
    return {"draft_tokens": question.draft_tokens, "acceptance": question.draft_acceptance, "draft_share": share}


def batched_replica(settings: SimulationQuestion, *, gpus: float) -> BatchedReplica:
    """A server of whole requests on ``gpus`` GPUs, timed as the scenario says.

    >>> batched_replica(SimulationQuestion(batching="dynamic", preferred_batches=("8",)), gpus=1.0).preferred_batches
    (8,)
    """
    preferred = tuple(int(size) for size in settings.preferred_batches if size.isdecimal())
    return BatchedReplica(
        batch_s=(settings.batch_ms or 0.0) / 1e3,
        item_s=(settings.item_ms or 0.0) / 1e3,
        token_s=(settings.token_us or 0.0) / 1e6,
        max_batch=settings.max_batch,
        preferred_batches=() if settings.batching == "static" else preferred,
        max_queue_delay_s=settings.queue_delay_ms / 1e3,
        instances=settings.instances,
        padded=settings.padded,
        gpus=gpus,
        max_waiting=settings.max_waiting,
        queue_timeout_s=settings.queue_timeout_s,
    )


def _hash_unit(hash_tokens: int | None, block_tokens: int) -> int | None:
    """Hashes of the trace cover whole blocks, or blocks are hashed one by one."""
    return hash_tokens if hash_tokens is not None and hash_tokens % block_tokens == 0 else None


def _shape_of(option: InferenceOption, table: OfferTable) -> Shape:
    offer_id = option.id.rsplit(":", 2)[0]
    row = next(row for row, offer in enumerate(table.offers) if offer.id == offer_id)
    return table.shapes[int(table.shape[row])]


def _one_candidate(layout: Layout, weight_format: str) -> Candidates:
    def column(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([value], dtype=np.int64)

    return Candidates(
        shape=column(0),
        tensor=column(layout.tensor),
        pipeline=column(layout.pipeline),
        expert=column(layout.expert),
        weight_format=column(0),
        weight_formats=(weight_format,),
    )
