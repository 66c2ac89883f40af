"""The result of a search for the smallest fleet: its sentence, SLO attainment against cost, and all that was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers.capacity_charts import capacity_charts
from frontend.answers.capacity_words import fleet_words, month_usd
from frontend.answers.shown import Cell, Chart, Column
from frontend.answers.simulation_words import as_number, hours, pace
from frontend.sentences import kept

CSV_COLUMNS = (
    *("replicas", "autoscaled", "scaling_target", "min_replicas", "max_replicas", "met", "cost_usd", "gpu_hours"),
    *("goodput_share", "goodput_requests_s", "ttft_ms", "tpot_ms", "duration_s", "dropped", "regions"),
    *("usd_per_hour", "usd_per_month", "scaling_metric"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityShown:
    """Everything the page shows of a finished search, beside the run it chose."""

    sentence: str
    detail: str
    charts: tuple[Chart, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    chosen: int
    """Which row is the chosen run's."""


def present_capacity(result: Mapping[str, Any]) -> CapacityShown | None:
    """The search of a result; None where it has none."""
    search = result.get("search")
    if not search:
        return None
    at = words.choice(search["percentile"])
    search, is_job = _with_metric(search, result), search.get("within_s") is not None
    return CapacityShown(
        sentence=_sentence(search),
        detail=_detail(search, at, result["duration_s"]),
        charts=capacity_charts(search, result["duration_s"]),
        columns=_columns(at, is_job=is_job),
        rows=tuple(_row(point, result["duration_s"], is_job=is_job) for point in search["tried"]),
        chosen=search["chosen"],
    )


def _with_metric(search: Mapping[str, Any], result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The search with what its targets are of; one stored by an older release doesn't say, its settings do."""
    metric = None if "regions" in result else result["settings"].get("scaling_metric")
    return {**search, "tried": [{"scaling_metric": metric, **point} for point in search["tried"]]}


def csv_of_search(result: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """All that was tried, by cost."""
    yield CSV_COLUMNS
    for point in result["search"]["tried"]:
        regions = "; ".join(f"{region['name']}: {region['replicas']}" for region in point.get("regions", ()))
        yield ["" if value is None else value for value in map((dict(point) | {"regions": regions}).get, CSV_COLUMNS)]


def _sentence(search: Mapping[str, Any]) -> str:
    chosen = search["tried"][search["chosen"]]
    money = {"cost": numbers.money(as_number(chosen["cost_usd"])), "share": numbers.percent(chosen["goodput_share"], 1)}
    if search.get("within_s") is not None:
        time = {"fleet": fleet_words(chosen), "time": hours(chosen["duration_s"]), **money}
        if not chosen["met"]:
            return _("No fleet tried is done in time; the closest, %(fleet)s, takes %(time)s") % time
        return _("The cheapest fleet that is done in time: %(fleet)s, %(time)s, %(cost)s") % time
    if not chosen["met"]:
        return _("No fleet tried holds the limits; the closest, %(fleet)s, keeps %(share)s of requests within them") % {
            "fleet": fleet_words(chosen),
            **money,
        }
    return _(
        "The cheapest fleet that holds the limits: %(fleet)s, %(cost)s for the time, %(share)s of requests within them"
    ) % {
        "fleet": fleet_words(chosen),
        **money,
    }


def _detail(search: Mapping[str, Any], at: str, duration_s: float) -> str:
    limits = [
        f"{name.upper()} {at} {numbers.duration(limit)}"
        for name, limit in search["limits_ms"].items()
        if limit is not None
    ]
    sized = [kept(search["sized_for"])] if "sized_for" in search else []
    if search.get("within_s") is not None:
        limits.append(_("done in %(time)s") % {"time": hours(search["within_s"])})
    said = [*sized, _("Limits: %(limits)s, every request answered.") % {"limits": ", ".join(limits)}]
    if search.get("within_s") is None and (rate := pace(search["tried"][search["chosen"]], duration_s)):
        said.append(_("At this pace: %(rate)s.") % {"rate": rate})
    if search["replicas"] is None and "most_replicas" in search:
        most = _("It ended at %(n)s replicas, the most to be tried: more may do, or none.")
        said.append(most % {"n": numbers.fixed(search["most_replicas"])})
    if fewest := _fewest(search):
        said.append(fewest % {"n": numbers.fixed(search["replicas"])})
    return " ".join(said)


def _fewest(search: Mapping[str, Any]) -> str:
    """Of fleets that don't scale, where that isn't what the sentence says."""
    if search["replicas"] is None:
        return ""
    if any(point["autoscaled"] for point in search["tried"]):
        return _("Without an autoscaler the fewest replicas that hold them are %(n)s.")
    if search["tried"][search["chosen"]]["replicas"] != search["replicas"]:
        return _("The fewest replicas that hold them are %(n)s.")
    return ""


def _columns(at: str, *, is_job: bool) -> tuple[Column, ...]:
    return (
        Column(key="fleet", label=_("Fleet"), is_text=True),
        *(() if is_job else (Column(key="month", label=_("Cost a month")),)),
        Column(key="cost", label=_("Cost for the time")),
        Column(key="within", label=_("Time") if is_job else _("Within the limits")),
        Column(key="goodput", label=_("Goodput/s")),
        Column(key="ttft", label=f"TTFT {at}"),
        Column(key="tpot", label=f"TPOT {at}"),
        Column(key="hours", label=_("GPU hours")),
        Column(key="holds", label=_("Holds"), is_text=True),
    )


def _row(point: Mapping[str, Any], duration_s: float, *, is_job: bool) -> tuple[Cell, ...]:
    cost, month = as_number(point["cost_usd"]), month_usd(point, duration_s)
    return (
        Cell(
            text=fleet_words(point), sort=f"{point['autoscaled']:d}-{point['replicas']:08d}-{point['scaling_target']}"
        ),
        *(() if is_job else (_cell(month, numbers.money(month)),)),
        _cell(cost, numbers.money(cost)),
        _cell(point["duration_s"], hours(point["duration_s"]))
        if is_job
        else _cell(point["goodput_share"], numbers.percent(point["goodput_share"], 1)),
        _cell(point["goodput_requests_s"], numbers.rounded(point["goodput_requests_s"])),
        _cell(point["ttft_ms"], numbers.duration(point["ttft_ms"])),
        _cell(point["tpot_ms"], numbers.duration(point["tpot_ms"])),
        _cell(point["gpu_hours"], numbers.rounded(point["gpu_hours"])),
        Cell(text=_("yes") if point["met"] else _("no"), sort=str(point["met"])),
    )


def _cell(value: float | None, text: str) -> Cell:
    return Cell(text=text, sort="" if value is None else str(value))
