"""What is told of a simulated offline job: how long it takes and what it costs, not how long each request waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers
from frontend.answers.shown import KeyFigure
from frontend.answers.simulation_words import as_number, comes_whole, dropped_words, hours, tokens_price


def job_sentence(result: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    """The whole job, and what of it was simulated where that is not all."""
    values = {
        "requests": numbers.fixed(job["requests"]),
        "time": hours(float(job["hours"]) * 3600),
        "cost": numbers.money(as_number(job["usd"])),
        "simulated": numbers.fixed(job["simulated_requests"]),
    }
    if result["dropped"]:
        return ngettext(
            "%(requests)s request, all queued at once: not all were answered, %(dropped)s were dropped",
            "%(requests)s requests, all queued at once: not all were answered, %(dropped)s were dropped",
            job["requests"],
        ) % {**values, "dropped": numbers.fixed(result["dropped"])}
    if job["simulated_requests"] < job["requests"]:
        return _(
            "%(requests)s requests in %(time)s for %(cost)s, at the pace of the first %(simulated)s, all queued at once"
        ) % (values)
    return ngettext(
        "%(requests)s request, queued at once, is done in %(time)s for %(cost)s",
        "%(requests)s requests, all queued at once, are done in %(time)s for %(cost)s",
        job["requests"],
    ) % (values)


def job_figures(result: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[KeyFigure, ...]:
    """Cost, pace, and what is left of the job's time."""
    hour = as_number(result["usd_per_hour"])
    took, most = float(job["hours"]), job["within_hours"]
    return (
        KeyFigure(
            label=_("Cost"),
            value=numbers.money(as_number(job["usd"])),
            notes=(
                tokens_price(result),
                _("%(hour)s an hour") % {"hour": numbers.money(hour)},
            ),
        ),
        KeyFigure(
            label=_("Speed"),
            value=_("%(n)s requests/s") % {"n": numbers.rounded(result["throughput"]["requests_s"])},
            notes=(
                _("%(n)s output tokens/s of all replicas")
                % {"n": numbers.rounded(result["throughput"]["output_tok_s"])},
                ""
                if comes_whole(result)
                else _("TPOT p95 %(p95)s") % {"p95": numbers.duration(result["tpot_ms"]["p95"])},
            ),
        ),
        KeyFigure(
            label=_("Time left"),
            value=numbers.percent(max(0.0, 1 - took / most)),
            notes=(
                _("done in %(time)s of %(most)s") % {"time": hours(took * 3600), "most": hours(most * 3600)},
                _("%(n)s dropped, %(again)s preempted")
                % {"n": numbers.fixed(result["dropped"]), "again": numbers.fixed(result["preemptions"])},
                dropped_words(result),
                _("Replicas had work %(share)s of the time") % {"share": numbers.percent(result["utilization"])},
            ),
        ),
    )
