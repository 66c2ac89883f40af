"""The result of a simulated run: its sentence, its key figures, and charts over simulated time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend import figures, numbers, run_figures
from frontend.answers.shown import Chart, KeyFigure

INCIDENTS: dict[str, str | Promise] = {
    "scaled": gettext_lazy("Replicas wanted: %(n)s"),
    "failed": gettext_lazy("A node failed"),
    "noticed": gettext_lazy("Notice of a spot interruption"),
    "interrupted": gettext_lazy("Spot node taken away"),
    "repaired": gettext_lazy("Node repaired"),
    "ready": gettext_lazy("Replica ready"),
    "upgraded": gettext_lazy("Replica upgraded"),
}
MOST_INCIDENTS = 200
PERCENTILES = ("p50", "p95", "p99")
STATISTICS = ("p50", "p90", "p95", "p99")
CSV_COLUMNS = (
    *("time_s", "arrived", "completed", "dropped", "input_tokens", "output_tokens"),
    *(f"{name}_{at}" for name in ("ttft_ms", "tpot_ms") for at in STATISTICS),
    *("replicas_ready", "replicas_billed", "waiting", "running", "kv_used"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationShown:
    """Everything the page shows of a finished simulation."""

    sentence: str
    figures: tuple[KeyFigure, ...]
    charts: tuple[Chart, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    incidents: tuple[tuple[str, str, str, str], ...]
    """When, what, which replica, requests lost."""


def present_simulation(result: Mapping[str, Any]) -> SimulationShown:
    """Charts and figures of a simulation's result."""
    return SimulationShown(
        sentence=_sentence(result),
        figures=_figures(result),
        charts=tuple(_charts(result)),
        facts=_facts(result),
        notes=tuple(result.get("notes", ())),
        incidents=tuple(_incident(each) for each in result["incidents"]["first"][:MOST_INCIDENTS]),
    )


def _sentence(result: Mapping[str, Any]) -> str:
    return _(
        "%(requests)s requests in %(time)s: %(share)s within the limits, p95 TTFT %(ttft)s, p95 TPOT %(tpot)s, "
        "%(cost)s for the time"
    ) % {
        "requests": numbers.fixed(result["requests"]),
        "time": _hours(result["duration_s"]),
        "share": numbers.percent(result["goodput"]["share"], 1),
        "ttft": numbers.duration(result["ttft_ms"]["p95"]),
        "tpot": numbers.duration(result["tpot_ms"]["p95"]),
        "cost": numbers.money(_number(result["cost_usd"])),
    }


def _incident(incident: Mapping[str, Any]) -> tuple[str, str, str, str]:
    what = str(INCIDENTS.get(incident["kind"], incident["kind"])) % {"n": numbers.fixed(incident["replicas"])}
    replica = numbers.fixed(incident["replica"])
    return _hours(incident["at_s"]), what, replica, numbers.fixed(incident["lost_requests"])


def _hours(seconds: float) -> str:
    if seconds < 7200:
        return numbers.duration(seconds * 1000)
    return _("%(n)s h") % {"n": numbers.rounded(seconds / 3600)}


def _number(value: Any) -> float | None:
    """Money travels as text."""
    return None if value is None else float(value)


def _figures(result: Mapping[str, Any]) -> tuple[KeyFigure, ...]:
    per_token = _number(result["usd_per_million_output_tokens"])
    return (
        KeyFigure(
            label=_("Cost"),
            value=numbers.money(_number(result["cost_usd"])),
            notes=(_("%(money)s a million output tokens") % {"money": numbers.money(per_token)},),
        ),
        KeyFigure(
            label=_("Speed"),
            value=numbers.duration(result["ttft_ms"]["p95"]),
            notes=(
                _("TTFT p95; p99 %(p99)s") % {"p99": numbers.duration(result["ttft_ms"]["p99"])},
                _("TPOT p95 %(p95)s") % {"p95": numbers.duration(result["tpot_ms"]["p95"])},
            ),
        ),
        KeyFigure(
            label=_("Within the limits"),
            value=numbers.percent(result["goodput"]["share"], 1),
            notes=(
                _("%(n)s dropped, %(again)s preempted")
                % {"n": numbers.fixed(result["dropped"]), "again": numbers.fixed(result["preemptions"])},
                _("GPUs busy %(share)s of the time") % {"share": numbers.percent(result["utilization"])},
            ),
        ),
    )


