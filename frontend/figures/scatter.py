"""Options as points: cost against latency, throughput over size, predicted against measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from frontend.figures.canvas import (
    BAD,
    MUTE,
    PANEL,
    REST,
    SERIES,
    SYMBOLS,
    Axis,
    Figure,
    above,
    base_layout,
    log_axis,
    note,
    ring,
)

RING_RADIUS = 8
LETTER_WIDTH, LABEL_HEIGHT, MOST_LABELS = 0.018, 0.065, 5
"""Of a name in a chart as wide as half a laptop's screen, as shares of its axes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One option in a trade-off chart."""

    id: str
    group: str
    label: str
    x: float
    y: float
    hover: str
    is_front: bool = False


def tradeoff(points: Sequence[Point], x: Axis, y: Axis, chosen_id: str, rest_name: str) -> Figure:
    """Cost against latency on log axes: one trace a group, the Pareto front as a line, the chosen ringed."""
    groups = _groups(points)
    front = sorted((point for point in points if point.is_front), key=lambda point: point.x)
    chosen = [point for point in points if point.id == chosen_id]
    traces = [_front_line(front)]
    for n, (name, members) in enumerate(groups):
        is_rest = n >= len(SERIES)
        traces.append(_group_trace(rest_name if is_rest else name, members, n))
    traces.append(_ring(chosen))
    layout = base_layout(height=360)
    layout["xaxis"] = log_axis(x, [point.x for point in points])
    layout["yaxis"] = log_axis(y, [point.y for point in points])
    layout["yaxis"]["title"] = {"text": ""}
    layout["annotations"] = _labels(front, chosen, layout["xaxis"]["range"], layout["yaxis"]["range"])
    layout["showlegend"] = False
    layout["annotations"].append(above(y.title))
    if x.limit and layout["xaxis"]["range"][0] < math.log10(x.limit) < layout["xaxis"]["range"][1]:
        layout["shapes"] = [_limit_line(x.limit)]
        layout["annotations"].append(_limit_label(x))
    return {"data": traces, "layout": layout}


def scaling(points: Sequence[Point], x: Axis, y: Axis, chosen_id: str, name: str, ideal: str) -> Figure:
    """Throughput over size on log axes, and what it were at the smallest size's pace; labels are efficiencies."""
    first, last = points[0], points[-1]
    reach = first.y * last.x / first.x
    perfect: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": ideal,
        "x": [first.x, last.x],
        "y": [first.y, reach],
        "line": {"color": MUTE, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
    }
    chosen = [point for point in points if point.id == chosen_id]
    layout = base_layout(height=300)
    layout["xaxis"] = log_axis(x, [point.x for point in points])
    layout["yaxis"] = log_axis(y, [*(point.y for point in points), reach])
    layout["yaxis"]["title"] = {"text": ""}
    layout["showlegend"] = False
    labels = _labels(points[1:], chosen, layout["xaxis"]["range"], layout["yaxis"]["range"])
    # The line rises: what stands left of a point is clear of it above.
    layout["annotations"] = [note | {"yshift": abs(note["yshift"])} for note in labels]
    layout["annotations"].append(above(y.title))
    return {"data": [perfect, _path(points, 0), _group_trace(name, points, 0), _ring(chosen)], "layout": layout}


