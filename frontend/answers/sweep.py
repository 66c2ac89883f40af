"""The result of a load sweep as charts: what a month and a token cost, against load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.answers import parts
from frontend.answers.shown import Cell, Chart, Column
from frontend.figures import canvas, curves

Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Charts over the loads tried, and their table twin."""

    charts: tuple[Chart, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def present_sweep(result: Mapping[str, Any], statistic: str) -> Sweep | None:
    """Charts and table of a sweep's points, times at ``statistic``; ``None`` where there are no points."""
    points: list[Point] = [point for point in result.get("points", ()) if point.get("mean_requests_s")]
    if not points:
        return None
    return Sweep(
        charts=_charts(points, statistic),
        columns=_columns(statistic),
        rows=tuple(_row(point, statistic) for point in points),
    )


def _best(point: Point, key: str, statistic: str = "") -> float | None:
    """A figure of a point's best option; unknown where nothing fits there."""
    value = (point.get("best") or {}).get(key)
    if statistic and isinstance(value, Mapping):
        value = value.get(statistic)
    return None if value is None else float(value)


def _charts(points: Sequence[Point], statistic: str) -> tuple[Chart, ...]:
    loads = [float(point["mean_requests_s"]) for point in points]
    x = canvas.Axis(title=_("Mean load, requests/s, log scale"), tick=numbers.rounded)
    month = canvas.Axis(title=_("USD a month, log scale"), tick=lambda value: "$" + numbers.compact_money(value))
    token = canvas.Axis(
        title=_("USD per million output tokens, log scale"), tick=lambda value: "$" + numbers.rounded(value)
    )
    wait = canvas.Axis(title=_("TTFT %(at)s, log scale") % {"at": words.choice(statistic)}, tick=numbers.duration)

    def line(key: str, at: str = "") -> dict[str, list[float | None]]:
        return {_("Cheapest option"): [_best(point, key, at) for point in points]}

    by_token = line("usd_per_million_output")
    # Where the only output token comes with the prefill, no load has a price of one.
    has_price = any(value is not None for values in by_token.values() for value in values)
    return (
        Chart(
            id="sweep-month", title=_month_finding(points), figure=curves.curve(loads, line("usd_per_month"), x, month)
        ),
        *(
            (Chart(id="sweep-token", title=_token_finding(points), figure=curves.curve(loads, by_token, x, token)),)
            if has_price
            else ()
        ),
        Chart(
            id="sweep-wait",
            title=_("Wait for the first token, by load"),
            figure=curves.curve(loads, line("ttft_ms", statistic), x, wait),
        ),
    )


def _ends(points: Sequence[Point], key: str) -> dict[str, str] | None:
    known = [point for point in points if _best(point, key) is not None]
    if len(known) < 2:
        return None
    first, last = known[0], known[-1]
    return {
        "first": numbers.money(_best(first, key)),
        "low": numbers.rounded(float(first["mean_requests_s"])),
        "last": numbers.money(_best(last, key)),
        "high": numbers.rounded(float(last["mean_requests_s"])),
    }


def _month_finding(points: Sequence[Point]) -> str:
    ends = _ends(points, "usd_per_month")
    if ends is None:
        return _("A month's bill, by load")
    return _("A month costs %(first)s at %(low)s requests/s and %(last)s at %(high)s") % ends


def _token_finding(points: Sequence[Point]) -> str:
    ends = _ends(points, "usd_per_million_output")
    if ends is None:
        return _("Cost of a million output tokens, by load")
    return _("A million output tokens cost %(first)s at %(low)s requests/s and %(last)s at %(high)s") % ends


def _columns(statistic: str) -> tuple[Column, ...]:
    at = words.choice(statistic)
    return (
        Column(key="load", label=_("Requests/s")),
        Column(key="cluster", label=_("Cheapest cluster"), is_text=True),
        Column(key="month", label=_("$/month")),
        Column(key="output", label=_("$/M out")),
        Column(key="ttft", label=f"TTFT {at}"),
        Column(key="tpot", label=f"TPOT {at}"),
        Column(key="used", label=_("Capacity used")),
    )


def _row(point: Point, statistic: str) -> tuple[Cell, ...]:
    load = float(point["mean_requests_s"])
    month, output = _best(point, "usd_per_month"), _best(point, "usd_per_million_output")
    ttft, tpot = _best(point, "ttft_ms", statistic), _best(point, "tpot_ms", statistic)
    used = _best(point, "utilization")
    return (
        Cell(text=numbers.rounded(load), sort=str(load)),
        Cell(text=_cluster(point), sort=_cluster(point)),
        Cell(text=numbers.fixed(month), sort=_sort(month)),
        Cell(text=numbers.fixed(output, 2), sort=_sort(output)),
        Cell(text=numbers.duration(ttft), sort=_sort(ttft)),
        Cell(text=numbers.duration(tpot), sort=_sort(tpot)),
        Cell(text=numbers.percent(used), sort=_sort(used)),
    )


def _sort(value: float | None) -> str:
    return "" if value is None else str(value)


def _cluster(point: Point) -> str:
    best = point.get("best")
    if not best:
        return str(point.get("reason") or _("Nothing fits"))
    nodes = ngettext("%(n)s node", "%(n)s nodes", best["nodes"]) % {"n": numbers.fixed(best["nodes"])}
    gpus = f"{numbers.count(float(best['gpus_billed']))}× {parts.without_remark(best['accelerator_name'])}"
    return f"{gpus} ({nodes}), {parts.place_of(best['provider'], best['region'], best.get('country', ''))}"
