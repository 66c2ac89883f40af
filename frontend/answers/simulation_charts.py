"""Charts of a simulated run: latencies, replicas, queues, caches and cost over simulated time, and distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers
from frontend.answers.shown import Chart, ChartGroup, Part
from frontend.answers.simulated_incidents import events_chart, listed_of, marked_losses
from frontend.answers.simulation_csv import bill_so_far
from frontend.answers.simulation_words import PERCENTILES, as_number, comes_whole, has_cache
from frontend.figures import canvas, curves, run_events

GROUPS = {
    "main": ("run-ttft", "run-tpot", "run-replicas", "run-cost"),
    "load": ("run-load", "run-queue", "run-events", "run-ecdf"),
    "caches": ("run-kv", "run-heat-kv", "run-heat-waiting"),
}
"""Charts in view together."""
SHARE = ".1%"
"""A share on hover, as d3 writes it."""


def chart_groups(result: Mapping[str, Any]) -> Iterator[ChartGroup]:
    """The charts of a run, no more than four together."""
    drawn = {chart.id: chart for chart in simulation_charts(result)}
    titles = {
        "main": _("Latencies, replicas, cost"),
        "load": _("Load, queues, events, distribution"),
        "caches": _("KV caches and queues by replica") if has_cache(result) else _("Queues by replica"),
    }
    for key, names in GROUPS.items():
        yield ChartGroup(key=key, title=titles[key], charts=tuple(drawn[name] for name in names if name in drawn))


def simulation_charts(result: Mapping[str, Any]) -> Iterator[Chart]:
    timeline, span = result["timeline"], result["duration_s"]
    requests, queue = timeline["requests"], timeline["queue"]
    if comes_whole(result):
        yield _latency(result, "ttft", _("Wait for the answer"))
    else:
        yield _latency(result, "ttft", _("Wait for the first token"))
        yield _latency(result, "tpot", _("Time per output token"))
    yield _replicas(timeline, span)
    rates = {_("Arriving"): _rates(requests, "arrived", span), _("Completed"): _rates(requests, "completed", span)}
    if any(requests["dropped"]):
        rates[_("Dropped")] = _rates(requests, "dropped", span)
    yield _linear(
        "run-load",
        _demand_finding(rates, requests, span),
        requests["bin_s"],
        span,
        rates,
        _measured(_("Requests/s"), _("req/s")),
    )
    if listed_of(result):
        yield events_chart(result, span)
    waiting = {_("Waiting, most"): queue["waiting_max"], _("Running"): queue["running"]}
    longest = max((value or 0 for value in queue["waiting_max"]), default=0)
    yield _linear(
        "run-queue",
        ngettext("At most %(n)s request waited", "At most %(n)s requests waited", math.ceil(longest))
        % {"n": numbers.fixed(longest)},
        queue["bin_s"],
        span,
        waiting,
        canvas.Axis(title=_("Requests"), tick=numbers.rounded, is_count=True, unit=_("requests")),
    )
    yield from _heat(timeline, span, has_cache=has_cache(result))
    if has_cache(result):
        yield _kv(timeline, span)
    yield _cost(result, timeline["replicas"], span)
    yield from _distribution(result)


def _latency(result: Mapping[str, Any], name: str, title: str) -> Chart:
    requests, limit = result["timeline"]["requests"], result["goodput"].get(f"{name}_limit_ms")
    lines = {at: requests[f"{name}_ms"][at] for at in PERCENTILES if at in requests[f"{name}_ms"]}
    axis = canvas.Axis(
        title=_("%(name)s, log scale") % {"name": _("Answer") if comes_whole(result) else name.upper()},
        tick=numbers.duration,
        unit="ms",
        limit=limit,
        limit_label=_("limit %(limit)s") % {"limit": numbers.duration(limit)},
    )
    worst = max((value for value in lines.get("p95", ()) if value is not None), default=None)
    breaks, note = marked_losses(result)
    figure = curves.over_time(requests["bin_s"], result["duration_s"], lines, axis, is_log=True, breaks_s=breaks)
    return Chart(
        id=f"run-{name}",
        title=_("%(what)s: p95 at worst %(worst)s") % {"what": title, "worst": numbers.duration(worst)},
        figure=figure,
        note=note,
    )


def _replicas(timeline: Mapping[str, Any], span: float) -> Chart:
    """What serves against what is asked: an autoscaler that lags shows as a gap."""
    requests, replicas = timeline["requests"], timeline["replicas"]
    demand = curves.Beside(
        name=_("Demand"),
        values=_rates(requests, "arrived", span),
        bin_s=requests["bin_s"],
        axis=canvas.Axis(title=_("Requests/s"), tick=numbers.rounded, unit=_("req/s")),
    )
    counts = {_("Ready"): replicas["ready"], _("Billed"): replicas["billed"]}
    axis = canvas.Axis(title=_("Replicas"), tick=numbers.rounded, is_count=True, unit=_("replicas"))
    figure = curves.over_time(replicas["bin_s"], span, counts, axis, is_log=False, beside=demand)
    return Chart(id="run-replicas", title=_replica_finding(replicas), figure=figure)


def _heat(timeline: Mapping[str, Any], span: float, *, has_cache: bool) -> Iterator[Chart]:
    """KV caches and queues by replica: one that is fuller than the others shows as a stripe."""
    heat = timeline["heat"]
    rows = canvas.Axis(title=_("Replica"), tick=numbers.rounded)
    parts = (
        ("kv", _("KV caches by replica"), canvas.Axis(title=_("KV blocks in use"), tick=numbers.percent, hover=SHARE)),
        ("waiting", _("Queues by replica"), canvas.Axis(title=_("Requests waiting"), tick=_whole, unit=_("requests"))),
    )
    for name, what, value in parts if has_cache else parts[1:]:
        highest = max((each or 0.0 for row in heat[name] for each in row), default=0.0)
        title = _("%(what)s: at most %(most)s") % {"what": what, "most": value.tick(highest)}
        yield Chart(
            id=f"run-heat-{name}",
            title=title,
            figure=run_events.heat_map(heat["bin_s"], span, heat[name], rows, value),
            parts=_scale(highest, value),
        )


def _whole(value: float) -> str:
    """Requests come whole."""
    return numbers.fixed(math.floor(value))


def _scale(highest: float, value: canvas.Axis) -> tuple[Part, ...]:
    """What the colours of a heat map mean; the middle only where it reads otherwise than the ends."""
    ends = (value.tick(0.0), value.tick(highest))
    steps = ((0.0, "heat-0"), (0.5, "heat-2"), (1.0, "heat-3"))
    return tuple(
        Part(
            key=swatch,
            label=value.title if share == 0 else "",
            value=value.tick(share * highest),
            share="",
            swatch=swatch,
        )
        for share, swatch in steps
        if share == 0 or (share == 1 and highest) or value.tick(share * highest) not in ends
    )


def _rates(requests: Mapping[str, Any], name: str, span: float) -> list[float | None]:
    """Counts a second; the last bin is as long as the run was in it, where it was for a tenth of it."""
    bin_s = requests["bin_s"]
    rates: list[float | None] = [count / bin_s for count in requests[name]]
    if rates:
        last_s = span - (len(rates) - 1) * bin_s
        rates[-1] = requests[name][-1] / min(last_s, bin_s) if last_s > 0.1 * bin_s else None
    return rates


def _linear(
    name: str,
    title: str,
    bin_s: float,
    span: float,
    lines: Mapping[str, Sequence[float | None]],
    axis: canvas.Axis,
) -> Chart:
    return Chart(id=name, title=title, figure=curves.over_time(bin_s, span, lines, axis, is_log=False))


def _measured(title: str, unit: str) -> canvas.Axis:
    return canvas.Axis(title=title, tick=numbers.rounded, unit=unit)


def _demand_finding(rates: Mapping[str, Sequence[float | None]], requests: Mapping[str, Any], span: float) -> str:
    """The peak, and the mean until the last request came where the run ends with an answer, which may take longer than
    requests come; else over the time that was asked for.
    """
    arriving = [value or 0.0 for value in next(iter(rates.values()))]
    bins = max((place for place, count in enumerate(requests["arrived"], start=1) if count), default=0)
    if not any((*requests["completed"][-1:], *requests["dropped"][-1:])):
        bins = len(requests["arrived"])
    asked_s = min(bins * requests["bin_s"], span)
    mean = sum(requests["arrived"]) / asked_s if asked_s > 0 else 0.0
    return _("Demand peaks at %(peak)s requests/s, %(mean)s on average") % {
        "peak": numbers.rounded(max(arriving, default=0.0)),
        "mean": numbers.rounded(mean),
    }


def _replica_finding(replicas: Mapping[str, Any]) -> str:
    ready = [value for value in replicas["ready"] if value is not None]
    # Means of each bin: a replica that was there for part of one counts.
    low, high = min(replicas["ready_min"] or ready, default=0), math.ceil(max(ready, default=0))
    if low == high:
        return ngettext("%(n)s replica ready throughout", "%(n)s replicas ready throughout", high) % {
            "n": numbers.rounded(high)
        }
    return _("%(low)s to %(high)s replicas ready") % {"low": numbers.rounded(low), "high": numbers.rounded(high)}


def _kv(timeline: Mapping[str, Any], span: float) -> Chart:
    """How full the caches are: on average, and the fullest replica's at each time."""
    kv, heat = timeline["kv"], timeline["heat"]
    fullest = max((max(row, default=0.0) for row in heat["kv"]), default=0.0)
    bins = max(1, round(heat["bin_s"] / kv["bin_s"]))
    worst = [max(row, default=None) for row in heat["kv"] for _repeated in range(bins)]
    lines = {_("Mean"): kv["used"], _("Fullest replica"): worst[: len(kv["used"])]}
    title = _("The KV cache is %(share)s full at its fullest") % {"share": numbers.percent(fullest)}
    axis = canvas.Axis(title=_("KV blocks in use"), tick=numbers.percent, hover=SHARE)
    return _linear("run-kv", title, kv["bin_s"], span, lines, axis)


