"""The training search: every layout on every cluster of every offer that passes, ranked by cost.

Hardware is evaluated once a node shape and node count, whoever rents it; prices are joined after. Of each
offer the cheapest size is listed, and every size on the Pareto front of cost against days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.advice import Advice
from planner.engine.alternatives import training_alternatives
from planner.engine.answers import Rejection
from planner.engine.checked_advice import Tried, checked
from planner.engine.cost import recommended
from planner.engine.errors import Faults, InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.model_arch import ModelArch
from planner.engine.model_summary import summarize, warnings
from planner.engine.offers import offer_table, select_offers
from planner.engine.rejections import in_order
from planner.engine.sentences import noun, say
from planner.engine.training.profile import TrainingProfiles
from planner.engine.training.search import search_layouts
from planner.engine.training.search_types import BestLayouts
from planner.engine.training_advice import advise
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_clusters import Clusters, training_clusters
from planner.engine.training_options import build_options
from planner.engine.training_over_limits import Slowdown, advise_limits, reject_options
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_ranking import TrainingRanking, rank_options
from planner.engine.training_rejections import reject_clusters
from planner.engine.training_remarks import no_checkpoint
from planner.engine.training_run import Run, chosen_batch, describe_run, stored_words
from planner.engine.unused_fields import unused

IntArray = NDArray[np.int64]

ENGINE_VERSION: Final = "2"
"""Raised whenever the same question on the same catalog would be answered differently."""


def plan_training(
    question: TrainingQuestion,
    arch: ModelArch,
    snapshot: CatalogSnapshot,
    profiles: TrainingProfiles,
    today: date,
    teacher: ModelArch | None = None,
    *,
    tries: bool = True,
) -> TrainingPlan:
    """Size, time and price every way to train ``arch``; raises ``InvalidQuestion`` for what can't be asked.

    Where nothing fits, the changes advised are planned with first, but for plans made to do so (``tries`` false).
    """

    def planned(changed: TrainingQuestion) -> Tried:
        try:
            answer = plan_training(changed, arch, snapshot, profiles, today, teacher, tries=False)
        except InvalidQuestion:
            return False, ()
        return bool(answer.options), [advice for advice in answer.advice if not advice.is_warning]

    table = offer_table(snapshot)
    faults = Faults()
    with faults.gathered():
        run = describe_run(question, arch, profiles, today, teacher)
    with faults.gathered():
        selection = select_offers(table, question, today)
    faults.raise_any()
    offer_rows = np.flatnonzero(selection.mask)
    used = np.unique(table.shape[offer_rows])
    offers_of = np.bincount(np.searchsorted(used, table.shape[offer_rows]), minlength=len(used))
    clusters = training_clusters(
        table.shapes, used.tolist(), offers_of.tolist(), question, arch, run.framework, profiles, today
    )
    rejections: list[Rejection] = [*selection.rejections, *clusters.rejections]
    options: tuple[TrainingOption, ...] = ()
    found = tried = layouts = 0
    over: list[Advice] = []
    if clusters.sizes:
        result = search_layouts(run.work, run.layout_question, clusters.hardware, clusters.sizes, profiles)
        offers = offers_of[np.searchsorted(used, clusters.shapes)]
        layouts, tried = result.tried, sum(int(offers[size.node]) for size in clusters.sizes)
        rejections += reject_clusters(result, clusters, table.shapes, run, offers)
        ranking = rank_options(result.best, clusters, table, offer_rows, run, question)
        rejections += reject_options(ranking, table, run, question)
        over += advise_limits(
            ranking, table, run, question, _slowdown(ranking, result.best, clusters, run, question, profiles)
        )
        found = int(np.count_nonzero(ranking.accepted))
        options = build_options(ranking, result.best, clusters, table, run, question, profiles, today)
    ways_out: Sequence[Advice] = ()
    if not options:
        ways_out = over or advise(question, rejections, [table.shapes[row] for row in used], profiles)
        if tries:
            others = training_alternatives(question, rejections)
            ways_out = checked(replace(question, max_options=1), ways_out, planned, others)
    return TrainingPlan(
        question=asdict(question),
        catalog_version=snapshot.version,
        engine_version=ENGINE_VERSION,
        priced_on=today,
        model=summarize(arch),
        tokens=run.tokens,
        global_batch_tokens=int(run.batch_sequences * question.sequence_length),
        critical_batch_tokens=run.critical_tokens,
        stored_gib=run.stored_gib,
        flops_total=run.tokens * run.flops_per_token,
        options=options,
        recommended=recommended(options),
        options_found=found,
        options_tried=tried,
        layouts_tried=layouts,
        rejections=in_order(rejections),
        advice=(
            *warnings(arch),
            *unused(question, arch),
            *no_checkpoint(question, options),
            *run.advice,
            *ways_out,
        ),
        assumptions=(
            *run.assumptions,
            stored_words(question, run),
            say("Prices are {prices}, before tax and egress.", prices=noun(snapshot.prices)),
        ),
    )


def _slowdown(
    ranking: TrainingRanking,
    best: BestLayouts,
    clusters: Clusters,
    run: Run,
    question: TrainingQuestion,
    profiles: TrainingProfiles,
) -> Slowdown:
    """Runs of fewer tokens, on the cluster of one row: what the batch that suits them costs in pace."""

    def slowdown(row: int, tokens: float) -> float:
        batch = chosen_batch(question, run.arch, tokens)
        if batch == run.batch_sequences:
            return 1.0
        place = int(ranking.best[row])
        size = clusters.sizes[int(best.cluster[place])]
        asked = replace(run.layout_question, global_batch=batch)
        hardware = [clusters.hardware[size.node]]
        found = search_layouts(run.work, asked, hardware, [replace(size, node=0)], profiles).best
        return float(best.tokens_per_s[place] / found.tokens_per_s[0]) if len(found.tokens_per_s) else math.inf

    return slowdown
