"""The options table of an inference answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers import parts, table_cells
from frontend.answers.shown import Cell, Column, Row
from frontend.query import canonical_query
from planner.engine.answers import InferenceOption
from planner.engine.workload import InferenceQuestion


def columns(at: str, *, is_job: bool = False) -> tuple[Column, ...]:
    """The columns, times at the percentile of the limits; of a job, what it costs and how long it takes."""
    percentile = words.choice(at)
    if is_job:
        cost = Column(key="month", label=_("$/job"), help=_("USD for the hours that the job takes"))
        pace = Column(
            key="ttft",
            label=_("Time"),
            help=_("Until the last request is answered"),
            second=f"TPOT {percentile}",
            second_help=_("Time per output token after the first"),
        )
    else:
        cost = Column(key="month", label=_("$/month"), help=_("USD for the cluster and 730 hours"))
        pace = Column(
            key="ttft",
            label=f"TTFT {percentile}",
            help=_("Time to first token"),
            second=f"TPOT {percentile}",
            second_help=_("Time per output token after the first"),
        )
    return (
        Column(key="cluster", label=_("Cluster"), is_text=True),
        table_cells.price_column(),
        cost,
        Column(
            key="output",
            label=_("$/M out"),
            help=_("USD per million output tokens"),
            second=_("$/M in"),
            second_help=_("USD per million input tokens"),
        ),
        pace,
        *table_cells.trust_columns(),
    )


def row(option: InferenceOption, given: Mapping[str, str], at: str, chosen_id: str) -> Row:
    """One option with the link that shows its working."""
    cluster, price = option.cluster, option.price
    subtitle = " · ".join(
        (
            parts.pools_text(option),
            words.choice(option.weight_format),
            parts.place(cluster),
            words.choice(cluster.purchase_option),
        )
    )
    return Row(
        id=option.id,
        title=parts.short_name(cluster),
        subtitle=subtitle,
        query=canonical_query(given, InferenceQuestion, option=option.id),
        is_chosen=option.id == chosen_id,
        is_front=option.on_pareto_front,
        cells=(
            table_cells.money_cell(price.usd_per_gpu_hour, second=price.usd_per_node_hour),
            table_cells.money_cell(price.usd_per_month, 0)
            if option.job is None
            else table_cells.money_cell(option.job.usd),
            _tokens_cell(option),
            _time_cell(option.speed.ttft_ms.get(at), option.speed.tpot_ms.get(at))
            if option.job is None
            else _hours_cell(option.job.hours, option.speed.tpot_ms.get(at)),
            table_cells.gpus_cell(cluster),
            table_cells.price_age(price),
            table_cells.band_cell(option.confidence),
        ),
    )


def _tokens_cell(option: InferenceOption) -> Cell:
    """$ a million output and input tokens; where a prompt's only output comes with its prefill, input carries all."""
    if option.usd_per_million_output:
        return table_cells.money_cell(option.usd_per_million_output, second=option.usd_per_million_input)
    paid = option.usd_per_million_input
    nothing = table_cells.not_applicable(_("One output token comes with the prefill."))
    return replace(nothing, sub=numbers.price(paid), sub_sort=str(paid))


def _hours_cell(hours: float, next_ms: float | None) -> Cell:
    return Cell(
        text=numbers.days(hours / 24),
        sort=str(hours),
        exact=f"{hours} h",
        sub=numbers.duration(next_ms or None),
        sub_sort=str(next_ms or ""),
    )


def _time_cell(first_ms: float | None, next_ms: float | None) -> Cell:
    return Cell(
        text=numbers.duration(first_ms),
        sort=str(first_ms or 0),
        exact=f"TTFT {first_ms} ms · TPOT {next_ms} ms" if next_ms else f"TTFT {first_ms} ms",
        sub=numbers.duration(next_ms or None),
        sub_sort=str(next_ms or ""),
    )
