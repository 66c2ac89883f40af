"""A training plan as a page shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import answer_words, numbers, words
from frontend.answers import explanations, frame, parts
from frontend.answers.shown import Answer, KeyFigure
from frontend.answers.training_axes import step_costs
from frontend.answers.training_charts import charts
from frontend.answers.training_series_charts import deeper_charts
from frontend.answers.training_table import columns, row
from frontend.sentences import kept, shown
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_series import TrainingSeries

SeriesOf = Callable[[TrainingOption], TrainingSeries]


def present_training(
    plan: TrainingPlan, given: Mapping[str, str], wanted: str, series_of: SeriesOf | None = None
) -> Answer:
    """The page's answer: the sentence about the option looked at, charts, table, working, what was rejected.

    ``series_of`` gives what is drawn of the option looked at; a saved plan, whose catalog is gone, has none.
    """
    chosen = parts.chosen_option(plan.options, wanted, plan.recommended)
    if chosen is None:
        return frame.nothing_fits(plan, given, TrainingQuestion, facts(plan))
    series = series_of(chosen) if series_of is not None else None
    return Answer(
        sentence=_sentence(chosen, plan),
        detail=_detail(chosen),
        figures=_figures(chosen),
        charts=charts(plan, chosen, series),
        costs=step_costs(plan, chosen, series),
        deeper=deeper_charts(chosen, series) if series is not None else (),
        table_title=frame.table_title(plan),
        columns=columns(),
        rows=tuple(row(option, given, chosen.id) for option in plan.options),
        working=explanations.working_groups(chosen.working),
        working_title=_("How %(cluster)s was worked out") % {"cluster": parts.short_name(chosen.cluster)},
        rejected_title=frame.rejected_title(plan),
        accounted=frame.accounted(plan),
        rejected=explanations.rejected_groups(plan.rejections),
        ways_out=(),
        remarks=(*parts.remarks(plan.advice), *frame.cheaper_once(plan.options, lambda option: option.usd_total)),
        warnings=parts.warnings(plan.advice),
        assumptions=tuple(kept(text) for text in plan.assumptions),
        facts=(*facts(plan), (_("MFU counts"), shown(chosen.speed.mfu_convention))),
        bar_cost=numbers.money(chosen.usd_total),
        bar_speed=numbers.days(chosen.speed.days),
        notice=frame.notice(wanted, chosen.id),
        chosen_id=chosen.id,
    )


def facts(plan: TrainingPlan) -> tuple[tuple[str, str], ...]:
    """The model and the size of the run."""
    return (
        *parts.model_facts(plan.model),
        (_("Training tokens"), numbers.compact(plan.tokens)),
        (_("Global batch"), _("%(n)s tokens") % {"n": numbers.compact(plan.global_batch_tokens)}),
        (_("Work"), f"{plan.flops_total:.3g} FLOP"),
        *(((_("Layouts tried"), numbers.fixed(plan.layouts_tried)),) if plan.layouts_tried else ()),
    )


def _sentence(option: TrainingOption, plan: TrainingPlan) -> str:
    return _("%(cluster)s: %(days)s and %(total)s for %(tokens)s tokens, at %(mfu)s MFU.") % {
        "cluster": parts.cluster_name(option.cluster),
        "days": numbers.days(option.speed.days),
        "total": numbers.money(option.usd_total),
        "tokens": numbers.compact(plan.tokens),
        "mfu": numbers.percent(option.speed.mfu, 1),
    }


def _detail(option: TrainingOption) -> str:
    ranks = ngettext("%(n)s data-parallel rank", "%(n)s data-parallel ranks", option.layout.replicas) % {
        "n": numbers.fixed(option.layout.replicas)
    }
    pieces = (
        _("Limited by %(limit)s") % {"limit": answer_words.limit(option.limit)},
        f"{ranks}, {parts.layout_text(option.layout)}",
        _("sharding %(sharding)s, recompute %(recompute)s, micro-batch %(micro)s × %(steps)s")
        % {
            "sharding": words.choice(option.sharding),
            "recompute": words.choice(option.recompute).lower(),
            "micro": option.micro_batch,
            "steps": option.grad_accumulation,
        },
        parts.confidence_text(option.confidence),
        parts.price_read(option.price),
    )
    return " · ".join(pieces)


def _figures(option: TrainingOption) -> tuple[KeyFigure, ...]:
    speed, price, confidence = option.speed, option.price, option.confidence
    cost = KeyFigure(
        label=_("Cost of the run"),
        value=numbers.money(option.usd_total),
        exact=f"{option.usd_total:f} USD",
        notes=(
            _("%(gpu)s per GPU-hour · %(node)s per node-hour")
            % {"gpu": numbers.money(price.usd_per_gpu_hour), "node": numbers.money(price.usd_per_node_hour)},
            _("%(total)s per million tokens · %(hours)s GPU-hours")
            % {
                "total": numbers.money(option.usd_per_million_tokens),
                "hours": numbers.rounded(speed.gpu_hours),
            },
        ),
    )
    pace = KeyFigure(
        label=_("Time"),
        value=numbers.days(speed.days),
        exact=f"{speed.days} d",
        notes=(
            _("likely %(low)s to %(high)s")
            % {"low": numbers.days(speed.days * confidence.low), "high": numbers.days(speed.days * confidence.high)}
            if math.isfinite(confidence.high)
            else "",
            _("%(steps)s steps of %(step)s")
            % {"steps": numbers.fixed(speed.steps), "step": numbers.duration(speed.step_s * 1000)},
        ),
    )
    efficiency = KeyFigure(
        label=_("MFU"),
        value=numbers.percent(speed.mfu, 1),
        exact=f"{speed.mfu:.4f}",
        notes=(
            _("%(tokens)s tokens/s per GPU · %(tflops)s TFLOP/s per GPU")
            % {"tokens": numbers.rounded(speed.tokens_per_s_per_gpu), "tflops": numbers.rounded(speed.tflops_per_gpu)},
        ),
    )
    return cost, pace, efficiency
