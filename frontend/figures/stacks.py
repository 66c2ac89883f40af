"""Stacked bars: what a sum is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from frontend.figures.canvas import INK, PANEL, Figure, base_layout, note

LABEL_LETTERS = 27
"""In a line before a bar, where a screen is 360 pixels wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stacked bar: parts by name, and the words at its end."""

    label: str
    parts: Mapping[str, float]
    total: str


def wrapped(label: str) -> str:
    """A label in lines that a narrow screen has room for.

    >>> wrapped("1,024× Instinct MI355X 288GB<br>Oracle Cloud Infrastructure")
    '1,024× Instinct MI355X<br>288GB<br>Oracle Cloud Infrastructure'
    """
    return "<br>".join(part for line in label.split("<br>") for part in wrap(line, LABEL_LETTERS))


def stack(
    bars: Sequence[Bar], names: Mapping[str, str], colors: Mapping[str, str], *, height: int, unit: str = ""
) -> Figure:
    """Stacked horizontal bars: one trace a part, the total at each bar's end, first bar on top.

    ``unit`` is that of a part on hover; bars of one part are said as their totals are.
    """
    bars = [replace(bar, label=wrapped(bar.label)) for bar in bars]
    largest = max((sum(bar.parts.values()) for bar in bars), default=1.0) or 1.0
    layout = base_layout(height=height)
    layout |= {"barmode": "stack", "bargap": 0.35, "showlegend": False}
    layout["xaxis"] = {"visible": False, "range": [0, largest]}
    layout["yaxis"] = {"autorange": "reversed", "automargin": True, "ticks": "", "tickfont": {"color": INK, "size": 12}}
    layout["margin"] = {"l": 4, "r": 60 if any(bar.total for bar in bars) else 4, "t": 4, "b": 4}
    if not any(bar.label for bar in bars):
        layout["yaxis"] = {"visible": False, "autorange": "reversed"}
    value = "%{customdata}" if len(names) == 1 else f"%{{x:,.4~g}} {unit}".rstrip()
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": label,
            "y": [bar.label for bar in bars],
            "x": [bar.parts.get(key, 0.0) for bar in bars],
            "marker": {"color": colors[key], "line": {"color": PANEL, "width": 1}},
            "customdata": [bar.total for bar in bars],
            "hovertemplate": f"{label}: {value}<extra></extra>",
        }
        for key, label in names.items()
        if any(bar.parts.get(key) for bar in bars)
    ]
    layout["annotations"] = [
        note(bar.total, sum(bar.parts.values()), bar.label, xanchor="left", xshift=6) for bar in bars if bar.total
    ]
    return {"data": traces, "layout": layout}
