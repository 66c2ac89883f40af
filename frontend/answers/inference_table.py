"""The options table of an inference answer."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers import parts
from frontend.answers.shown import Cell, Column, Row
from frontend.query import canonical_query
from planner.engine.answers import InferenceOption
from planner.engine.workload import InferenceQuestion


def columns(at: str) -> tuple[Column, ...]:
    """The columns, times at the percentile of the limits."""
    percentile = words.choice(at)
    return (
        Column(key="cluster", label=_("Cluster"), is_text=True),
        Column(key="gpu_hour", label=_("$/GPU·h"), help=_("USD per GPU and hour")),
        Column(key="node_hour", label=_("$/node·h"), help=_("USD per node and hour")),
        Column(key="month", label=_("$/month"), help=_("USD for the cluster and 730 hours")),
        Column(key="input", label=_("$/M in"), help=_("USD per million input tokens")),
        Column(key="output", label=_("$/M out"), help=_("USD per million output tokens")),
        Column(key="ttft", label=f"TTFT {percentile}", help=_("Time to first token")),
        Column(key="tpot", label=f"TPOT {percentile}", help=_("Time per output token after the first")),
        Column(key="gpus", label=_("GPUs used / billed")),
        Column(key="age", label=_("Price read"), help=_("How long ago the price was read")),
        Column(key="band", label=_("Band"), help=_("90 of 100 measured cases lie within it")),
    )


def row(option: InferenceOption, given: Mapping[str, str], at: str, chosen_id: str) -> Row:
    """One option with the link that shows its working."""
    cluster, price = option.cluster, option.price
    subtitle = " · ".join(
        (
            parts.layout_text(option.layout),
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
            parts.money_cell(price.usd_per_gpu_hour),
            parts.money_cell(price.usd_per_node_hour),
            parts.money_cell(price.usd_per_month, 0),
            parts.money_cell(option.usd_per_million_input),
            parts.money_cell(option.usd_per_million_output),
            _time_cell(option.speed.ttft_ms.get(at)),
            _time_cell(option.speed.tpot_ms.get(at)),
            parts.gpus_cell(cluster),
            parts.price_age(price),
            parts.band_cell(option.confidence),
        ),
    )


def _time_cell(value_ms: float | None) -> Cell:
    return Cell(text=numbers.duration(value_ms), sort=str(value_ms or 0), exact=f"{value_ms} ms")
