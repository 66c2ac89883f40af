"""The inference search: every candidate on every offer that passes, ranked by what it costs.

Hardware is evaluated once a shape, as columns; prices are joined after. A candidate is kept when no
other on the same kind of node is both cheaper and faster; what is rejected keeps the number that broke.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Confidence, InferenceOption, InferencePlan, Rejection
from planner.engine.candidates import Candidates, check_pinned, enumerate_candidates
from planner.engine.confidence import ResidualBands, confidence_beyond, confidence_of
from planner.engine.cost import recommended
from planner.engine.engine_log import EngineLog
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.inference_advice import advise
from planner.engine.inference_evaluate import Evaluated, evaluate, serving_candidates
from planner.engine.inference_options import ConfidenceOf, build_options
from planner.engine.inference_ranking import Sized, frontier, nodes_needed, rank, request_latency_s
from planner.engine.inference_rejections import (
    reject_budget,
    reject_nodes,
    reject_shapes,
    reject_slow,
    reject_unfit,
)
from planner.engine.memory import ServingMemoryProfile
from planner.engine.model_arch import ModelArch
from planner.engine.model_summary import model_reading, summarize, warnings
from planner.engine.offers import Shape, offer_table, select_offers
from planner.engine.regime_notes import beyond_measured, check_regimes, regime_assumptions
from planner.engine.rejections import in_order
from planner.engine.sentences import Code, FieldName, Noun, say
from planner.engine.serving import ServingEstimate, replica_cycle
from planner.engine.serving_calibration import Keys, ServingProfiles
from planner.engine.serving_candidates import candidate_keys
from planner.engine.serving_regimes import question_draft
from planner.engine.sizing import Demand, Sizing, demand_of, load_of, size_replicas
from planner.engine.speculation import cache_arch
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ENGINE_VERSION: Final = "1"
"""Raised whenever the same question on the same catalog would be answered differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What is served, and what drafts for it where the question names a model."""

    arch: ModelArch
    draft: ModelArch | None = None


def plan_inference(
    question: InferenceQuestion,
    arch: ModelArch,
    snapshot: CatalogSnapshot,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
    today: date,
    draft: ModelArch | None = None,
) -> InferencePlan:
    """Size and price every way to serve ``arch``; raises ``InvalidQuestion`` for what can't be asked.

    ``draft`` is the question's draft model, where it names one.
    """
    _check_context(question, arch)
    check_pinned(arch, question)
    check_regimes(arch, question)
    demand = demand_of(question, memory_profile.allocator.block_tokens)
    table = offer_table(snapshot)
    selection = select_offers(table, question, today)
    offer_rows = np.flatnonzero(selection.mask)
    used = np.unique(table.shape[offer_rows])
    shapes = [table.shapes[index] for index in used.tolist()]
    offers = np.bincount(np.searchsorted(used, table.shape[offer_rows]), minlength=len(shapes))
    settings = profiles.engines.get(profiles.calibrated_as.get(question.engine, question.engine))
    vendors = settings.vendors if settings else ()
    candidates = enumerate_candidates(arch, shapes, question, vendors)
    rejections = [*selection.rejections, *reject_shapes(arch, shapes, candidates, question, offers, vendors)]
    options: tuple[InferenceOption, ...] = ()
    found = 0
    if len(candidates):
        models = Models(arch=arch, draft=draft)
        sized, refused = _size(models, shapes, candidates, question, demand, profiles, memory_profile, offers)
        ranking = rank(sized, used, table, offer_rows, question, today)
        rejections += [
            *refused,
            *ranking.rejections,
            *reject_budget(ranking.usd_per_hour, ranking.within_budget, question),
        ]
        keys = candidate_keys(arch, serving_candidates(shapes, sized.evaluated.candidates, question, profiles))
        beyond = beyond_measured(question, arch)
        log = EngineLog(arch=cache_arch(arch, question_draft(question, arch, draft)), profile=memory_profile)
        options = build_options(
            question, demand, sized, ranking, table, _confidence(profiles, keys, beyond), log, today
        )
        found = int(np.count_nonzero(ranking.within_budget))
    return InferencePlan(
        question=asdict(question),
        catalog_version=snapshot.version,
        engine_version=ENGINE_VERSION,
        priced_on=today,
        model=summarize(arch),
        peak_requests_s=demand.peak_requests_s,
        mean_requests_s=demand.mean_requests_s,
        options=options,
        recommended=recommended(options),
        options_found=found,
        options_tried=int(offers[candidates.shape].sum()),
        rejections=in_order(rejections),
        advice=warnings(arch) if options else (*warnings(arch), *advise(question, rejections)),
        assumptions=tuple(_assumptions(question, arch, memory_profile, snapshot.prices)),
    )


def _size(
    models: Models,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    demand: Demand,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
    offers: IntArray,
) -> tuple[Sized, list[Rejection]]:
    """Candidates that hold the peak within every limit, thinned to each shape's front; and the refused."""
    everything = evaluate(models.arch, shapes, candidates, question, profiles, memory_profile, models.draft)
    refused = list(reject_unfit(everything, shapes, question, offers))
    fits = everything.memory.fits & (np.asarray(everything.limits.kv_sequences) >= 1)
    fitting = everything.take(np.flatnonzero(fits))
    sizing = size_replicas(fitting.coefficients, fitting.limits, question, demand)
    refused += reject_slow(fitting.candidates, sizing, shapes, question, offers)
    replicas = sizing.replicas + question.spare_replicas
    gpu_count = np.array([shape.gpu_count for shape in shapes], dtype=np.float64)[fitting.candidates.shape]
    nodes = nodes_needed(gpu_count, fitting.gpus_per_replica, replicas)
    fast_enough = sizing.fault == 0
    refused += reject_nodes(fitting.candidates, np.where(fast_enough, nodes, 0), shapes, question, offers)
    good = np.flatnonzero(fast_enough & (nodes <= question.max_nodes))
    latency = request_latency_s(sizing, question)
    front = frontier(fitting.candidates.shape[good], nodes[good].astype(np.float64), latency[good])
    return _sized(fitting, sizing, replicas, nodes, latency, good[front], question, demand), refused


