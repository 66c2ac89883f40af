"""Figures of a simulated run: values over simulated time, and distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.figures import (
    ACCENT,
    BAD,
    HEAT,
    INK,
    LINE,
    MOST_TICKS,
    MUTE,
    PANEL,
    SERIES,
    SYMBOLS,
    Axis,
    Figure,
    above,
    base_layout,
    log_axis,
)

Values = Sequence[float | None]
DASHES = ("solid", "dash", "dot", "dashdot")
TIME_UNITS = ((1.0, "s", 180.0), (60.0, "min", 180.0), (3600.0, "h", 96.0), (86_400.0, "d", float("inf")))
"""Seconds of a unit, its name, and up to how many of it an axis has."""


FEW_ROWS = 24
"""Of a heat map: so many have room for a line between them."""


def time_unit(duration_s: float) -> tuple[float, str]:
    """Seconds a unit and its name, for an axis of so many seconds.

    >>> time_unit(120.0), time_unit(3600.0), time_unit(7 * 86_400.0)
    ((1.0, 's'), (60.0, 'min'), (86400.0, 'd'))
    """
    return next((size, name) for size, name, most in TIME_UNITS if duration_s / size <= most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A line on an axis of its own, on the right."""

    name: str
    values: Values
    bin_s: float
    axis: Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a time: its kind in words, and all of it."""

    at_s: float
    kind: str
    words: str
    weight: float = 0.0
    """Requests that it cost: drawn larger."""


def over_time(
    bin_s: float,
    duration_s: float,
    lines: Mapping[str, Values],
    y: Axis,
    *,
    is_log: bool,
    beside: Beside | None = None,
    breaks_s: Sequence[float] = (),
) -> Figure:
    """Lines over simulated time, zoomed by dragging across; a gap where a value is unknown.

    The limit of ``y`` is a dashed line, and each of ``breaks_s`` a dotted one.
    """
    size, unit = time_unit(duration_s)
    layout = _framed(y, unit)
    shown = {name: _positive(values) if is_log else list(values) for name, values in lines.items()}
    known = [value for values in shown.values() for value in values if value is not None]
    layout["yaxis"] = (
        log_axis(y, known or [1.0]) | {"title": {"text": ""}}
        if is_log
        else _linear(max([*known, y.limit or 0.0], default=1.0))
    )
    layout["xaxis"]["range"] = [0, duration_s / size]
    traces = [
        _line(n, name, _times(values, bin_s, size), values, unit) for n, (name, values) in enumerate(shown.items())
    ]
    layout["showlegend"] = len(lines) + (beside is not None) > 1
    layout["hovermode"] = "x"
    layout["shapes"] = [_break_line(at_s / size) for at_s in breaks_s]
    if y.limit and (not is_log or layout["yaxis"]["range"][0] < math.log10(y.limit) < layout["yaxis"]["range"][1]):
        layout["shapes"].append(_limit_line(y.limit))
        layout["annotations"].append(_limit_words(y, is_log=is_log))
    if beside is not None:
        trace = _line(len(traces), beside.name, _times(beside.values, beside.bin_s, size), beside.values, unit)
        traces.append(trace | {"yaxis": "y2"})
        most = max((value for value in beside.values if value is not None), default=1.0)
        ticks = linear_ticks(0.0, most * 1.05)
        layout["yaxis2"] = _linear(most) | {"overlaying": "y", "side": "right", "showgrid": False, "tickmode": "array"}
        layout["yaxis2"] |= {"tickvals": ticks, "ticktext": [beside.axis.tick(each) for each in ticks]}
        layout["margin"] = layout["margin"] | {"r": 44}
        where = {"xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "bottom", "xshift": 40, "yshift": 8}
        layout["annotations"].append(
            {
                "text": beside.axis.title,
                "x": 1,
                "y": 1,
                "showarrow": False,
                "font": {"color": MUTE, "size": 13},
                **where,
            }
        )
    return {"data": traces, "layout": layout}


def heat_map(bin_s: float, duration_s: float, columns: Sequence[Values], rows: Axis) -> Figure:
    """Replicas by row, time across: the darker, the more; ``columns`` are the rows' values at each time."""
    size, unit = time_unit(duration_s)
    layout = _framed(rows, unit)
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
        "x": _times(columns, bin_s, size),
        "y": list(range(count)),
        "z": [[column[row] if row < len(column) else None for column in columns] for row in range(count)],
        # Without any gap the image would be scaled by an inline style, which the page's policy refuses.
        "ygap": 1 if count <= FEW_ROWS else 0.01,
        "zmin": 0,
        "zmax": highest or 1.0,
        "colorscale": [[0, PANEL], [0.02, HEAT[0]], [0.5, HEAT[1]], [1, HEAT[2]]],
        # Its own scale would be filled by an inline style: the legend beside the chart says what the colours mean.
        "showscale": False,
        "hovertemplate": f"%{{y}}: %{{z:,.4~g}}<extra>%{{x:.4~g}} {unit}</extra>",
    }
    return {"data": [trace], "layout": layout}


