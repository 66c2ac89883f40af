"""What fleets that a search tried do, against what they cost: a month; of a job, until it is done.

A fleet that is too small runs on until its backlog is gone, so that the bill of a run says little of what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers
from frontend.answers.capacity_words import fleet_words, month_usd
from frontend.answers.shown import Chart
from frontend.answers.simulation_words import as_number, hours
from frontend.figures import canvas, tried_fleets

Cost = Callable[[Mapping[str, Any]], float | None]


def capacity_charts(search: Mapping[str, Any], duration_s: float) -> tuple[Chart, ...]:
    """The charts of a search; ``duration_s`` is how long the chosen run took."""
    if search.get("within_s") is not None:
        return (_times(search),)

    def month(point: Mapping[str, Any]) -> float | None:
        return month_usd(point, duration_s)

    return (_attainment(search, month), _goodput(search, month))


def _attainment(search: Mapping[str, Any], month: Cost) -> Chart:
    return _against_cost(
        search,
        "capacity-attainment",
        _holding(search, month),
        "goodput_share",
        canvas.Axis(title=_("Share of requests within the limits"), tick=_share_tick(search), most=1.0),
        month,
    )


def _holding(search: Mapping[str, Any], month: Cost) -> str:
    """From what cost on the limits hold, and how many dearer fleets don't hold them all the same."""
    cheapest, dearer = _bounds(search, month)
    if cheapest is None:
        return _("No fleet tried holds the limits")
    values = {"cost": numbers.money(cheapest), "n": numbers.fixed(dearer)}
    if not dearer:
        return _("The limits hold from %(cost)s a month on") % values
    return (
        ngettext(
            "The limits hold from %(cost)s a month; %(n)s dearer fleet doesn't hold them",
            "The limits hold from %(cost)s a month; %(n)s dearer fleets don't hold them",
            dearer,
        )
        % values
    )


def _bounds(search: Mapping[str, Any], cost: Cost) -> tuple[float | None, int]:
    """What the cheapest fleet that does costs, and how many cost as much or more and don't."""
    costs = [(cost(point) or 0.0, point["met"]) for point in search["tried"]]
    cheapest = min((each for each, met in costs if met), default=None)
    if cheapest is None:
        return None, 0
    return cheapest, sum(not met and each >= cheapest for each, met in costs)


def _goodput(search: Mapping[str, Any], month: Cost) -> Chart:
    best = max((point["goodput_requests_s"] or 0.0 for point in search["tried"]), default=0.0)
    return _against_cost(
        search,
        "capacity-goodput",
        _("Goodput: at most %(n)s requests/s within the limits") % {"n": numbers.rounded(best)},
        "goodput_requests_s",
        canvas.Axis(title=_("Goodput, requests/s"), tick=_rate),
        month,
    )


def _times(search: Mapping[str, Any]) -> Chart:
    """Of a job: how long each fleet takes."""

    def bill(point: Mapping[str, Any]) -> float | None:
        return as_number(point["cost_usd"])

    cheapest, dearer = _bounds(search, bill)
    values = {
        "time": hours(search["within_s"]),
        "cost": numbers.money(cheapest),
        "n": numbers.fixed(dearer),
    }
    title = _("Done in time, %(time)s, from %(cost)s on")
    if cheapest is None:
        title = _("No fleet tried is done in %(time)s")
    elif dearer:
        title = ngettext(
            "Done in time, %(time)s, from %(cost)s; %(n)s dearer fleet is not",
            "Done in time, %(time)s, from %(cost)s; %(n)s dearer fleets are not",
            dearer,
        )
    y = canvas.Axis(title=_("Hours until it is done"), tick=numbers.rounded)
    return _against_cost(search, "capacity-time", title % values, "duration_s", y, bill, unit=3600.0)


def _share_tick(search: Mapping[str, Any]) -> Callable[[float], str]:
    """Shares as the axis tells them apart: where all fleets hold the limits, they lie within a percent."""
    shares = [point["goodput_share"] or 0.0 for point in search["tried"]]
    span = max(shares, default=1.0) - min(shares, default=0.0)
    places = 0 if span > 0.05 or span <= tried_fleets.NEAR else 1 if span > 0.005 else 2
    return lambda value: numbers.percent(value, places)


def _rate(value: float) -> str:
    return numbers.rounded(value, 5)


def _against_cost(
    search: Mapping[str, Any], name: str, title: str, key: str, y: canvas.Axis, cost: Cost, unit: float = 1.0
) -> Chart:
    is_job = search.get("within_s") is not None
    tried = [
        tried_fleets.Tried(
            cost=cost(point) or 0.0,
            value=(point[key] or 0.0) / unit,
            label="" if point["autoscaled"] else numbers.fixed(point["replicas"]),
            hover=_hover(point, cost(point), is_job=is_job),
            holds=point["met"],
            is_chosen=place == search["chosen"],
            group=_("With the autoscaler") if point["autoscaled"] else _("Fixed size"),
        )
        for place, point in enumerate(search["tried"])
    ]
    what = _("USD until it is done") if is_job else _("USD a month")
    axis = canvas.Axis(title=what, tick=lambda value: "$" + numbers.compact_money(value))
    note = _("Numbers: replicas. Filled: holds the limits. Ringed: chosen.")
    return Chart(id=name, title=title, figure=tried_fleets.against_cost(tried, axis, y), note=note)


def _hover(point: Mapping[str, Any], cost: float | None, *, is_job: bool) -> str:
    money = numbers.money(cost)
    paced = "" if point["tpot_ms"] is None else f", TPOT {numbers.duration(point['tpot_ms'])}"
    return "<br>".join(
        (
            fleet_words(point),
            money if is_job else _("%(money)s a month") % {"money": money},
            _("%(share)s within the limits") % {"share": numbers.percent(point["goodput_share"], 1)},
            f"TTFT {numbers.duration(point['ttft_ms'])}{paced}",
        )
    )
