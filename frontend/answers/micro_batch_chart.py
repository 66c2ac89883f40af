"""The chart of micro-batches: what each size costs in memory and time."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers.shown import Chart, Part, Twin
from frontend.figures import canvas, scatter
from planner.engine.training.search import USABLE_SHARE
from planner.engine.training_answers import TrainingOption
from planner.engine.training_series import MicroBatchPoint

EXPOSED = ("tensor_comm", "context_comm", "expert_comm", "pipeline_comm", "data_comm")
MOST_STAGES = 8
"""Bars in the memory chart; of more stages the first, the last and some between are drawn."""


def micro_batches_chart(option: TrainingOption, tried: Sequence[MicroBatchPoint]) -> Chart:
    chosen = f"{option.micro_batch}-{option.recompute}"
    capacity = tried[0].capacity_gib
    points = [
        scatter.Point(
            id=f"{point.micro_batch}-{point.recompute}",
            group=_degree(point.recompute),
            label=_("micro-batch %(n)d") % {"n": point.micro_batch},
            x=point.memory_gib,
            y=point.tokens_per_s_per_gpu,
            hover=_micro_hover(point),
            is_front=point.fits,
        )
        for point in tried
    ]
    groups = list(dict.fromkeys(point.group for point in points))
    return Chart(
        id="micro",
        title=_micro_finding(option, tried),
        figure=scatter.paths(
            points,
            canvas.Axis(
                title=_("GiB a GPU, log scale"),
                tick=numbers.rounded,
                limit=USABLE_SHARE * capacity,
                limit_label=_("what fits"),
            ),
            canvas.Axis(title=_("Tokens a second and GPU, log scale"), tick=numbers.compact_money),
            chosen,
        ),
        parts=tuple(
            Part(key=name, label=name, value="", share="", swatch=f"symbol-{n}")
            for n, name in enumerate(groups, start=1)
        ),
        note=_("Along each line the micro-batch doubles; faint points do not fit. Memory over %(share)s of the GPU is "
               "lost to fragmentation.") % {"share": numbers.percent(USABLE_SHARE)},
        twin=_micro_twin(tried),
    )  # fmt: skip


def _degree(recompute: str) -> str:
    return _("recompute: %(degree)s") % {"degree": words.choice(recompute).lower()}


def _micro_finding(option: TrainingOption, tried: Sequence[MicroBatchPoint]) -> str:
    fitting = [point for point in tried if point.fits]
    best = max(fitting or tried, key=lambda point: point.tokens_per_s_per_gpu)
    least = min(tried, key=lambda point: point.memory_gib)
    text = _("Micro-batch %(n)d, recompute %(degree)s: %(rate)s tok/s a GPU in %(gib)s GiB; the leanest: %(least)s GiB")
    return text % {
        "n": best.micro_batch,
        "degree": words.choice(best.recompute).lower(),
        "rate": numbers.rounded(best.tokens_per_s_per_gpu),
        "gib": numbers.rounded(best.memory_gib),
        "least": numbers.rounded(least.memory_gib),
    }


def _micro_hover(point: MicroBatchPoint) -> str:
    return "<br>".join(
        (
            f"<b>{_('micro-batch %(n)d') % {'n': point.micro_batch}}</b>, {_degree(point.recompute)}",
            _("%(gib)s of %(capacity)s GiB, %(rate)s tokens/s a GPU")
            % {
                "gib": numbers.rounded(point.memory_gib),
                "capacity": numbers.rounded(point.capacity_gib),
                "rate": numbers.rounded(point.tokens_per_s_per_gpu, 4),
            },
            _("fits") if point.fits else _("does not fit"),
        )
    )


def _micro_twin(tried: Sequence[MicroBatchPoint]) -> Twin:
    return Twin(
        heads=(_("Micro-batch"), _("Recompute"), _("GiB a GPU"), _("tok/s·GPU"), _("Fits")),
        rows=tuple(
            (
                str(point.micro_batch),
                words.choice(point.recompute),
                numbers.rounded(point.memory_gib, 4),
                numbers.rounded(point.tokens_per_s_per_gpu, 4),
                _("Yes") if point.fits else _("No"),
            )
            for point in tried
        ),
    )