def events(duration_s: float, happened: Sequence[Event], kinds: Sequence[str]) -> Figure:
    """What happened when: a row for each kind, larger where more requests were lost."""
    size, unit = time_unit(duration_s)
    layout = _framed(Axis(title="", tick=str), unit)
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
                "hovertemplate": f"%{{customdata}}<extra>%{{x:.4~g}} {unit}</extra>",
                "marker": {
                    "color": SERIES[n % len(SERIES)],
                    "symbol": SYMBOLS[n % len(SYMBOLS)],
                    "size": [min(9 + 3 * math.log10(1 + event.weight), 22) for event in own],
                    "line": {"color": PANEL, "width": 1},
                },
            }
        )
    return {"data": traces, "layout": layout}


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


def against_cost(tried: Sequence[Tried], cost: Axis, y: Axis) -> Figure:
    """What money buys: a trace a group, filled where the limits hold, the chosen ringed."""
    layout = _framed(y, "")
    values = [each.value for each in tried]
    low, high = min(values, default=0.0), max(values, default=1.0)
    pad = 0.08 * ((high - low) or high or 1.0)
    ticks = linear_ticks(max(low - pad, 0.0), high + pad)
    layout["yaxis"] = _linear(high) | {"range": [low - pad, high + pad * 1.6]}
    layout["yaxis"] |= {"tickvals": ticks, "ticktext": [y.tick(each) for each in ticks]}
    layout["xaxis"] = log_axis(cost, [each.cost for each in tried if each.cost > 0] or [1.0])
    groups = list(dict.fromkeys(each.group for each in tried))
    traces = [_tried_trace(n, group, [each for each in tried if each.group == group]) for n, group in enumerate(groups)]
    chosen = [each for each in tried if each.is_chosen]
    ring = {"symbol": "circle-open", "size": 22, "color": ACCENT, "line": {"width": 3, "color": ACCENT}}
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [each.cost for each in chosen],
            "y": [each.value for each in chosen],
            "marker": ring,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    )
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
        "text": [each.label for each in members],
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


def linear_ticks(low: float, high: float) -> list[float]:
    """At most six round values between two bounds.

    >>> linear_ticks(0.62, 1.03)
    [0.7, 0.8, 0.9, 1.0]
    """
    if high <= low:
        return [low]
    unit = 10 ** math.floor(math.log10(high - low))
    step = next(size * unit for size in (0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / (size * unit) <= MOST_TICKS)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def _times(values: Sequence[Any], bin_s: float, size: float) -> list[float]:
    """The middles of time bins, in the axis' unit."""
    return [(place + 0.5) * bin_s / size for place in range(len(values))]


def _line(n: int, name: str, xs: Sequence[float], values: Values, unit: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs,
        "y": list(values),
        "line": {"color": SERIES[n % len(SERIES)], "width": 2, "dash": DASHES[n % len(DASHES)]},
        "hovertemplate": f"{name}: %{{y:,.4~g}}<extra>%{{x:.4~g}} {unit}</extra>",
    }


def _break_line(x: float) -> Figure:
    line = {"color": BAD, "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _limit_line(y: float) -> Figure:
    line = {"color": BAD, "width": 1.5, "dash": "dash"}
    return {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _limit_words(axis: Axis, *, is_log: bool) -> Figure:
    where = {"xref": "paper", "xanchor": "right", "yanchor": "bottom", "showarrow": False}
    at = math.log10(axis.limit or 1.0) if is_log else axis.limit
    return {"text": axis.limit_label, "x": 1, "y": at, "font": {"color": BAD, "size": 12}, **where}


def distribution(lines: Mapping[str, tuple[Values, Values]], x: Axis, share: Axis) -> Figure:
    """Cumulative shares on a log axis: one line a quantity, as (values, shares)."""
    layout = _framed(share, "")
    known = [value for values, _shares in lines.values() for value in values if value]
    layout["xaxis"] = log_axis(x, known or [1.0])
    layout["yaxis"] = _linear(1.0)
    traces = []
    for n, (name, (values, shares)) in enumerate(lines.items()):
        pairs = [(value, at) for value, at in zip(values, shares, strict=True) if value]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [value for value, _at in pairs],
                "y": [at for _value, at in pairs],
                "line": {"color": SERIES[n], "width": 2, "dash": DASHES[n]},
                "hovertemplate": f"{name}: %{{x:,.4~g}} ms<extra>%{{y:.1%}}</extra>",
            }
        )
    layout["showlegend"] = len(lines) > 1
    return {"data": traces, "layout": layout}


def _framed(y: Axis, unit: str) -> Figure:
    layout = base_layout(height=320)
    layout["xaxis"] = {
        "title": {"text": unit, "font": {"size": 13}, "standoff": 4},
        "gridcolor": LINE,
        "linecolor": LINE,
        "zeroline": False,
    }
    layout["annotations"] = [above(y.title)]
    layout["legend"] = {"orientation": "h", "y": -0.2, "x": 0}
    layout["dragmode"] = "zoom"
    return layout


def _linear(largest: float) -> dict[str, Any]:
    return {
        "range": [0, (largest or 1.0) * 1.05],
        "gridcolor": LINE,
        "linecolor": LINE,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
    }


def _positive(values: Values) -> list[float | None]:
    return [value if value is not None and value > 0 else None for value in values]
