"""The inference search: every candidate on every offer that passes, ranked by what it costs.

Hardware is evaluated once a shape, as columns; prices are joined after. A candidate is kept when no
other on the same kind of node is both cheaper and faster; what is rejected keeps the number that broke.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.advice import Advice
from planner.engine.alternatives import serving_alternatives
from planner.engine.answers import Confidence, InferenceOption, InferencePlan
from planner.engine.candidates import check_pinned, enumerate_candidates
from planner.engine.checked_advice import Tried, checked
from planner.engine.confidence import ResidualBands, confidence_beyond, confidence_of
from planner.engine.cost import recommended
from planner.engine.engine_log import EngineLog
from planner.engine.engine_release import check_version, release_assumption, release_warnings
from planner.engine.engine_support import ANYWHERE
from planner.engine.errors import Faults, FieldError, InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.inference_advice import advise
from planner.engine.inference_evaluate import serving_candidates
from planner.engine.inference_options import ConfidenceOf, build_options
from planner.engine.inference_ranking import rank
from planner.engine.inference_rejections import reject_budget, reject_shapes
from planner.engine.inference_sizing import Models, size_candidates
from planner.engine.memory import ServingMemoryProfile
from planner.engine.model_arch import ModelArch
from planner.engine.model_summary import model_reading, summarize, towers, warnings
from planner.engine.offers import offer_table, select_offers
from planner.engine.regime_notes import (
    beyond_measured,
    captured_prompts,
    check_cache,
    check_regimes,
    regime_assumptions,
)
from planner.engine.rejections import in_order
from planner.engine.relaxed_limits import relaxed
from planner.engine.sentences import Code, FieldName, noun, say
from planner.engine.serving_calibration import Keys, ServingProfiles
from planner.engine.serving_candidates import candidate_keys
from planner.engine.serving_regimes import question_draft
from planner.engine.sizing import demand_of
from planner.engine.speculation import cache_arch
from planner.engine.unused_fields import unused
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ENGINE_VERSION: Final = "2"
"""Raised whenever the same question on the same catalog would be answered differently."""


Answered = Callable[[InferenceQuestion], InferencePlan | None]


def _checked_ways(
    question: InferenceQuestion, ways: Sequence[Advice], others: Sequence[Advice], answered: Answered
) -> tuple[Advice, ...]:
    """Ways out that were planned with; ``answered`` plans a question, None where it can't be asked."""
    known: list[tuple[InferenceQuestion, InferencePlan | None]] = []

    def once(changed: InferenceQuestion) -> InferencePlan | None:
        for asked, answer in known:
            if asked == changed:
                return answer
        known.append((changed, answered(changed)))
        return known[-1][1]

    def planned(changed: InferenceQuestion) -> Tried:
        answer = once(changed)
        if answer is None:
            return False, ()
        return bool(answer.options), [advice for advice in answer.advice if not advice.is_warning]

    def cheapest(changed: InferenceQuestion) -> InferenceOption | None:
        answer = once(changed)
        return answer.options[0] if answer is not None and answer.options else None

    return checked(question, ways, planned, relaxed(question, cheapest, others))


