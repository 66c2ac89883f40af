"""The options table of a training answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers import parts, table_cells
from frontend.answers.shown import Cell, Column, Row
from frontend.query import canonical_query
from planner.engine.training_answers import TrainingOption
from planner.engine.training_question import TrainingQuestion

DEAR = 1000
"""USD."""


def columns() -> tuple[Column, ...]:
    """The columns."""
    return (
        Column(key="cluster", label=_("Cluster"), is_text=True),
        table_cells.price_column(),
        Column(
            key="total",
            label=_("$ for the run"),
            help=_("USD for the whole run"),
            second=_("$/M tokens"),
            second_help=_("USD per million training tokens"),
        ),
        Column(
            key="days",
            label=_("Time"),
            help=_("Calendar time, goodput included"),
            second=_("GPU-hours"),
            second_help=_("Hours of all GPUs used"),
        ),
        Column(
            key="mfu",
            label="MFU",
            help=_("Model FLOP/s over the dense peak"),
            second=_("tok/s·GPU"),
            second_help=_("Training tokens per second and GPU"),
        ),
        *table_cells.trust_columns(_("Memory"), _("Share of one GPU's memory in use")),
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
            table_cells.money_cell(price.usd_per_gpu_hour, second=price.usd_per_node_hour),
            # Of little money the cents tell runs apart.
            table_cells.money_cell(
                option.usd_total, 0 if option.usd_total >= DEAR else 2, second=option.usd_per_million_tokens
            ),
            Cell(
                text=numbers.days(speed.days),
                sort=str(speed.days),
                exact=f"{speed.days} d · {speed.gpu_hours} GPU-h",
                sub=numbers.rounded(speed.gpu_hours),
                sub_sort=str(speed.gpu_hours),
            ),
            Cell(
                text=numbers.percent(speed.mfu, 1),
                sort=str(speed.mfu),
                exact=f"{speed.mfu:.4f} · {speed.tokens_per_s_per_gpu} tok/s",
                sub=numbers.rounded(speed.tokens_per_s_per_gpu, 4),
                sub_sort=str(speed.tokens_per_s_per_gpu),
            ),
            replace(table_cells.gpus_cell(cluster), sub=numbers.percent(used), sub_sort=str(used)),
            table_cells.price_age(price),
            table_cells.band_cell(option.confidence),
        ),
    )
