"""The result of a load sweep as charts: what a month and a token cost, against load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.answers import parts
from frontend.answers.shown import Cell, Chart, Column
from frontend.figures import canvas, curves

Point = Mapping[str, Any]
CSV_COLUMNS = ("load", "load_factor", "mean_requests_s", "peak_requests_s", "reason")
BEST_COLUMNS = (
    *("provider", "region", "country", "instance_type", "accelerator_name", "nodes", "gpus_used", "gpus_billed"),
    *("usd_per_month", "usd_per_million_output", "utilization"),
)


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
    is_job = any((point.get("best") or {}).get("job") for point in points)
    return Sweep(
        charts=_job_charts(points) if is_job else _charts(points, statistic),
        columns=_columns(statistic, is_job=is_job),
        rows=tuple(_row(point, statistic, is_job=is_job) for point in points),
    )


def csv_of_sweep(result: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """A row a load: what was asked, and the best option's figures at full precision."""
    statistics = ("mean", "p50", "p90", "p95", "p99")
    times = [f"{name}_{at}" for name in ("ttft_ms", "tpot_ms") for at in statistics]
    yield (*CSV_COLUMNS, *BEST_COLUMNS, *times, "job_hours", "job_usd")
    for point in result.get("points", ()):
        best = point.get("best") or {}
        job = best.get("job") or {}
        spread = [(best.get(name) or {}).get(at) for name in ("ttft_ms", "tpot_ms") for at in statistics]
        row = [*map(point.get, CSV_COLUMNS), *map(best.get, BEST_COLUMNS), *spread, job.get("hours"), job.get("usd")]
        yield ["" if value is None else value for value in row]


def _job(point: Point, key: str) -> float | None:
    job = (point.get("best") or {}).get("job")
    return None if not job else float(job[key])


def _job_charts(points: Sequence[Point]) -> tuple[Chart, ...]:
    """What jobs of more and more requests cost, and how long they take."""
    loads = [float(point["load"]) for point in points]
    x = canvas.Axis(title=_("Requests of the job, log scale"), tick=numbers.compact, unit=_("requests"))
    cost = canvas.Axis(
        title=_("USD for the job, log scale"), tick=lambda value: "$" + numbers.compact_money(value), unit="USD"
    )
    time = canvas.Axis(title=_("Hours until it is done, log scale"), tick=numbers.rounded, unit=_("h"))
    known = [point for point in points if _job(point, "usd") is not None]
    title = _("The job's cost, by its requests")
    if len(known) > 1:
        title = _("A job of %(few)s requests costs %(first)s, one of %(many)s %(last)s") % {
            "few": numbers.compact(float(known[0]["load"])),
            "first": numbers.money(_job(known[0], "usd")),
            "many": numbers.compact(float(known[-1]["load"])),
            "last": numbers.money(_job(known[-1], "usd")),
        }

    def line(key: str) -> dict[str, list[float | None]]:
        return {_("Cheapest option"): [_job(point, key) for point in points]}

    return (
        Chart(id="sweep-job", title=title, figure=curves.curve(loads, line("usd"), x, cost)),
        Chart(
            id="sweep-hours",
            title=_("Time until the job is done, by its requests"),
            figure=curves.curve(loads, line("hours"), x, time),
        ),
    )


def _best(point: Point, key: str, statistic: str = "") -> float | None:
    """A figure of a point's best option; unknown where nothing fits there."""
    value = (point.get("best") or {}).get(key)
    if statistic and isinstance(value, Mapping):
        value = value.get(statistic)
    return None if value is None else float(value)


def _charts(points: Sequence[Point], statistic: str) -> tuple[Chart, ...]:
    loads = [float(point["mean_requests_s"]) for point in points]
    x = canvas.Axis(title=_("Mean load, requests/s, log scale"), tick=numbers.rounded, unit=_("req/s"))
    month = canvas.Axis(
        title=_("USD a month, log scale"),
        tick=lambda value: "$" + numbers.compact_money(value),
        unit=_("USD a month"),
    )
    token = canvas.Axis(
        title=_("USD per million output tokens, log scale"),
        tick=lambda value: "$" + numbers.rounded(value),
        unit="USD",
    )
    wait = canvas.Axis(
        title=_("TTFT %(at)s, log scale") % {"at": words.choice(statistic)}, tick=numbers.duration, unit="ms"
    )

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


def _columns(statistic: str, *, is_job: bool) -> tuple[Column, ...]:
    at = words.choice(statistic)
    if is_job:
        return (
            Column(key="load", label=_("Requests")),
            Column(key="cluster", label=_("Cheapest cluster"), is_text=True),
            Column(key="job", label=_("$/job")),
            Column(key="output", label=_("$/M out")),
            Column(key="hours", label=_("Time")),
        )
    return (
        Column(key="load", label=_("Requests/s")),
        Column(key="cluster", label=_("Cheapest cluster"), is_text=True),
        Column(key="month", label=_("$/month")),
        Column(key="output", label=_("$/M out")),
        Column(key="ttft", label=f"TTFT {at}"),
        Column(key="tpot", label=f"TPOT {at}"),
        Column(key="used", label=_("Capacity used")),
    )


def _row(point: Point, statistic: str, *, is_job: bool) -> tuple[Cell, ...]:
    if is_job:
        usd, hours, token = _job(point, "usd"), _job(point, "hours"), _best(point, "usd_per_million_output")
        return (
            Cell(text=numbers.fixed(point["load"]), sort=str(point["load"])),
            Cell(text=_cluster(point), sort=_cluster(point)),
            Cell(text=numbers.fixed(usd, 2), sort=_sort(usd)),
            Cell(text=numbers.fixed(token, 2), sort=_sort(token)),
            Cell(text=numbers.days(None if hours is None else hours / 24), sort=_sort(hours)),
        )
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