def _cost(result: Mapping[str, Any], replicas: Mapping[str, Any], span: float) -> Chart:
    """The bill as it grows: shared over time by the replicas billed."""
    grown: list[float | None] = [*bill_so_far(result)]
    title = _("The bill grows to %(cost)s") % {"cost": numbers.money(as_number(result["cost_usd"]) or 0.0)}
    return _linear("run-cost", title, replicas["bin_s"], span, {_("Cost so far"): grown}, _measured("USD", "USD"))


def _distribution(result: Mapping[str, Any]) -> Iterator[Chart]:
    found = result.get("ecdf")
    if not found:
        return
    half = {"ttft": numbers.duration(result["ttft_ms"]["p50"])}
    lines = {name.upper(): (found[f"{name}_ms"], found["shares"]) for name in ("ttft", "tpot")}
    title = _("Half the requests wait less than %(ttft)s for the first token") % half
    if comes_whole(result):
        lines = {_("Answer"): lines["TTFT"]}
        title = _("Half the requests wait less than %(ttft)s for the answer") % half
    yield Chart(
        id="run-ecdf",
        title=title,
        figure=curves.distribution(
            lines,
            canvas.Axis(title=_("Time, log scale"), tick=numbers.duration),
            canvas.Axis(title=_("Share of requests"), tick=numbers.percent, hover=SHARE),
        ),
    )
