"""Lines: over load, over simulated time, and distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend.figures.canvas import (
    BAD,
    DASHES,
    MUTE,
    PANEL,
    SERIES,
    SYMBOLS,
    Axis,
    Figure,
    above,
    base_layout,
    framed,
    linear_axis,
    log_axis,
)


def curve(xs: Sequence[float], lines: Mapping[str, Sequence[float | None]], x: Axis, y: Axis) -> Figure:
    """Lines over a common log axis, labelled where they end; a gap where a value is unknown."""
    layout = base_layout(height=320)
    layout["xaxis"] = log_axis(x, xs)
    known = [value for values in lines.values() for value in values if value]
    layout["yaxis"] = log_axis(y, known or [1.0])
    layout["yaxis"]["title"] = {"text": ""}
    layout["annotations"] = [above(y.title)]
    traces = []
    for n, (name, values) in enumerate(lines.items()):
        color = SERIES[n % len(SERIES)]
        line = {"color": color, "width": 2, "dash": ("solid", "dash", "dot")[n % 3]}
        marker = {"color": color, "symbol": SYMBOLS[n % len(SYMBOLS)], "size": 7}
        traces.append(
            {"type": "scatter", "mode": "lines+markers", "name": name, "x": list(xs), "y": list(values),
             "line": line, "marker": marker, "hovertemplate": f"{name}: {y.shown}<br>{x.of('x')}<extra></extra>"}
        )  # fmt: skip
    layout["showlegend"] = len(lines) > 1
    layout["legend"] = {"orientation": "h", "y": -0.25, "x": 0}
    return {"data": traces, "layout": layout}


Values = Sequence[float | None]
TIME_UNITS = (
    (1.0, gettext_lazy("s"), 180.0),
    (60.0, gettext_lazy("min"), 180.0),
    (3600.0, gettext_lazy("h"), 96.0),
    (86_400.0, gettext_lazy("d"), float("inf")),
)
"""Seconds of a unit, its name, and up to how many of it an axis has."""
TIME_HOVER = ",.4~g"
"""A time on hover, as d3 writes it."""


def time_unit(duration_s: float) -> tuple[float, str]:
    """Seconds a unit and its name, for an axis of so many seconds.

    >>> time_unit(120.0), time_unit(3600.0), time_unit(7 * 86_400.0)
    ((1.0, 's'), (60.0, 'min'), (86400.0, 'd'))
    """
    return next((size, str(name)) for size, name, most in TIME_UNITS if duration_s / size <= most)


def time_title(unit: str) -> str:
    """What stands under an axis of simulated time."""
    return _("Simulated time, %(unit)s") % {"unit": unit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A line on an axis of its own, on the right."""

    name: str
    values: Values
    bin_s: float
    axis: Axis


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
    layout = framed(y, time_title(unit))
    shown = {name: _positive(values) if is_log else list(values) for name, values in lines.items()}
    known = [value for values in shown.values() for value in values if value is not None]
    layout["yaxis"] = (
        log_axis(y, known or [1.0]) | {"title": {"text": ""}}
        if is_log
        else linear_axis(y, max([*known, y.limit or 0.0], default=1.0))
    )
    layout["xaxis"]["range"] = [0, duration_s / size]
    # The time is said once for all lines, with its unit.
    layout["xaxis"] |= {"hoverformat": TIME_HOVER, "ticksuffix": f" {unit}", "showticksuffix": "last"}
    traces = [_line(n, name, times(values, bin_s, size), values, y) for n, (name, values) in enumerate(shown.items())]
    layout["showlegend"] = len(lines) + (beside is not None) > 1
    layout["hovermode"] = "x"
    layout["shapes"] = [_break_line(at_s / size) for at_s in breaks_s]
    if y.limit and (not is_log or layout["yaxis"]["range"][0] < math.log10(y.limit) < layout["yaxis"]["range"][1]):
        layout["shapes"].append(_limit_line(y.limit))
        layout["annotations"].append(_limit_words(y, is_log=is_log))
    if beside is not None:
        xs = times(beside.values, beside.bin_s, size)
        trace = _line(len(traces), beside.name, xs, beside.values, beside.axis)
        traces.append(trace | {"yaxis": "y2"})
        most = max((value for value in beside.values if value is not None), default=1.0)
        layout["yaxis2"] = linear_axis(beside.axis, most) | {"overlaying": "y", "side": "right", "showgrid": False}
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


def times(values: Sequence[Any], bin_s: float, size: float) -> list[float]:
    """The middles of time bins, in the axis' unit."""
    return [(place + 0.5) * bin_s / size for place in range(len(values))]


def _line(n: int, name: str, xs: Sequence[float], values: Values, axis: Axis) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs,
        "y": list(values),
        "line": {"color": SERIES[n % len(SERIES)], "width": 2, "dash": DASHES[n % len(DASHES)]},
        "hovertemplate": f"{name}: {axis.shown}<extra></extra>",
    }


def _break_line(x: float) -> Figure:
    line = {"color": BAD, "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _limit_line(y: float) -> Figure:
    line = {"color": BAD, "width": 1.5, "dash": "dash"}
    return {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _limit_words(axis: Axis, *, is_log: bool) -> Figure:
    where = {"xref": "paper", "xanchor": "right", "yanchor": "bottom", "showarrow": False, "bgcolor": PANEL}
    at = math.log10(axis.limit or 1.0) if is_log else axis.limit
    return {"text": axis.limit_label, "x": 1, "y": at, "font": {"color": BAD, "size": 12}, **where}


def distribution(lines: Mapping[str, tuple[Values, Values]], x: Axis, share: Axis) -> Figure:
    """Cumulative shares on a log axis: one line a quantity, as (values, shares)."""
    layout = framed(share, "")
    known = [value for values, _shares in lines.values() for value in values if value]
    layout["xaxis"] = log_axis(x, known or [1.0])
    layout["yaxis"] = linear_axis(share, 1.0)
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
                "hovertemplate": f"{name}: %{{x:,.4~g}} ms<extra>%{{y:{share.hover}}}</extra>",
            }
        )
    layout["showlegend"] = len(lines) > 1
    return {"data": traces, "layout": layout}


def _positive(values: Values) -> list[float | None]:
    return [value if value is not None and value > 0 else None for value in values]
