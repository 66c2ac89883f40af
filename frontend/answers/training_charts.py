"""The charts of a training answer, each with its finding as title."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from frontend import answer_words, numbers, words
from frontend.answers import frame, parts
from frontend.answers.shown import Chart
from frontend.answers.training_series_charts import stages_chart
from frontend.figures import canvas, scatter, stacks
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_series import TrainingSeries


def charts(plan: TrainingPlan, chosen: TrainingOption, series: TrainingSeries | None) -> tuple[Chart, ...]:
    """Cost against time, memory of a GPU (of each stage where there are several), and where the money goes."""
    by_stage = series is not None and len(series.ranks) > 1
    memory = stages_chart(series) if series is not None and by_stage else frame.memory_chart(chosen.memory)
    return _tradeoff(plan, chosen), memory, _bill(plan, chosen)


def bill_parts(option: TrainingOption) -> dict[str, float]:
    """What a run's bill pays for; the parts sum to the bill.

    Storage and GPUs billed beyond those used (spare nodes apart) come first off; the rest is time that advances the
    run, and time lost to failures and checkpoints (1 - goodput).
    """
    cluster, goodput = option.cluster, option.speed.goodput
    total, storage = float(option.usd_total), float(option.usd_storage)
    nodes = total - storage
    used = nodes * min(1.0, cluster.gpus_used / cluster.gpus_billed)
    spare = nodes * min(1.0, option.spare_nodes * cluster.gpus_per_node / cluster.gpus_billed)
    unused = max(0.0, nodes - used - spare)
    return {
        "steps": used * goodput,
        "lost": used * (1 - goodput),
        "spare": nodes - used - unused,
        "unused": unused,
        "storage": storage,
    }


def _tradeoff(plan: TrainingPlan, chosen: TrainingOption) -> Chart:
    limit = plan.question.get("finish_days")
    drawn = [option for option in plan.options if option.speed.days > 0 and option.usd_total > 0]
    scale = frame.time_scale([option.speed.days for option in drawn])
    x = canvas.Axis(
        title=scale.title,
        tick=numbers.rounded,
        limit=float(limit) * scale.a_day if isinstance(limit, int | float) else None,
        limit_label=_("your deadline"),
    )
    y = canvas.Axis(title=_("USD for the run, log scale"), tick=lambda value: "$" + numbers.compact_money(value))
    points = [
        scatter.Point(
            id=option.id,
            group=parts.accelerator(option.cluster),
            label=f"{parts.short_name(option.cluster)}, ${numbers.compact_money(float(option.usd_total))}",
            x=option.speed.days * scale.a_day,
            y=float(option.usd_total),
            hover=_hover(option),
        )
        for option in drawn
    ]
    return frame.tradeoff_chart(points, x, y, chosen.id, _finding(plan.options))


def _finding(options: Sequence[TrainingOption]) -> str:
    """What the trade-off chart shows, in one line."""
    # A run of a moment costs less than a cent: nothing to compare by.
    drawn = [option for option in options if option.speed.days > 0 and option.usd_total > 0]
    if len(drawn) < 2:
        return _("Cost against time")
    return frame.finding(drawn, lambda option: option.usd_total, lambda option: option.speed.days, "time")


def _bill(plan: TrainingPlan, chosen: TrainingOption) -> Chart:
    names = {
        "steps": _("Steps that advance the run"),
        "lost": _("Lost to failures and checkpoints"),
        "spare": _("Spare nodes"),
        "unused": _("GPUs billed, not used"),
        "storage": _("Checkpoints and data"),
    }
    compared = frame.compared(plan.options, chosen)
    bars = [
        stacks.Bar(
            label=f"{parts.short_name(option.cluster)}<br>{words.provider(option.cluster.provider)}",
            parts=bill_parts(option),
            total="$" + numbers.compact_money(float(option.usd_total)),
        )
        for option in compared
    ]
    names = {key: name for key, name in names.items() if any(bar.parts[key] for bar in bars)}
    legend = frame.bill_legend(names, bars[0].parts)
    return Chart(
        id="bill",
        title=_("%(share)s of the bill pays for steps that advance the run")
        % {"share": frame.share_text(bars[0].parts, "steps")},
        figure=stacks.stack(bars, names, parts.part_colors(legend), height=28 + 46 * len(bars), unit="USD"),
        parts=legend,
    )


def _hover(option: TrainingOption) -> str:
    return "<br>".join(
        (
            f"<b>{parts.cluster_name(option.cluster)}</b>",
            f"{parts.layout_text(option.layout)} · {words.choice(option.sharding)} · "
            f"{words.choice(option.cluster.purchase_option)}",
            _("%(gpu)s per GPU-hour, %(node)s per node-hour")
            % {
                "gpu": numbers.money(option.price.usd_per_gpu_hour),
                "node": numbers.money(option.price.usd_per_node_hour),
            },
            _("%(total)s, %(days)s, %(mfu)s MFU")
            % {
                "total": numbers.money(option.usd_total, 6),
                "days": numbers.days(option.speed.days),
                "mfu": numbers.percent(option.speed.mfu, 1),
            },
            _("Limited by %(limit)s") % {"limit": answer_words.limit(option.limit)},
        )
    )
