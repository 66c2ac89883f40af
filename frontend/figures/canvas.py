"""What every figure is drawn on: colours as light-theme values, axes, ticks and notes.

``layout.meta.tokens`` names the CSS custom property behind each colour, so that the page can redraw a
figure in its own theme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]
INK, MUTE, LINE, ACCENT, PANEL, BAD = "#16191c", "#566067", "#dfe2e3", "#0f5c6e", "#ffffff", "#a3261b"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6a00")
REST = "#8a9298"
DASHES = ("solid", "dash", "dot", "dashdot")
HEAT = ("#d6ebf3", "#3f9dbf", "#05384a")
"""From little to much."""
TOKENS = {
    INK: "--ink",
    MUTE: "--mute",
    LINE: "--line",
    ACCENT: "--accent",
    PANEL: "--panel",
    BAD: "--bad",
    REST: "--series-rest",
    **{color: f"--heat-{n}" for n, color in enumerate(HEAT, start=1)},
    **{color: f"--series-{n}" for n, color in enumerate(SERIES, start=1)},
}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
MOST_TICKS = 6
TICK_STEPS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its title with the unit, how a tick reads, and a limit to mark with its words."""

    title: str
    tick: Callable[[float], str]
    limit: float | None = None
    limit_label: str = ""
    at: Sequence[float] = ()
    """Where its ticks stand; round values where none are named."""
    hover: str = ",.4~g"
    """How a value reads on hover, in d3's terms."""
    unit: str = ""
    """Of a value on hover, where ``hover`` doesn't write it."""
    most: float | None = None
    """What a value can't pass: no ticks beyond, as of shares."""
    is_count: bool = False
    """Of things that come whole: no ticks between."""

    @property
    def shown(self) -> str:
        """A value on hover, with its unit, as a template for y."""
        return self.of("y")

    def of(self, name: str) -> str:
        """The same for another of a point's values."""
        return f"%{{{name}:{self.hover}}}" + (f" {self.unit}" if self.unit else "")


def ticks(low: float, high: float) -> list[float]:
    """Round values between two bounds of a log axis: steps of a decade, or even ones where a decade is too coarse.

    >>> ticks(90, 1200)
    [100, 200, 500, 1000]
    >>> [round(tick, 6) for tick in ticks(0.6, 1.4)]
    [0.6, 0.8, 1.0, 1.2, 1.4]
    """
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    for steps in TICK_STEPS:
        found = [step * 10**decade for decade in decades for step in steps if low <= step * 10**decade <= high]
        if len(found) >= 4:
            return found[:: math.ceil(len(found) / MOST_TICKS)]
    unit = 10 ** math.floor(math.log10(max(high - low, low * 1e-6)))
    step = next((size * unit for size in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (size * unit) <= 6), unit)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)] or [low, high]


def base_layout(*, height: int) -> Figure:
    return {
        "height": height,
        "autosize": True,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13, "color": MUTE},
        "margin": {"l": 54, "r": 12, "t": 32, "b": 44},
        "hoverlabel": {"align": "left", "bgcolor": PANEL, "bordercolor": LINE, "font": {"color": INK, "size": 13}},
        "dragmode": False,
        "meta": {"tokens": TOKENS},
    }


def log_axis(axis: Axis, values: Sequence[float]) -> Figure:
    # The limit is part of the picture only where it is near: far off, it would squeeze the points together.
    near = [axis.limit] if axis.limit and values and axis.limit <= 3 * max(values) else []
    low, high = min([*values, *near], default=1.0), max([*values, *near], default=10.0)
    pad = max(0.06, 0.11 * math.log10(high / low))
    start, end = math.log10(low) - pad, math.log10(high) + pad
    at = list(axis.at[:: max(1, math.ceil(len(axis.at) / MOST_TICKS))]) or ticks(10**start, 10**end)
    return {
        "type": "log",
        "range": [start, end],
        "tickvals": at,
        "ticktext": [axis.tick(value) for value in at],
        "tickangle": 0,
        "title": {"text": axis.title, "font": {"size": 13}, "standoff": 8},
        "gridcolor": LINE,
        "linecolor": LINE,
        "zeroline": False,
        "fixedrange": True,
    }


def note(text: str, x: Any, y: Any, **more: Any) -> Figure:
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"color": INK, "size": 12}, **more}


def above(title: str) -> Figure:
    """The y axis' title above the axis: turned text is slow to read and takes width."""
    where = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "xshift": -50, "yshift": 8}
    return note(title, 0, 1, **where) | {"font": {"color": MUTE, "size": 13}}


def ring(xs: Sequence[float], ys: Sequence[float]) -> Figure:
    """What marks chosen points, drawn around those of another trace."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(xs),
        "y": list(ys),
        "marker": {"symbol": "circle-open", "size": 22, "color": ACCENT, "line": {"width": 3, "color": ACCENT}},
        "hoverinfo": "skip",
        "showlegend": False,
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


def framed(y: Axis, title: str) -> Figure:
    """A frame with ``title`` under its x axis and that of ``y`` above."""
    layout = base_layout(height=320)
    layout["xaxis"] = {
        "title": {"text": title, "font": {"size": 13}, "standoff": 4},
        "gridcolor": LINE,
        "linecolor": LINE,
        "zeroline": False,
    }
    layout["annotations"] = [above(y.title)]
    layout["legend"] = {"orientation": "h", "y": -0.2, "x": 0}
    layout["dragmode"] = "zoom"
    return layout


def linear_axis(axis: Axis, largest: float) -> dict[str, Any]:
    """From nothing to a little above ``largest``, its ticks as ``axis`` reads them."""
    high = (largest or 1.0) * 1.05
    at = [value for value in linear_ticks(0.0, high) if not axis.is_count or value == int(value)]
    return {
        "range": [0, high],
        "tickvals": at,
        "ticktext": [axis.tick(value) for value in at],
        "gridcolor": LINE,
        "linecolor": LINE,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
    }