def _facts(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    settings = result["settings"]
    return (
        (_("Option"), str(result["option"])),
        (_("Replicas"), numbers.fixed(result["replicas"])),
        (_("Seed"), str(settings["seed"])),
        (_("Completed"), numbers.fixed(result["completed"])),
        (_("Output"), _("%(n)s tokens/s") % {"n": numbers.rounded(result["throughput"]["output_tok_s"])}),
        (_("GPU hours"), numbers.rounded(result["gpu_hours"])),
        (_("Catalog"), str(result["catalog_version"])),
    )


def _charts(result: Mapping[str, Any]) -> Iterator[Chart]:
    timeline, span = result["timeline"], result["duration_s"]
    requests, replicas = timeline["requests"], timeline["replicas"]
    queue = timeline["queue"]
    for name, title in (("ttft", _("Wait for the first token")), ("tpot", _("Time per output token"))):
        lines = {at: requests[f"{name}_ms"][at] for at in PERCENTILES if at in requests[f"{name}_ms"]}
        axis = figures.Axis(title=_("%(name)s, log scale") % {"name": name.upper()}, tick=numbers.duration)
        worst = max((value for value in lines.get("p95", ()) if value is not None), default=None)
        yield Chart(
            id=f"run-{name}",
            title=_("%(what)s: p95 at worst %(worst)s") % {"what": title, "worst": numbers.duration(worst)},
            figure=run_figures.over_time(requests["bin_s"], span, lines, axis, is_log=True),
        )
    rates = {_("Arriving"): _rates(requests, "arrived"), _("Completed"): _rates(requests, "completed")}
    if any(requests["dropped"]):
        rates[_("Dropped")] = _rates(requests, "dropped")
    yield _linear("run-load", _demand_finding(rates), requests["bin_s"], span, rates, _("Requests/s"))
    counts = {_("Ready"): replicas["ready"], _("Billed"): replicas["billed"]}
    yield _linear("run-replicas", _replica_finding(replicas), replicas["bin_s"], span, counts, _("Replicas"))
    waiting = {_("Waiting, most"): queue["waiting_max"], _("Running"): queue["running"]}
    longest = max((value or 0 for value in queue["waiting_max"]), default=0)
    yield _linear(
        "run-queue",
        _("At most %(n)s requests waited") % {"n": numbers.fixed(longest)},
        queue["bin_s"],
        span,
        waiting,
        _("Requests"),
    )
    yield _kv(timeline, span)
    yield _cost(result, replicas, span)
    yield from _distribution(result)


def _rates(requests: Mapping[str, Any], name: str) -> list[float | None]:
    return [count / requests["bin_s"] for count in requests[name]]


def _linear(
    name: str, title: str, bin_s: float, span: float, lines: Mapping[str, Sequence[float | None]], unit: str
) -> Chart:
    axis = figures.Axis(title=unit, tick=numbers.rounded)
    return Chart(id=name, title=title, figure=run_figures.over_time(bin_s, span, lines, axis, is_log=False))


def _demand_finding(rates: Mapping[str, Sequence[float | None]]) -> str:
    arriving = [value or 0.0 for value in next(iter(rates.values()))]
    return _("Demand peaks at %(peak)s requests/s, %(mean)s on average") % {
        "peak": numbers.rounded(max(arriving, default=0.0)),
        "mean": numbers.rounded(sum(arriving) / len(arriving) if arriving else 0.0),
    }


def _replica_finding(replicas: Mapping[str, Any]) -> str:
    ready = [value for value in replicas["ready"] if value is not None]
    low, high = min(replicas["ready_min"] or ready, default=0), max(ready, default=0)
    if low == high:
        return _("%(n)s replicas ready throughout") % {"n": numbers.rounded(high)}
    return _("%(low)s to %(high)s replicas ready") % {"low": numbers.rounded(low), "high": numbers.rounded(high)}


def _kv(timeline: Mapping[str, Any], span: float) -> Chart:
    """How full the caches are: on average, and the fullest replica's at each time."""
    kv, heat = timeline["kv"], timeline["heat"]
    fullest = max((max(row, default=0.0) for row in heat["kv"]), default=0.0)
    bins = max(1, round(heat["bin_s"] / kv["bin_s"]))
    worst = [max(row, default=None) for row in heat["kv"] for _repeated in range(bins)]
    lines = {_("Mean"): kv["used"], _("Fullest replica"): worst[: len(kv["used"])]}
    title = _("The KV cache is %(share)s full at its fullest") % {"share": numbers.percent(fullest)}
    return _linear("run-kv", title, kv["bin_s"], span, lines, _("Share of KV blocks in use"))


def _cost(result: Mapping[str, Any], replicas: Mapping[str, Any], span: float) -> Chart:
    """The bill as it grows: shared over time by the replicas billed."""
    billed = [value or 0.0 for value in replicas["billed"]]
    whole, total = sum(billed) or 1.0, _number(result["cost_usd"]) or 0.0
    grown: list[float | None] = [total * part / whole for part in accumulate(billed)]
    title = _("The bill grows to %(cost)s") % {"cost": numbers.money(total)}
    return _linear("run-cost", title, replicas["bin_s"], span, {_("Cost so far"): grown}, "USD")


def _distribution(result: Mapping[str, Any]) -> Iterator[Chart]:
    found = result.get("ecdf")
    if not found:
        return
    lines = {name.upper(): (found[f"{name}_ms"], found["shares"]) for name in ("ttft", "tpot")}
    yield Chart(
        id="run-ecdf",
        title=_("Half the requests wait less than %(ttft)s for the first token")
        % {"ttft": numbers.duration(result["ttft_ms"]["p50"])},
        figure=run_figures.distribution(
            lines,
            figures.Axis(title=_("Time, log scale"), tick=numbers.duration),
            figures.Axis(title=_("Share of requests"), tick=numbers.percent),
        ),
    )


def compare(result: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Two runs side by side: what is measured, in this one, in the other."""
    rows = zip(_compared(result), _compared(other), strict=True)
    return tuple((label, here, there) for (label, here), (_label, there) in rows)


def _compared(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield _("Requests"), numbers.fixed(result["requests"])
    yield _("Dropped"), numbers.fixed(result["dropped"])
    yield _("Within the limits"), numbers.percent(result["goodput"]["share"], 1)
    for name in ("ttft", "tpot"):
        for at in PERCENTILES:
            yield f"{name.upper()} {at}", numbers.duration(result[f"{name}_ms"][at])
    yield _("Cost"), numbers.money(_number(result["cost_usd"]))
    yield _("GPU hours"), numbers.rounded(result["gpu_hours"])
    yield _("Replicas"), numbers.fixed(result["replicas"])
    yield _("Option"), str(result["option"])
    yield _("Seed"), str(result["settings"]["seed"])
    yield _("Catalog"), str(result["catalog_version"])


def csv_rows(result: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """The timeline, one row a bin of the requests, each with the sample taken nearest to it."""
    timeline = result["timeline"]
    requests = timeline["requests"]
    yield CSV_COLUMNS
    for place in range(len(requests["arrived"])):
        time_s = place * requests["bin_s"]
        counts = [requests[name][place] for name in CSV_COLUMNS[1:6]]
        times = [_at(requests[name].get(at, ()), place) for name in ("ttft_ms", "tpot_ms") for at in STATISTICS]
        states = [
            _at(timeline[part][name], int(time_s / timeline[part]["bin_s"]))
            for part, name in (
                ("replicas", "ready"),
                ("replicas", "billed"),
                ("queue", "waiting"),
                ("queue", "running"),
                ("kv", "used"),
            )
        ]
        yield [time_s, *counts, *times, *states]


def _at(values: Sequence[Any], place: int) -> Any:
    value = values[place] if place < len(values) else None
    return "" if value is None else value
