"""An inference plan as a page shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import answer_words, numbers, words
from frontend.answers import explanations, frame, parts
from frontend.answers.inference_charts import charts, paid
from frontend.answers.inference_job import job_figures
from frontend.answers.inference_table import columns, row
from frontend.answers.shown import Answer, KeyFigure
from frontend.sentences import kept
from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.workload import InferenceQuestion


def present_inference(plan: InferencePlan, given: Mapping[str, str], wanted: str) -> Answer:
    """The page's answer: the sentence about the option looked at, charts, table, working, what was rejected."""
    at = str(plan.question.get("slo_percentile") or "p95")
    chosen = parts.chosen_option(plan.options, wanted, plan.recommended)
    if chosen is None:
        return frame.nothing_fits(plan, given, InferenceQuestion, parts.model_facts(plan.model))
    return Answer(
        sentence=_sentence(chosen, at),
        detail=_detail(chosen),
        figures=_figures(chosen, at, plan.question),
        charts=charts(plan, chosen, at),
        table_title=frame.table_title(plan),
        columns=columns(at, is_job=chosen.job is not None),
        rows=tuple(row(option, given, at, chosen.id) for option in plan.options),
        working=explanations.working_groups(chosen.working),
        working_title=_("How %(cluster)s was worked out") % {"cluster": parts.short_name(chosen.cluster)},
        rejected_title=frame.rejected_title(plan),
        accounted=frame.accounted(plan),
        rejected=explanations.rejected_groups(plan.rejections),
        ways_out=(),
        remarks=(*parts.remarks(plan.advice), *frame.cheaper_once(plan.options, paid)),
        warnings=parts.warnings(plan.advice),
        assumptions=tuple(kept(text) for text in plan.assumptions),
        facts=parts.model_facts(plan.model),
        bar_cost=_bar(chosen, at)[0],
        bar_speed=_bar(chosen, at)[1],
        notice=frame.notice(wanted, chosen.id),
        chosen_id=chosen.id,
        rate=f"{plan.mean_requests_s or chosen.speed.peak_requests_s:.6g}",
        clients=str(max(1, math.ceil(chosen.speed.concurrency))) if math.isfinite(chosen.speed.concurrency) else "",
    )


def _bar(option: InferenceOption, at: str) -> tuple[str, str]:
    """The phone's bar: cost and wait, of a job its own cost and hours."""
    if option.job is not None:
        cost = _("%(money)s for the job") % {"money": numbers.money(option.job.usd)}
        return cost, numbers.days(option.job.hours / 24)
    return (
        _("%(money)s a month") % {"money": numbers.money(option.price.usd_per_month)},
        _("TTFT %(time)s") % {"time": numbers.duration(option.speed.ttft_ms.get(at))},
    )


def _sentence(option: InferenceOption, at: str) -> str:
    values = {
        "cluster": parts.cluster_name(option.cluster),
        "month": numbers.money(option.price.usd_per_month),
        "input": numbers.money(option.usd_per_million_input),
        "output": numbers.money(option.usd_per_million_output),
        "ttft": numbers.duration(option.speed.ttft_ms.get(at)),
        "at": words.choice(at),
    }
    if option.job is not None:
        return _("%(cluster)s: %(requests)s requests in %(time)s, %(cost)s for the job.") % {
            "cluster": parts.cluster_name(option.cluster),
            "requests": numbers.fixed(option.job.requests),
            "time": numbers.days(option.job.hours / 24),
            "cost": numbers.money(option.job.usd),
        }
    if not option.usd_per_million_output:
        return _("%(cluster)s: %(month)s a month, %(input)s per million input tokens, answer in %(ttft)s (%(at)s).") % (
            values
        )
    return (
        _("%(cluster)s: %(month)s a month, %(output)s per million output tokens, first token in %(ttft)s (%(at)s).")
        % values
    )


def _detail(option: InferenceOption) -> str:
    replicas = ngettext("%(n)s replica", "%(n)s replicas", option.layout.replicas) % {
        "n": numbers.fixed(option.layout.replicas)
    }
    pieces = (
        _("Limited by %(limit)s") % {"limit": answer_words.limit(option.limit)},
        f"{replicas}, {parts.pools_text(option)}",
        _("%(weights)s weights, %(kv)s KV cache")
        % {"weights": words.choice(option.weight_format), "kv": words.choice(option.kv_format)},
        parts.confidence_text(option.confidence),
        parts.price_read(option.price),
    )
    return " · ".join(pieces)


def _figures(option: InferenceOption, at: str, question: Mapping[str, object]) -> tuple[KeyFigure, ...]:
    price = option.price
    cost = KeyFigure(
        label=_("Cost"),
        value=_("%(money)s /h") % {"money": numbers.money(price.usd_per_hour, 5)},
        exact=f"{price.usd_per_hour:f} USD/h",
        notes=(
            _("%(gpu)s per GPU · %(node)s per node")
            % {"gpu": numbers.money(price.usd_per_gpu_hour), "node": numbers.money(price.usd_per_node_hour)},
            parts.tokens_price(option),
        ),
    )
    if option.job is not None:
        return cost, *job_figures(option, option.job, question.get("offline_hours"))
    return cost, *_service_figures(option, at)


def _service_figures(option: InferenceOption, at: str) -> tuple[KeyFigure, KeyFigure]:
    """How fast it is at the peak, and what is left then."""
    speed = option.speed
    ttft, tpot = speed.ttft_ms.get(at), speed.tpot_ms.get(at)
    pace = KeyFigure(
        label=_("Speed at the peak"),
        value=f"{numbers.duration(ttft)} · {numbers.duration(tpot)}" if tpot else numbers.duration(ttft),
        exact=f"{ttft} ms · {tpot} ms" if tpot else f"{ttft} ms",
        notes=(
            _("TTFT %(at)s · TPOT %(at)s") % {"at": words.choice(at)}
            if tpot
            else _("TTFT %(at)s; TPOT not applicable: one output token") % {"at": words.choice(at)},
            _likely(ttft, option),
            _likely_tpot(tpot, option),
        ),
    )
    room = KeyFigure(
        label=_("Headroom"),
        value=numbers.percent(max(0.0, 1 - speed.utilization)),
        exact=f"{1 - speed.utilization:.4f}",
        notes=(
            _("%(peak)s of %(capacity)s requests/s at the peak")
            % {"peak": numbers.rounded(speed.peak_requests_s), "capacity": numbers.rounded(speed.capacity_requests_s)},
            parts.in_flight(option),
            parts.kv_pool(option),
        ),
    )
    return pace, room


def _likely(ttft_ms: float | None, option: InferenceOption) -> str:
    """The band of TTFT, where one is known."""
    within = parts.spread(ttft_ms, option.ttft_confidence) if ttft_ms is not None else ""
    return _("TTFT likely %(range)s") % {"range": within} if within else ""


def _likely_tpot(tpot_ms: float | None, option: InferenceOption) -> str:
    within = parts.spread(tpot_ms, option.tpot_confidence) if tpot_ms else ""
    return _("TPOT likely %(range)s") % {"range": within} if within else ""
