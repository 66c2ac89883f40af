"""Figures of a simulated run: values over simulated time, and distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frontend.figures import LINE, SERIES, Axis, Figure, above, base_layout, log_axis

Values = Sequence[float | None]
DASHES = ("solid", "dash", "dot", "dashdot")
TIME_UNITS = ((1.0, "s", 180.0), (60.0, "min", 180.0), (3600.0, "h", 96.0), (86_400.0, "d", float("inf")))
"""Seconds of a unit, its name, and up to how many of it an axis has."""


def time_unit(duration_s: float) -> tuple[float, str]:
    """Seconds a unit and its name, for an axis of so many seconds.

    >>> time_unit(120.0), time_unit(3600.0), time_unit(7 * 86_400.0)
    ((1.0, 's'), (60.0, 'min'), (86400.0, 'd'))
    """
    return next((size, name) for size, name, most in TIME_UNITS if duration_s / size <= most)


def over_time(bin_s: float, duration_s: float, lines: Mapping[str, Values], y: Axis, *, is_log: bool) -> Figure:
    """Lines over simulated time, zoomed by dragging across; a gap where a value is unknown."""
    size, unit = time_unit(duration_s)
    layout = _framed(y, unit)
    longest = max((len(values) for values in lines.values()), default=0)
    xs = [(place + 0.5) * bin_s / size for place in range(longest)]
    shown = {name: _positive(values) if is_log else list(values) for name, values in lines.items()}
    known = [value for values in shown.values() for value in values if value is not None]
    layout["yaxis"] = (
        log_axis(y, known or [1.0]) | {"title": {"text": ""}} if is_log else _linear(max(known, default=1.0))
    )
    layout["xaxis"]["range"] = [0, duration_s / size]
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": xs[: len(values)],
            "y": values,
            "line": {"color": SERIES[n % len(SERIES)], "width": 2, "dash": DASHES[n % len(DASHES)]},
            "hovertemplate": f"{name}: %{{y:,.4~g}}<extra>%{{x:.4~g}} {unit}</extra>",
        }
        for n, (name, values) in enumerate(shown.items())
    ]
    layout["showlegend"] = len(lines) > 1
    return {"data": traces, "layout": layout}


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
