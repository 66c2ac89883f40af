"""The options table of a training answer."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers import parts
from frontend.answers.shown import Cell, Column, Row
from frontend.query import canonical_query
from planner.engine.answers import TrainingOption
from planner.engine.workload import TrainingQuestion


def columns() -> tuple[Column, ...]:
    """The columns."""
    return (
        Column(key="cluster", label=_("Cluster"), is_text=True),
        Column(key="gpu_hour", label=_("$/GPU·h"), help=_("USD per GPU and hour")),
        Column(key="node_hour", label=_("$/node·h"), help=_("USD per node and hour")),
        Column(key="total", label=_("$ for the run"), help=_("USD for the whole run")),
        Column(key="days", label=_("Days"), help=_("Calendar days, goodput included")),
        Column(key="mfu", label="MFU", help=_("Model FLOP/s over the dense peak")),
        Column(key="speed", label=_("tok/s·GPU"), help=_("Training tokens per second and GPU")),
        Column(key="memory", label=_("Memory"), help=_("Share of one GPU's memory in use")),
        Column(key="gpus", label=_("GPUs used / billed")),
        Column(key="age", label=_("Price read"), help=_("How long ago the price was read")),
        Column(key="band", label=_("Band"), help=_("90 of 100 measured cases lie within it")),
    )


def row(option: TrainingOption, given: Mapping[str, str], chosen_id: str) -> Row:
    """One option with the link that shows its working."""
    cluster, price, speed, memory = option.cluster, option.price, option.speed, option.memory
    subtitle = " · ".join(
        (
            parts.layout_text(option.layout),
            words.choice(option.sharding),
            parts.place(cluster),
            words.choice(cluster.purchase_option),
        )
    )
    used = 1 - memory.free_gib / memory.capacity_gib
    return Row(
        id=option.id,
        title=parts.short_name(cluster),
        subtitle=subtitle,
        query=canonical_query(given, TrainingQuestion, option=option.id),
        is_chosen=option.id == chosen_id,
        is_front=option.on_pareto_front,
        cells=(
            parts.money_cell(price.usd_per_gpu_hour),
            parts.money_cell(price.usd_per_node_hour),
            parts.money_cell(option.usd_total, 0),
            Cell(text=numbers.fixed(speed.days, 1), sort=str(speed.days), exact=f"{speed.days} d"),
            Cell(text=numbers.percent(speed.mfu, 1), sort=str(speed.mfu), exact=f"{speed.mfu:.4f}"),
            Cell(
                text=numbers.rounded(speed.tokens_per_s_per_gpu, 4),
                sort=str(speed.tokens_per_s_per_gpu),
                exact=f"{speed.tokens_per_s_per_gpu} tok/s",
            ),
            Cell(
                text=numbers.percent(used),
                sort=str(used),
                exact=f"{memory.capacity_gib - memory.free_gib:.2f} / {memory.capacity_gib:.2f} GiB",
            ),
            parts.gpus_cell(cluster),
            parts.price_age(price),
            parts.band_cell(option.confidence),
        ),
    )