def _sized(
    evaluated: Evaluated,
    sizing: Sizing,
    replicas: IntArray,
    nodes: IntArray,
    latency_s: FloatArray,
    rows: IntArray,
    question: InferenceQuestion,
    demand: Demand,
) -> Sized:
    kept = evaluated.take(rows)
    chosen = take_sizing(sizing, rows)
    load = load_of(question, demand, chosen.replicas)
    limits = kept.limits
    places = np.asarray(limits.sequences, dtype=np.float64)
    full = replica_cycle(kept.coefficients, load, limits, places)
    prefill_share = np.asarray(places * full.prompt_s / full.cycle_s)
    by_memory = np.asarray(limits.kv_sequences) < np.asarray(limits.max_num_seqs)
    return Sized(
        evaluated=kept,
        sizing=chosen,
        replicas=replicas[rows],
        nodes=nodes[rows],
        latency_s=latency_s[rows],
        cycle=replica_cycle(kept.coefficients, load, limits, np.clip(chosen.estimate.running, 1.0, places)),
        full_limit=tuple(
            "prefill_compute" if share > 0.5 else "kv_memory" if memory else "decode_bandwidth"
            for share, memory in zip(prefill_share.tolist(), by_memory.tolist(), strict=True)
        ),
    )


def take_sizing(sizing: Sizing, rows: IntArray) -> Sizing:
    """Some candidates' sizing only."""
    columns = {f.name: getattr(sizing, f.name)[rows] for f in fields(sizing) if f.name != "estimate"}
    return replace(sizing, **columns, estimate=_take_estimate(sizing.estimate, rows))


def _take_estimate(estimate: ServingEstimate, rows: IntArray) -> ServingEstimate:
    columns: dict[str, Any] = {}
    for f in fields(estimate):
        value = getattr(estimate, f.name)
        columns[f.name] = {k: v[rows] for k, v in value.items()} if isinstance(value, dict) else value[rows]
    return replace(estimate, **columns)


def _confidence(profiles: ServingProfiles, keys: Keys, beyond: Sequence[str]) -> ConfidenceOf:
    """The band of a quantity for a row; quantities share rows of like attributes, so each is looked up once.

    ``beyond`` says what of the question no measured case has: the band is then the widest that applies.
    """

    @cache
    def band(quantity: str, attributes: tuple[tuple[str, str], ...]) -> Confidence:
        bands = profiles.bands.get(quantity, ResidualBands(quantity=quantity, bands={}))
        return confidence_beyond(bands, dict(attributes), beyond) if beyond else confidence_of(bands, dict(attributes))

    return lambda quantity, row: band(quantity, tuple(keys.attributes(row).items()))


def _check_context(question: InferenceQuestion, arch: ModelArch) -> None:
    tokens = question.input_tokens + question.output_tokens
    if arch.max_context and tokens > arch.max_context:
        raise InvalidQuestion(
            [
                FieldError(
                    field="input_tokens",
                    value=question.input_tokens,
                    message=say(
                        "Input and output together are {tokens:,} tokens, beyond the model's context.", tokens=tokens
                    ),
                    allowed=say(
                        "{input} + {output} up to {most:,}",
                        input=FieldName("input_tokens"),
                        output=FieldName("output_tokens"),
                        most=arch.max_context,
                    ),
                    code="context_too_long",
                )
            ]
        )


def _assumptions(question: InferenceQuestion, arch: ModelArch, profile: ServingMemoryProfile, prices: str) -> list[str]:
    lines: list[str] = [
        say(
            "Engine profile: {engine}, memory as of version {version}.",
            engine=Code(question.engine),
            version=profile.version,
        ),
        say(
            "Lengths are means; up to {sequences} sequences and {tokens:,} tokens an iteration, chunked prefill.",
            sequences=question.max_num_seqs,
            tokens=question.max_num_batched_tokens,
        ),
        say("A month is 730 hours, rented throughout at the size the peak needs."),
        say("Prices are {prices}, before tax, support, storage and egress.", prices=Noun(prices)),
    ]
    lines += [*model_reading(question, arch), *regime_assumptions(question, arch)]
    if question.kv_format == "auto":
        lines.append(say("KV cache in 16 bit."))
    if "auto" in question.weight_formats:
        lines.append(say("Weights in the published format; FP8 also where a 16-bit model meets FP8 matrix units."))
    return lines
