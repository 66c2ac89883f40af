"""The result of a search for the smallest fleet: its sentence, SLO attainment against cost, and all that was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.answers.shown import Cell, Chart, Column
from frontend.answers.simulation_words import as_number, hours, pace
from frontend.figures import canvas, tried_fleets
from frontend.sentences import kept

CSV_COLUMNS = (
    *("replicas", "autoscaled", "scaling_target", "min_replicas", "max_replicas", "met", "cost_usd", "gpu_hours"),
    *("goodput_share", "goodput_requests_s", "ttft_ms", "tpot_ms", "duration_s", "dropped", "regions"),
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
    return CapacityShown(
        sentence=_sentence(search),
        detail=_detail(search, at, result["duration_s"]),
        charts=(_attainment(search), _goodput(search)) if search.get("within_s") is None else (_times(search),),
        columns=_columns(at, is_job=search.get("within_s") is not None),
        rows=tuple(_row(point, is_job=search.get("within_s") is not None) for point in search["tried"]),
        chosen=search["chosen"],
    )


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
        time = {"fleet": _fleet(chosen), "time": hours(chosen["duration_s"]), **money}
        if not chosen["met"]:
            return _("No fleet tried is done in time; the closest, %(fleet)s, takes %(time)s") % time
        return _("The cheapest fleet that is done in time: %(fleet)s, %(time)s, %(cost)s") % time
    if not chosen["met"]:
        return _("No fleet tried holds the limits; the closest, %(fleet)s, keeps %(share)s of requests within them") % {
            "fleet": _fleet(chosen),
            **money,
        }
    return _(
        "The cheapest fleet that holds the limits: %(fleet)s, %(cost)s for the time, %(share)s of requests within them"
    ) % {
        "fleet": _fleet(chosen),
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
    if search["replicas"] is not None:
        fewest = _("Without an autoscaler the fewest replicas that hold them are %(n)s.")
        said.append(fewest % {"n": numbers.fixed(search["replicas"])})
    return " ".join(said)


def _fleet(point: Mapping[str, Any]) -> str:
    regions = point.get("regions")
    if regions:
        named = ", ".join(f"{region['name']}: {_size(region)}" for region in regions)
        return f"{_size(point)} ({named})"
    return _size(point)


def _size(point: Mapping[str, Any]) -> str:
    low, high = point["min_replicas"], point["max_replicas"]
    if low is None:
        return ngettext("%(n)s replica", "%(n)s replicas", point["replicas"]) % {"n": numbers.fixed(point["replicas"])}
    sizes = {"low": numbers.fixed(low), "high": numbers.fixed(high)}
    if point["scaling_target"] is None:
        return _("%(low)s to %(high)s replicas") % sizes
    return _("%(low)s to %(high)s replicas, target %(target)s") % {
        **sizes,
        "target": numbers.rounded(point["scaling_target"]),
    }


def _attainment(search: Mapping[str, Any]) -> Chart:
    return _against_cost(
        search,
        "capacity-attainment",
        _holding(search),
        "goodput_share",
        canvas.Axis(title=_("Share of requests within the limits"), tick=_share_tick(search)),
    )


def _holding(search: Mapping[str, Any]) -> str:
    """What the chart of attainment shows: from what bill on the limits hold."""
    holding = [as_number(point["cost_usd"]) or 0.0 for point in search["tried"] if point["met"]]
    if not holding:
        return _("No bill tried holds the limits")
    return _("The limits hold from %(cost)s on") % {"cost": numbers.money(min(holding))}


def _goodput(search: Mapping[str, Any]) -> Chart:
    best = max((point["goodput_requests_s"] or 0.0 for point in search["tried"]), default=0.0)
    return _against_cost(
        search,
        "capacity-goodput",
        _("Goodput: at most %(n)s requests/s within the limits") % {"n": numbers.rounded(best)},
        "goodput_requests_s",
        canvas.Axis(title=_("Goodput, requests/s"), tick=_rate),
    )


def _times(search: Mapping[str, Any]) -> Chart:
    """Of a job: how long each fleet takes."""
    title = _("Done in time, %(time)s, from %(cost)s on")
    holding = [as_number(point["cost_usd"]) or 0.0 for point in search["tried"] if point["met"]]
    if not holding:
        title = _("No fleet tried is done in %(time)s")
    values = {"time": hours(search["within_s"]), "cost": numbers.money(min(holding, default=None))}
    y = canvas.Axis(title=_("Hours until it is done"), tick=numbers.rounded)
    return _against_cost(search, "capacity-time", title % values, "duration_s", y, unit=3600.0)


def _share_tick(search: Mapping[str, Any]) -> Callable[[float], str]:
    """Shares as the axis tells them apart: where all fleets hold the limits, they lie within a percent."""
    shares = [point["goodput_share"] or 0.0 for point in search["tried"]]
    span = max(shares, default=1.0) - min(shares, default=0.0)
    places = 0 if span > 0.05 else 1 if span > 0.005 else 2
    return lambda value: numbers.percent(value, places)


def _rate(value: float) -> str:
    return numbers.rounded(value, 5)


def _against_cost(
    search: Mapping[str, Any], name: str, title: str, key: str, y: canvas.Axis, unit: float = 1.0
) -> Chart:
    tried = [
        tried_fleets.Tried(
            cost=as_number(point["cost_usd"]) or 0.0,
            value=(point[key] or 0.0) / unit,
            label="" if point["autoscaled"] else numbers.fixed(point["replicas"]),
            hover=_hover(point),
            holds=point["met"],
            is_chosen=place == search["chosen"],
            group=_("With the autoscaler") if point["autoscaled"] else _("Fixed size"),
        )
        for place, point in enumerate(search["tried"])
    ]
    cost = canvas.Axis(title=_("USD for the time"), tick=lambda value: "$" + numbers.compact_money(value))
    note = _("Numbers: replicas. Filled: holds the limits. Ringed: chosen.")
    return Chart(id=name, title=title, figure=tried_fleets.against_cost(tried, cost, y), note=note)


def _hover(point: Mapping[str, Any]) -> str:
    return "<br>".join(
        (
            _fleet(point),
            numbers.money(as_number(point["cost_usd"])),
            _("%(share)s within the limits") % {"share": numbers.percent(point["goodput_share"], 1)},
            f"TTFT {numbers.duration(point['ttft_ms'])}, TPOT {numbers.duration(point['tpot_ms'])}",
        )
    )


def _columns(at: str, *, is_job: bool) -> tuple[Column, ...]:
    return (
        Column(key="fleet", label=_("Fleet"), is_text=True),
        Column(key="cost", label=_("Cost")),
        Column(key="within", label=_("Time") if is_job else _("Within the limits")),
        Column(key="goodput", label=_("Goodput/s")),
        Column(key="ttft", label=f"TTFT {at}"),
        Column(key="tpot", label=f"TPOT {at}"),
        Column(key="hours", label=_("GPU hours")),
        Column(key="holds", label=_("Holds"), is_text=True),
    )


def _row(point: Mapping[str, Any], *, is_job: bool) -> tuple[Cell, ...]:
    cost = as_number(point["cost_usd"])
    return (
        Cell(text=_fleet(point), sort=f"{point['autoscaled']:d}-{point['replicas']:08d}-{point['scaling_target']}"),
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
