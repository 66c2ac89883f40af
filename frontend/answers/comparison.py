"""Scenarios side by side: one table of figures, charts of what they cost and how fast they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from frontend import answer_words, numbers, words
from frontend.answers.parts import cluster_name
from frontend.answers.shown import Chart
from frontend.figures import canvas, stacks
from planner.engine.answers import Cluster
from planner.selectors.scenarios import Side

COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Rows of one figure each, a cell a scenario; the lowest cost of a kind is marked."""

    rows: tuple[tuple[str, tuple[str, ...]], ...]
    charts: tuple[Chart, ...]


def comparison(sides: Sequence[Side]) -> Comparison:
    """The table and the charts of these scenarios."""
    charts = (*_cost_chart(sides), *_speed_charts(sides)) if len(sides) > 1 else ()
    return Comparison(rows=tuple(_rows(sides)), charts=charts)


def _rows(sides: Sequence[Side]) -> list[tuple[str, tuple[str, ...]]]:
    figures_of: list[tuple[str, Callable[[Side], str]]] = [
        (_("Cost"), _cost),
        (_("Against the first"), lambda side: _against(side, sides[0])),
        (_("Cluster"), lambda side: cluster_name(Cluster(**side.cluster))),
        (_("Bought"), lambda side: words.choice(side.cluster["purchase_option"])),
        (_("GPUs billed"), lambda side: numbers.rounded(side.cluster["gpus_billed"])),
        (
            _("Price of a node"),
            lambda side: _("%(money)s /h") % {"money": numbers.money(float(side.price["usd_per_node_hour"]))},
        ),
        # Nobody waits for a job's answers one by one.
        (_("TTFT"), lambda side: numbers.NOTHING if side.job else _latency(side, "ttft_ms")),
        (_("TPOT"), lambda side: _latency(side, "tpot_ms")),
        (_("Duration"), _duration),
        (_("Limited by"), lambda side: answer_words.limit(side.limit)),
        (_("Confidence"), _confidence),
        (_("Priced on"), lambda side: side.priced_on),
        (_("Catalog"), lambda side: words.catalog_version(side.catalog_version)),
    ]
    rows = [(label, tuple(read(side) for side in sides)) for label, read in figures_of]
    # A row that no scenario has a figure for is left out: a comparison of serving has no duration.
    return [(label, cells) for label, cells in rows if any(cell != numbers.NOTHING for cell in cells)]


def _cost(side: Side) -> str:
    money = numbers.money(side.usd)
    return money if _ends(side) else _("%(money)s a month") % {"money": money}


def _ends(side: Side) -> bool:
    """Whether it is paid for as a whole: a run or a job, not a service month by month."""
    return "days" in side.speed or side.job is not None


def _duration(side: Side) -> str:
    """Of a training run or of an offline job."""
    return numbers.days(side.speed.get("days") if side.job is None else float(side.job["hours"]) / 24)


def _against(side: Side, first: Side) -> str:
    if side is first or not first.usd or _ends(side) != _ends(first):
        return numbers.NOTHING
    share = float(side.usd / first.usd) - 1
    return f"{'+' if share >= 0 else '−'}{numbers.percent(abs(share))}"


def _latency(side: Side, name: str) -> str:
    values: dict[str, Any] = side.speed.get(name) or {}
    return numbers.duration(values.get("p95"))


def _confidence(side: Side) -> str:
    band = side.confidence
    high = band["high"] if band["high"] is not None else float("inf")
    return f"{answer_words.CONFIDENCE.get(band['kind'], band['kind'])} {numbers.band(band['low'], high)}"


def _cost_chart(sides: Sequence[Side]) -> Iterator[Chart]:
    """None where some are paid for by the month and others as a whole: neither costs less."""
    if len({_ends(side) for side in sides}) > 1:
        return
    cheapest = min(sides, key=lambda side: side.usd)
    title = _("%(name)s costs least: %(money)s") % {"name": cheapest.name, "money": numbers.money(cheapest.usd)}
    yield _bars("comparison", title, _("Cost"), sides, [(float(side.usd), numbers.money(side.usd)) for side in sides])


def _speed_charts(sides: Sequence[Side]) -> Iterator[Chart]:
    """Waits of served models, days of runs and jobs; none where the two are mixed or a figure is missing."""
    waits = [0.0 if side.job else float((side.speed.get("ttft_ms") or {}).get("p95") or 0) for side in sides]
    days = [float(side.job["hours"]) / 24 if side.job else float(side.speed.get("days") or 0) for side in sides]
    if all(waits):
        quickest = sides[waits.index(min(waits))]
        words_of = {"name": quickest.name, "time": numbers.duration(min(waits))}
        title = _("%(name)s has the first token soonest: %(time)s (p95)") % words_of
        yield _bars("comparison-speed", title, _("TTFT"), sides, [(wait, numbers.duration(wait)) for wait in waits])
    elif all(days):
        quickest = sides[days.index(min(days))]
        title = _("%(name)s is done soonest: %(time)s") % {"name": quickest.name, "time": numbers.days(min(days))}
        yield _bars("comparison-speed", title, _("Duration"), sides, [(each, numbers.days(each)) for each in days])


def _bars(key: str, title: str, measure: str, sides: Sequence[Side], values: Sequence[tuple[float, str]]) -> Chart:
    """One bar a scenario, in the order compared."""
    bars = [
        stacks.Bar(label=f"{n}. {side.name}"[:28], parts={COST: value}, total=text)
        for n, (side, (value, text)) in enumerate(zip(sides, values, strict=True), start=1)
    ]
    figure = stacks.stack(bars, {COST: measure}, {COST: canvas.SERIES[0]}, height=60 + 44 * len(bars))
    return Chart(id=key, title=title, figure=figure)