def paths(points: Sequence[Point], x: Axis, y: Axis, chosen_id: str) -> Figure:
    """One line a group through its points in their order; what is ``is_front`` stands out, a limit is marked."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.group, []).append(point)
    chosen = [point for point in points if point.id == chosen_id]
    traces: list[Figure] = []
    for n, (name, members) in enumerate(groups.items()):
        traces += [_path(members, n), _group_trace(name, members, n)]
    layout = base_layout(height=300)
    layout["xaxis"] = log_axis(x, [point.x for point in points])
    layout["yaxis"] = log_axis(y, [point.y for point in points])
    layout["yaxis"]["title"] = {"text": ""}
    layout["showlegend"] = False
    labels = _labels(chosen, chosen, layout["xaxis"]["range"], layout["yaxis"]["range"])
    # Lines run on either side of a point: what stands above is clear of them.
    layout["annotations"] = [label | {"yshift": abs(label["yshift"]) + RING_RADIUS} for label in labels]
    layout["annotations"].append(above(y.title))
    if x.limit and layout["xaxis"]["range"][0] < math.log10(x.limit) < layout["xaxis"]["range"][1]:
        layout["shapes"] = [_limit_line(x.limit)]
        layout["annotations"].append(_limit_label(x))
    return {"data": [*traces, _ring(chosen)], "layout": layout}


def _path(points: Sequence[Point], n: int) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [point.x for point in points],
        "y": [point.y for point in points],
        "line": {"color": SERIES[n % len(SERIES)], "width": 1.5},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def mark_front(points: Sequence[Point]) -> list[Point]:
    """The points with ``is_front`` set where no other is at least as low on both axes and lower on one."""
    marked: dict[str, Point] = {}
    lowest = math.inf
    for point in sorted(points, key=lambda point: (point.x, point.y)):
        marked[point.id] = replace(point, is_front=point.y < lowest)
        lowest = min(lowest, point.y)
    return [marked[point.id] for point in points]


def parity(points: Sequence[Point], x: Axis, y: Axis, groups: Sequence[str]) -> Figure:
    """Predicted against measured on equal log axes: one trace a group, the line of equals, and 20 % either side.

    ``groups`` are those of all figures that stand together, so that each looks the same in every one.
    """
    layout = base_layout(height=400)
    values = [value for point in points for value in (point.x, point.y)]
    layout["xaxis"], layout["yaxis"] = _decades(log_axis(x, values), x), _decades(log_axis(y, values), y)
    layout["yaxis"]["title"] = {"text": ""}
    layout["annotations"] = [above(y.title)]
    low, high = (10**end for end in layout["xaxis"]["range"])
    lines = [_straight(low, high, factor, "solid" if factor == 1 else "dot") for factor in (1.0, 1.2, 1 / 1.2)]
    members = {name: [point for point in points if point.group == name] for name in groups}
    traces = [_group_trace(name, members[name], n) for n, name in enumerate(groups) if members[name]]
    for trace in traces:
        trace["marker"] |= {"size": 7, "opacity": 0.6}
        del trace["ids"]
    layout["showlegend"] = False
    return {"data": [*lines, *traces], "layout": layout}


def _decades(drawn: Figure, axis: Axis) -> Figure:
    """The axis with powers of ten alone where it spans several: they need no turned labels."""
    low, high = drawn["range"]
    if high - low < 2.5:
        return drawn
    at = [10.0**exponent for exponent in range(math.ceil(low), math.floor(high) + 1)]
    return drawn | {"tickvals": at, "ticktext": [axis.tick(value) for value in at], "tickangle": 0}


def _straight(low: float, high: float, factor: float, dash: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [low, high],
        "y": [low * factor, high * factor],
        "line": {"color": MUTE, "width": 1, "dash": dash},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def legend(points: Sequence[Point], rest_name: str) -> list[tuple[str, int]]:
    """Names of the groups in a trade-off chart with their place in the series, for a legend beside it."""
    return [(name or rest_name, n) for n, (name, _members) in enumerate(_groups(points))]


def _groups(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Points by group, those on the front first, then the larger; the last holds what has no colour left."""
    members: dict[str, list[Point]] = {}
    for point in points:
        members.setdefault(point.group, []).append(point)
    ranked = sorted(members.items(), key=lambda item: (-any(p.is_front for p in item[1]), -len(item[1]), item[0]))
    named, rest = ranked[: len(SERIES)], [point for _name, group in ranked[len(SERIES) :] for point in group]
    return [*named, ("", rest)] if rest else named


def _group_trace(name: str, members: Sequence[Point], n: int) -> Figure:
    color = SERIES[n] if n < len(SERIES) else REST
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [point.x for point in members],
        "y": [point.y for point in members],
        "ids": [point.id for point in members],
        "customdata": [point.hover for point in members],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "color": color,
            "symbol": SYMBOLS[n] if n < len(SYMBOLS) else "circle-open",
            "size": [11 if point.is_front else 8 for point in members],
            "opacity": [1.0 if point.is_front else 0.55 for point in members],
            "line": {"color": PANEL, "width": 1},
        },
    }


def _front_line(front: Sequence[Point]) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [point.x for point in front],
        "y": [point.y for point in front],
        "line": {"color": MUTE, "width": 1.5, "shape": "hv", "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _ring(chosen: Sequence[Point]) -> Figure:
    return ring([point.x for point in chosen], [point.y for point in chosen])


def _labels(
    front: Sequence[Point], chosen: Sequence[Point], x_range: Sequence[float], y_range: Sequence[float]
) -> list[Figure]:
    """Names beside points, the chosen first, then the ends of the front, then what still has room."""
    taken: list[tuple[float, float, float]] = []
    notes: list[Figure] = []
    for point in dict.fromkeys([*chosen, *front[:1], *front[-1:], *front[1:-1]]):
        x, y = math.log10(point.x), math.log10(point.y)
        across, up = (x - x_range[0]) / (x_range[1] - x_range[0]), (y - y_range[0]) / (y_range[1] - y_range[0])
        # The front's lower left is empty by its nature; where that is taken or off the edge, above on the right.
        width = LETTER_WIDTH * len(point.label)
        sides = [("left", across + width / 2, up + 0.04, 10, 13)] if across < 1 - width else []
        if across > width:
            sides.insert(0, ("right", across - width / 2, up - 0.04, -10, -13))
        free = (side for side in sides if not any(_overlap(side[1], side[2], width, *other) for other in taken))
        side = next(free, None)
        if side is not None and len(notes) < MOST_LABELS:
            taken.append((side[1], side[2], width))
            notes.append(note(point.label, x, y, xanchor=side[0], xshift=side[3], yshift=side[4], yanchor="middle"))
    return notes


def _overlap(x: float, y: float, width: float, other_x: float, other_y: float, other_width: float) -> bool:
    return abs(x - other_x) < (width + other_width) / 2 and abs(y - other_y) < LABEL_HEIGHT


def _limit_line(value: float) -> Figure:
    line = {"color": BAD, "width": 1.5, "dash": "dash"}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": value, "x1": value, "y0": 0, "y1": 1, "line": line}


def _limit_label(axis: Axis) -> Figure:
    assert axis.limit
    words = note(axis.limit_label, math.log10(axis.limit), 1, yref="paper", xanchor="right", xshift=-4, yanchor="top")
    return words | {"font": {"color": BAD, "size": 12}}
