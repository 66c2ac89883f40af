"""The charts of one training option: more GPUs, memory by pipeline stage, micro-batch against memory and speed."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from frontend import numbers
from frontend.answers import parts
from frontend.answers.micro_batch_chart import micro_batches_chart
from frontend.answers.shown import Chart, Twin
from frontend.figures import canvas, scatter, stacks
from planner.engine.answers import GpuMemory
from planner.engine.training_answers import TrainingOption
from planner.engine.training_series import ScalingPoint, StageMemory, TrainingSeries

EXPOSED = ("tensor_comm", "context_comm", "expert_comm", "pipeline_comm", "data_comm")
MOST_STAGES = 8
"""Bars in the memory chart; of more stages the first, the last and some between are drawn."""


def deeper_charts(option: TrainingOption, series: TrainingSeries) -> tuple[Chart, ...]:
    """Strong scaling, and the trade of memory for speed."""
    found = []
    if len(series.scaling) > 1:
        found.append(_scaling(option, series.scaling))
    if len(series.micro_batches) > 1:
        found.append(micro_batches_chart(option, series.micro_batches))
    return tuple(found)


def stages_chart(series: TrainingSeries) -> Chart:
    """Memory of one GPU of each pipeline stage against its capacity."""
    fullest = max(series.ranks, key=lambda stage: stage.total_gib)
    shown = parts.memory_parts(_memory(fullest))
    drawn = _some(series.ranks)
    bars = [
        stacks.Bar(
            label=_stage_name(stage),
            parts={**stage.parts_gib, "free": max(0.0, stage.capacity_gib - stage.total_gib)},
            total=_("%(n)s GiB") % {"n": numbers.rounded(stage.total_gib)},
        )
        for stage in drawn
    ]
    names = {part.key: part.label for part in shown}
    return Chart(
        id="memory",
        title=_("Stage %(n)d is the fullest: %(share)s of each GPU's %(capacity)s GiB")
        % {
            "n": fullest.stage + 1,
            "share": numbers.percent(fullest.total_gib / fullest.capacity_gib),
            "capacity": numbers.rounded(fullest.capacity_gib),
        },
        figure=stacks.stack(bars, names, parts.part_colors(shown), height=24 + 36 * len(bars), unit="GiB"),
        parts=shown,
        note=_("Below: the fullest stage. Earlier stages keep the activations of more micro-batches.")
        + _left_out(len(series.ranks) - len(drawn)),
        twin=_stages_twin(series.ranks, names),
    )


def _left_out(stages: int) -> str:
    return " " + _("%(n)d stages between are not drawn.") % {"n": stages} if stages else ""


def _memory(stage: StageMemory) -> GpuMemory:
    return GpuMemory(
        capacity_gib=stage.capacity_gib,
        parts_gib=stage.parts_gib,
        free_gib=stage.capacity_gib - stage.total_gib,
    )


def _some(stages: Sequence[StageMemory]) -> Sequence[StageMemory]:
    if len(stages) <= MOST_STAGES:
        return stages
    step = (len(stages) - 1) / (MOST_STAGES - 1)
    return [stages[round(n * step)] for n in range(MOST_STAGES)]


def _stage_name(stage: StageMemory) -> str:
    """e.g. ``Stage 1: 20 layers, embedding``."""
    ends = [_("embedding")] * stage.has_embedding + [_("head")] * stage.has_head
    text = _("Stage %(n)d: %(layers)s layers") % {"n": stage.stage + 1, "layers": numbers.rounded(stage.layers)}
    return text + ("<br>+ " + ", ".join(ends) if ends else "")


def _stages_twin(stages: Sequence[StageMemory], names: dict[str, str]) -> Twin:
    keys = [key for key in names if key != "free"]
    return Twin(
        heads=(_("Stage"), _("Layers"), _("In flight"), *(names[key] for key in keys), _("Sum, GiB")),
        rows=tuple(
            (
                str(stage.stage + 1),
                numbers.rounded(stage.layers),
                numbers.rounded(stage.in_flight),
                *(numbers.rounded(stage.parts_gib.get(key, 0.0)) for key in keys),
                numbers.rounded(stage.total_gib, 4),
            )
            for stage in stages
        ),
    )


def _scaling(option: TrainingOption, sizes: Sequence[ScalingPoint]) -> Chart:
    chosen = f"n{option.cluster.nodes}"
    points = [
        scatter.Point(
            id=f"n{size.nodes}",
            group="",
            label=numbers.percent(size.efficiency),
            x=size.gpus,
            y=size.tokens_per_s,
            hover=_scaling_hover(size),
            is_front=True,
        )
        for size in sizes
    ]
    name = parts.accelerator(option.cluster)
    figure = scatter.scaling(
        points,
        canvas.Axis(title=_("GPUs, log scale"), tick=numbers.fixed, at=[size.gpus for size in sizes]),
        canvas.Axis(title=_("Tokens a second, log scale"), tick=numbers.compact_money),
        chosen,
        name,
        _("at the smallest size's pace"),
    )
    return Chart(
        id="scaling",
        title=_scaling_finding(sizes),
        figure=figure,
        note=_("Labels: tokens a second and GPU, over those of the smallest size that fits. Dotted: if all kept its "
               "pace. Each size has its own best layout; ringed: the option described here."),
        twin=_scaling_twin(sizes),
    )  # fmt: skip


def _scaling_finding(sizes: Sequence[ScalingPoint]) -> str:
    first, last = sizes[0], sizes[-1]
    text = _("%(times)s times the GPUs, %(faster)s times as fast: %(first)s days on %(small)s, %(last)s on %(large)s")
    return text % {
        "times": numbers.rounded(last.gpus / first.gpus),
        "faster": numbers.rounded(last.tokens_per_s / first.tokens_per_s),
        "first": numbers.rounded(first.days),
        "last": numbers.rounded(last.days),
        "small": numbers.fixed(first.gpus),
        "large": numbers.fixed(last.gpus),
    }


def _shares(size: ScalingPoint) -> tuple[str, str, str, str]:
    """Bubble, exposed communication, recomputation and stragglers, as shares of the step."""
    total = size.step_s or 1.0
    exposed = sum(size.seconds.get(name, 0.0) for name in EXPOSED)
    spent = (
        size.seconds.get("pipeline_bubble", 0.0),
        exposed,
        size.seconds.get("recompute", 0.0),
        size.seconds.get("straggler", 0.0),
    )
    bubble, communication, recompute, straggler = (numbers.percent(seconds / total, 1) for seconds in spent)
    return bubble, communication, recompute, straggler


def _layout(size: ScalingPoint) -> str:
    return f"{parts.layout_text(size.layout)} · DP{size.layout.replicas}"


def _scaling_hover(size: ScalingPoint) -> str:
    bubble, communication, recompute, straggler = _shares(size)
    return "<br>".join(
        (
            _("<b>%(nodes)s nodes, %(gpus)s GPUs</b>")
            % {"nodes": numbers.fixed(size.nodes), "gpus": numbers.fixed(size.gpus)},
            _layout(size),
            _("%(days)s, %(usd)s, %(share)s of the smallest size's pace")
            % {
                "days": numbers.days(size.days),
                "usd": numbers.money(size.usd),
                "share": numbers.percent(size.efficiency),
            },
            _("bubble %(bubble)s, exposed communication %(comm)s, recompute %(recompute)s, stragglers %(straggler)s")
            % {"bubble": bubble, "comm": communication, "recompute": recompute, "straggler": straggler},
        )
    )


def _scaling_twin(sizes: Sequence[ScalingPoint]) -> Twin:
    return Twin(
        heads=(
            _("Nodes"),
            _("GPUs"),
            _("Layout"),
            _("Days"),
            _("$ for the run"),
            _("tok/s·GPU"),
            _("Pace"),
            _("Bubble"),
            _("Exposed communication"),
            _("Recompute"),
            _("Stragglers"),
        ),
        rows=tuple(
            (
                numbers.fixed(size.nodes),
                numbers.fixed(size.gpus),
                _layout(size),
                numbers.fixed(size.days, 1),
                numbers.fixed(size.usd),
                numbers.rounded(size.tokens_per_s_per_gpu, 4),
                numbers.percent(size.efficiency),
                *_shares(size),
            )
            for size in sizes
        ),
    )
