"""A simulated run as a map of its replicas, and what happened in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from frontend.figures.canvas import HEAT, LINE, PANEL, SERIES, SYMBOLS, Axis, Figure, framed
from frontend.figures.curves import TIME_HOVER, Values, time_title, time_unit, times

FEW_ROWS = 24
"""Of a heat map: so many have room for a line between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a time: its kind in words, and all of it, the time too."""

    at_s: float
    kind: str
    words: str
    weight: float = 0.0
    """Requests that it cost: drawn larger."""


def heat_map(bin_s: float, duration_s: float, columns: Sequence[Values], rows: Axis, value: Axis) -> Figure:
    """Replicas by row, time across: the darker, the more; ``columns`` are the rows' values at each time.

    ``value`` says how they read on hover.
    """
    size, unit = time_unit(duration_s)
    layout = framed(rows, time_title(unit))
    count = max((len(column) for column in columns), default=1)
    layout["xaxis"] |= {"range": [0, duration_s / size], "showgrid": False}
    layout["yaxis"] = {
        "range": [-0.5, count - 0.5],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
    }
    if count <= 12:
        layout["yaxis"]["dtick"] = 1
    highest = max((each or 0.0 for column in columns for each in column), default=0.0)
    trace = {
        "type": "heatmap",
        "x": times(columns, bin_s, size),
        "y": list(range(count)),
        "z": [[column[row] if row < len(column) else None for column in columns] for row in range(count)],
        # Without any gap the image would be scaled by an inline style, which the page's policy refuses.
        "ygap": 1 if count <= FEW_ROWS else 0.01,
        "zmin": 0,
        "zmax": highest or 1.0,
        "colorscale": [[0, PANEL], [0.02, HEAT[0]], [0.5, HEAT[1]], [1, HEAT[2]]],
        # Its own scale would be filled by an inline style: the legend beside the chart says what the colours mean.
        "showscale": False,
        "hovertemplate": f"{rows.title} %{{y}}: {value.of('z')}<extra>%{{x:{TIME_HOVER}}} {unit}</extra>",
    }
    return {"data": [trace], "layout": layout}


def events(duration_s: float, happened: Sequence[Event], kinds: Sequence[str]) -> Figure:
    """What happened when: a row for each kind, larger where more requests were lost."""
    size, unit = time_unit(duration_s)
    layout = framed(Axis(title="", tick=str), time_title(unit))
    layout["annotations"] = []
    layout["xaxis"]["range"] = [-0.01 * duration_s / size, 1.01 * duration_s / size]
    layout["yaxis"] = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(kinds)[::-1],
        "range": [-0.6, len(kinds) - 0.4],
        "gridcolor": LINE,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
    }
    layout["showlegend"] = False
    traces = []
    for n, kind in enumerate(kinds):
        own = [event for event in happened if event.kind == kind]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": kind,
                "x": [event.at_s / size for event in own],
                "y": [kind] * len(own),
                "customdata": [event.words for event in own],
                "hovertemplate": "%{customdata}<extra></extra>",
                "marker": {
                    "color": SERIES[n % len(SERIES)],
                    "symbol": SYMBOLS[n % len(SYMBOLS)],
                    "size": [min(9 + 3 * math.log10(1 + event.weight), 22) for event in own],
                    "line": {"color": PANEL, "width": 1},
                },
            }
        )
    return {"data": traces, "layout": layout}