def plan_inference(
    question: InferenceQuestion,
    arch: ModelArch,
    snapshot: CatalogSnapshot,
    profiles: ServingProfiles,
    memory_of: Callable[[InferenceQuestion], ServingMemoryProfile],
    today: date,
    draft: ModelArch | None = None,
    *,
    tries: bool = True,
) -> InferencePlan:
    """Size and price every way to serve ``arch``; raises ``InvalidQuestion`` for what can't be asked.

    ``memory_of`` gives the memory profile of a question's engine. ``draft`` is the question's draft model, where it
    names one. Where nothing fits, the changes advised are planned with first, but for plans made to do so (``tries``
    false).
    """

    def answered(changed: InferenceQuestion) -> InferencePlan | None:
        try:
            return plan_inference(changed, arch, snapshot, profiles, memory_of, today, draft, tries=False)
        except InvalidQuestion:
            return None

    memory_profile = memory_of(question)
    support = profiles.support.get(question.engine, ANYWHERE)
    table = offer_table(snapshot)
    faults = Faults()
    with faults.gathered():
        _check_context(question, arch)
    with faults.gathered():
        check_pinned(arch, question)
    with faults.gathered():
        check_regimes(arch, question, draft)
    with faults.gathered():
        check_cache(question, support)
    with faults.gathered():
        check_version(question, profiles)
    with faults.gathered():
        selection = select_offers(table, question, today)
    faults.raise_any()
    demand = demand_of(question, memory_profile.allocator.block_tokens)
    offer_rows = np.flatnonzero(selection.mask)
    used = np.unique(table.shape[offer_rows])
    shapes = [table.shapes[index] for index in used.tolist()]
    offers = np.bincount(np.searchsorted(used, table.shape[offer_rows]), minlength=len(shapes))
    candidates = enumerate_candidates(arch, shapes, question, support)
    rejections = [*selection.rejections, *reject_shapes(arch, shapes, candidates, question, offers, support)]
    options: tuple[InferenceOption, ...] = ()
    found = beaten = tried = 0
    remarks: tuple[Advice, ...] = ()
    if len(candidates):
        models = Models(arch=arch, draft=draft)
        sized, refused, beaten, tried = size_candidates(
            models, shapes, candidates, question, demand, profiles, memory_profile, offers
        )
        ranking = rank(sized, used, table, offer_rows, question, today)
        rejections += [
            *refused,
            *ranking.rejections,
            *reject_budget(ranking.usd_per_hour, ranking.within_budget, question),
        ]
        keys = candidate_keys(arch, serving_candidates(shapes, sized.evaluated.candidates, question, profiles))
        asked = beyond_measured(question, arch)
        split, wide = sized.prefill.replicas > 0, sized.evaluated.candidates.expert > profiles.measured_expert_ranks
        beyond = [
            (
                *asked,
                *((say("split pools"),) if is_split else ()),
                *((say("wide expert groups"),) if is_wide else ()),
            )
            for is_split, is_wide in zip(split.tolist(), wide.tolist(), strict=True)
        ]
        log = EngineLog(arch=cache_arch(arch, question_draft(question, arch, draft)), profile=memory_profile)
        options = build_options(
            question, demand, sized, ranking, table, _confidence(profiles, keys, beyond), log, today
        )
        found = int(np.count_nonzero(ranking.within_budget))
        best = recommended(options)
        graphs = float(np.max(sized.evaluated.coefficients.step.graph_tokens, initial=0.0))
        remarks = (
            *log.start_warnings(question, next((option for option in options if option.id == best), None)),
            *captured_prompts(question, graphs),
        )
    ways_out = () if options else advise(question, rejections, shapes, profiles.support)
    if tries and not options:
        others = serving_alternatives(question, rejections, profiles.support)
        ways_out = _checked_ways(replace(question, max_options=1), ways_out, others, answered)
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
        options_beaten=beaten,
        options_tried=tried,
        rejections=in_order(rejections),
        advice=(
            *warnings(arch),
            *unused(question, arch),
            *release_warnings(question, profiles),
            *(remarks if options else ways_out),
        ),
        assumptions=(
            *release_assumption(question, profiles),
            *_assumptions(question, arch, memory_profile, snapshot.prices),
        ),
    )


def _confidence(profiles: ServingProfiles, keys: Keys, beyond: Sequence[tuple[str, ...]]) -> ConfidenceOf:
    """The band of a quantity for a row; quantities share rows of like attributes, so each is looked up once.

    ``beyond`` says what of each row no measured case has: the band is then the widest that applies.
    """

    @cache
    def band(quantity: str, attributes: tuple[tuple[str, str], ...], reasons: tuple[str, ...]) -> Confidence:
        bands = profiles.bands.get(quantity, ResidualBands(quantity=quantity, bands={}))
        found = dict(attributes)
        return confidence_beyond(bands, found, reasons) if reasons else confidence_of(bands, found)

    return lambda quantity, row: band(quantity, tuple(keys.attributes(row).items()), beyond[row])


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
        )
        if not question.token_budgets
        else say(
            "Lengths are means; up to {sequences} sequences and an option's own budget of tokens an iteration, "
            "chunked prefill.",
            sequences=question.max_num_seqs,
        ),
        say("A month is 730 hours, rented throughout at the size the peak needs.")
        if question.offline_requests is None
        else say("Rented for the hours of the job."),
        say("Prices are {prices}, before tax, support, storage and egress.", prices=noun(prices)),
    ]
    lines += [*model_reading(question, arch), *towers(arch), *regime_assumptions(question, arch)]
    if question.kv_format == "auto":
        lines.append(say("KV cache in 16 bit."))
    if "auto" in question.weight_formats:
        lines.append(say("Weights in the published format; FP8 also where a 16-bit model meets FP8 matrix units."))
    return lines
