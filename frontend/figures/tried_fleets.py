"""What a search tried, against what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from frontend.figures.canvas import (
    INK,
    SERIES,
    SYMBOLS,
    Axis,
    Figure,
    framed,
    linear_axis,
    linear_ticks,
    log_axis,
    ring,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One run of a search on a chart against its cost."""

    cost: float
    value: float
    label: str
    hover: str
    holds: bool
    is_chosen: bool
    group: str


NEAR: Final = 0.002
"""Values that differ by less than this share lie on one height: ticks between them would read alike."""


def against_cost(tried: Sequence[Tried], cost: Axis, y: Axis) -> Figure:
    """What money buys: a trace a group, filled where the limits hold, the chosen ringed."""
    layout = framed(y, "")
    values = [each.value for each in tried]
    low, high = min(values, default=0.0), max(values, default=1.0)
    pad = 0.08 * (high - low) if high - low > NEAR * high else 0.08 * (high or 1.0)
    ticks = [at for at in linear_ticks(max(low - pad, 0.0), high + pad) if y.most is None or at <= y.most]
    layout["yaxis"] = linear_axis(y, high) | {"range": [low - pad, high + pad * 2.4]}
    layout["yaxis"] |= {"tickvals": ticks, "ticktext": [y.tick(each) for each in ticks]}
    layout["xaxis"] = log_axis(cost, [each.cost for each in tried if each.cost > 0] or [1.0])
    groups = list(dict.fromkeys(each.group for each in tried))
    traces = [_tried_trace(n, group, [each for each in tried if each.group == group]) for n, group in enumerate(groups)]
    chosen = [each for each in tried if each.is_chosen]
    traces.append(ring([each.cost for each in chosen], [each.value for each in chosen]))
    layout["showlegend"] = len(groups) > 1
    layout["dragmode"] = False
    return {"data": traces, "layout": layout}


def _tried_trace(n: int, group: str, members: Sequence[Tried]) -> Figure:
    symbol = SYMBOLS[n % len(SYMBOLS)]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": group,
        "x": [each.cost for each in members],
        "y": [each.value for each in members],
        # Above the ring of the chosen one: its words stand a line higher.
        "text": [each.label + ("<br> " if each.is_chosen and each.label else "") for each in members],
        "textposition": "top center",
        "textfont": {"size": 12, "color": INK},
        "customdata": [each.hover for each in members],
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
        "marker": {
            "color": SERIES[n % len(SERIES)],
            "symbol": [symbol if each.holds else f"{symbol}-open" for each in members],
            "size": 9,
            "line": {"width": 1.5, "color": SERIES[n % len(SERIES)]},
        },
    }
