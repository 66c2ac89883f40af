"""Figures are valid Plotly, and every colour in them has a theme's custom property."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from frontend.answers.inference import present_inference
from frontend.answers.sweep import present_sweep
from frontend.answers.training import present_training
from frontend.figures import canvas, scatter, stacks
from tests.factories import plan_factory, training_plan_factory

TOKENS_CSS = Path(__file__).resolve().parents[2] / "frontend" / "static" / "css" / "tokens.css"
SWEEP = {
    "points": [
        {
            "load_factor": 0.5,
            "mean_requests_s": 5.0,
            "best": {
                **{"provider": "aws", "region": "us-east-1", "accelerator_name": "H200", "nodes": 1},
                **{"gpus_billed": 8, "usd_per_month": "20000", "usd_per_million_output": "1.2", "utilization": 0.4},
                **{"ttft_ms": {"p95": 300.0}, "tpot_ms": {"p95": 30.0}},
            },
        },
        {"load_factor": 1.0, "mean_requests_s": 10.0, "best": None, "reason": "Nothing is large enough."},
    ]
}


@pytest.fixture
def all_figures(db: None) -> list[dict[str, Any]]:
    sweep = present_sweep(SWEEP, "p95")
    assert sweep is not None
    answers = (present_inference(plan_factory(30), {}, ""), present_training(training_plan_factory(30), {}, ""))
    return [chart.figure for charts in (*(a.charts for a in answers), sweep.charts) for chart in charts]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def test_plotly_accepts_every_figure(all_figures: list[dict[str, Any]]) -> None:
    assert len(all_figures) == 9
    for figure in all_figures:
        drawn = go.Figure(figure)
        assert len(drawn.data) >= 1
        assert drawn.layout.height > 0


def test_every_colour_is_a_token_and_the_light_theme_has_the_same_value(all_figures: list[dict[str, Any]]) -> None:
    css = TOKENS_CSS.read_text(encoding="utf-8")
    light = css[: css.index("}")]
    for color, name in canvas.TOKENS.items():
        assert f"{name}: {color};" in light
    for figure in all_figures:
        colors = {text for text in texts(figure["data"]) if re.fullmatch("#[0-9a-f]{6}", text)}
        assert colors <= set(canvas.TOKENS)


def test_the_chosen_option_is_ringed_and_clicks_carry_ids() -> None:
    points = [
        scatter.Point(id=f"o{n}", group="ab"[n % 2], label=f"o{n}", x=100.0 + n, y=1000.0 - n, is_front=n < 2, hover="")
        for n in range(6)
    ]
    axis = canvas.Axis(title="ms", tick=str)
    figure = scatter.tradeoff(points, axis, axis, "o3", "rest")
    ring = figure["data"][-1]
    assert (ring["x"], ring["y"]) == ([103.0], [997.0])
    assert sorted(id for trace in figure["data"][1:-1] for id in trace["ids"]) == [f"o{n}" for n in range(6)]
    assert figure["data"][0]["x"] == [100.0, 101.0]


def test_the_front_is_what_nothing_beats_on_both_axes() -> None:
    places = {"fast": (1.0, 9.0), "tie": (1.0, 9.5), "middle": (3.0, 5.0), "beaten": (4.0, 5.0), "cheap": (8.0, 2.0)}
    points = [scatter.Point(id=name, group="", label="", x=x, y=y, hover="") for name, (x, y) in places.items()]
    marked = scatter.mark_front(points)
    assert [point.id for point in marked] == list(places)
    assert {point.id for point in marked if point.is_front} == {"fast", "middle", "cheap"}


def test_more_groups_than_colours_share_the_last() -> None:
    points = [
        scatter.Point(id=str(n), group=f"g{n:02}", label="", x=10.0 + n, y=10.0, is_front=False, hover="")
        for n in range(12)
    ]
    names = scatter.legend(points, "Others")
    assert names == [*((f"g{n:02}", n) for n in range(7)), ("Others", 7)]
    axis = canvas.Axis(title="", tick=str)
    figure = scatter.tradeoff(points, axis, axis, "", "Others")
    assert sum(len(trace["x"]) for trace in figure["data"][1:-1]) == 12


@pytest.mark.parametrize("span", [(1.0, 1.02), (90.0, 1200.0), (0.001, 1e6), (250.0, 250.0)])
def test_ticks_lie_inside_and_are_few(span: tuple[float, float]) -> None:
    found = canvas.ticks(*span)
    assert 1 <= len(found) <= 10
    assert all(span[0] <= tick <= span[1] for tick in found)


def test_stacked_parts_keep_their_sum() -> None:
    bars = [stacks.Bar(label="a", parts={"x": 1.0, "y": 2.5}, total="3.5")]
    figure = stacks.stack(bars, {"x": "X", "y": "Y"}, {"x": canvas.SERIES[0], "y": canvas.SERIES[1]}, height=80)
    assert sum(trace["x"][0] for trace in figure["data"]) == 3.5


def test_hovering_over_bars_and_curves_says_units(all_figures: list[dict[str, Any]]) -> None:
    hovers = {
        trace["hovertemplate"]
        for figure in all_figures
        for trace in figure["data"]
        if "hovertemplate" in trace and "customdata" not in trace["hovertemplate"]
    }
    units = ("GiB", "USD", "USD a month", "ms", "req/s", "requests", "h")
    unsaid = {hover for hover in hovers if not any(f" {unit}<" in hover for unit in units)}
    assert unsaid == set()
    bars = [stacks.Bar(label="b", parts={"x": 2.5}, total="2.5 days")]
    (trace,) = stacks.stack(bars, {"x": "Duration"}, {"x": canvas.SERIES[0]}, height=80)["data"]
    assert (trace["customdata"], trace["hovertemplate"]) == (["2.5 days"], "Duration: %{customdata}<extra></extra>")
