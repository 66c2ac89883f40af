"""The charts of an inference answer, each with its finding as title."""

from __future__ import annotations

from decimal import Decimal

from django.utils.translation import gettext as _

from frontend import answer_words, numbers, words
from frontend.answers import frame, parts
from frontend.answers.shown import Chart
from frontend.figures import canvas, scatter, stacks
from planner.engine.answers import InferenceOption, InferencePlan


def charts(plan: InferencePlan, chosen: InferenceOption, at: str) -> tuple[Chart, ...]:
    """Cost against latency, one GPU's memory, and what the bill pays for."""
    drawn = _tradeoff(plan, chosen, at), frame.memory_chart(chosen.memory)
    # Nobody pays a month's bill for a job.
    return drawn if chosen.job else (*drawn, _bill(plan, chosen))


def paid(option: InferenceOption) -> Decimal:
    """USD a month, or for the whole job."""
    return option.price.usd_per_month if option.job is None else option.job.usd


def _tradeoff(plan: InferencePlan, chosen: InferenceOption, at: str) -> Chart:
    """Cost against the wait for the first token; of a job, against the hours until it is done."""

    def takes(option: InferenceOption) -> float:
        return option.speed.ttft_ms.get(at) or 0.0 if option.job is None else option.job.hours

    known = [option for option in plan.options if takes(option) and paid(option) > 0]
    limit = plan.question.get("ttft_ms" if chosen.job is None else "offline_hours")
    scale = frame.time_scale([takes(option) / 24 for option in known]) if chosen.job else None
    of_unit = 1.0 if scale is None else scale.a_day / 24
    x = canvas.Axis(
        title=_("TTFT %(at)s, log scale") % {"at": words.choice(at)} if scale is None else scale.title,
        tick=numbers.duration if scale is None else numbers.rounded,
        limit=float(limit) * of_unit if isinstance(limit, int | float) else None,
        limit_label=_("your time") if chosen.job else _("your TTFT limit"),
    )
    y = canvas.Axis(
        title=_("USD for the job, log scale") if chosen.job else _("USD a month, log scale"),
        tick=lambda value: "$" + numbers.compact_money(value),
    )
    points = [
        scatter.Point(
            id=option.id,
            group=parts.accelerator(option.cluster),
            label=f"{parts.short_name(option.cluster)}, ${numbers.compact_money(float(paid(option)))}",
            x=takes(option) * of_unit,
            y=float(paid(option)),
            hover=_hover(option, at),
        )
        for option in known
    ]
    if len(known) >= 2:
        title = frame.finding(known, paid, takes, "time" if chosen.job else "wait")
    else:
        title = _("Cost against time") if chosen.job else _("Cost against wait for the first token")
    return frame.tradeoff_chart(points, x, y, chosen.id, title)


def bill_parts(option: InferenceOption, mean_requests_s: float) -> dict[str, float]:
    """What a month's bill pays for; the parts sum to the bill.

    GPUs billed beyond those used come first off; of the rest, each request per second of capacity costs
    the same, whether the mean load uses it, only the peak does, or nothing does.
    """
    month = float(option.price.usd_per_month)
    used = month * min(1.0, option.cluster.gpus_used / option.cluster.gpus_billed)
    capacity = max(option.speed.capacity_requests_s, option.speed.peak_requests_s, 1e-12)
    mean = min(mean_requests_s, option.speed.peak_requests_s)
    return {
        "mean": used * mean / capacity,
        "peak": used * (option.speed.peak_requests_s - mean) / capacity,
        "spare": used * (capacity - option.speed.peak_requests_s) / capacity,
        "unused": month - used,
    }


def _bill(plan: InferencePlan, chosen: InferenceOption) -> Chart:
    names = {
        "mean": _("Mean load"),
        "peak": _("Kept for the peak"),
        "spare": _("Headroom and spares"),
        "unused": _("GPUs billed, not used"),
    }
    compared = frame.compared(plan.options, chosen)
    bars = [
        stacks.Bar(
            label=f"{parts.short_name(option.cluster)}<br>{words.provider(option.cluster.provider)}",
            # Clients that wait for their answers load the cluster evenly: their mean is their peak.
            parts=bill_parts(option, plan.mean_requests_s or option.speed.peak_requests_s),
            total="$" + numbers.compact_money(float(option.price.usd_per_month)),
        )
        for option in compared
    ]
    legend = frame.bill_legend(names, bars[0].parts)
    return Chart(
        id="bill",
        title=_("%(share)s of the month's bill serves the mean load")
        % {"share": frame.share_text(bars[0].parts, "mean")},
        figure=stacks.stack(bars, names, parts.part_colors(legend), height=28 + 46 * len(bars), unit=_("USD a month")),
        parts=legend,
    )


def _hover(option: InferenceOption, at: str) -> str:
    cluster = option.cluster
    return "<br>".join(
        (
            f"<b>{parts.cluster_name(cluster)}</b>",
            f"{parts.pools_text(option)} · {words.choice(option.weight_format)} · "
            f"{words.choice(cluster.purchase_option)}",
            _("%(gpu)s per GPU-hour, %(node)s per node-hour")
            % {
                "gpu": numbers.money(option.price.usd_per_gpu_hour),
                "node": numbers.money(option.price.usd_per_node_hour),
            },
            _("%(month)s a month") % {"month": numbers.money(option.price.usd_per_month, 6)},
            parts.tokens_price(option),
            _("TTFT %(ttft)s, TPOT %(tpot)s (%(at)s)")
            % {
                "ttft": numbers.duration(option.speed.ttft_ms.get(at)),
                "tpot": numbers.duration(option.speed.tpot_ms.get(at) or None),
                "at": words.choice(at),
            },
            _("Limited by %(limit)s") % {"limit": answer_words.limit(option.limit)},
        )
    )
