"""The result of a simulated run: its sentence, its key figures, and charts over simulated time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.answers.shown import ChartGroup, KeyFigure
from frontend.answers.simulated_incidents import incident_table
from frontend.answers.simulated_job import job_figures, job_sentence
from frontend.answers.simulation_charts import chart_groups
from frontend.answers.simulation_words import (
    as_number,
    cached_words,
    comes_whole,
    dropped_words,
    has_cache,
    hours,
    pace,
    tokens_price,
)
from frontend.sentences import kept
from frontend.stated import option_words


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationShown:
    """Everything the page shows of a finished simulation."""

    sentence: str
    figures: tuple[KeyFigure, ...]
    groups: tuple[ChartGroup, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    incidents: tuple[tuple[str, str, str, str], ...]
    """When, what, which replicas, requests lost."""
    incidents_note: str
    """How many of how many, where not all."""
    regions: tuple[tuple[str, ...], ...]
    """Name, replicas, requests, share within the limits, TTFT, TPOT, cost."""


def present_simulation(result: Mapping[str, Any]) -> SimulationShown:
    """Charts and figures of a simulation's result."""
    incidents, incidents_note = incident_table(result)
    return SimulationShown(
        sentence=_sentence(result),
        figures=_figures(result),
        groups=tuple(chart_groups(result)),
        facts=_facts(result),
        notes=tuple(_note(text, result) for text in result.get("notes", ())),
        incidents=incidents,
        incidents_note=incidents_note,
        regions=tuple(_region(each) for each in result.get("regions", ())),
    )


def _note(text: str, result: Mapping[str, Any]) -> str:
    """A stored sentence in the page's language; of one that a region's name stands before, the sentence."""
    for region in result.get("regions", ()):
        prefix = f"{region['name']}: "
        if text.startswith(prefix):
            return prefix + kept(text.removeprefix(prefix))
    return kept(text)


def _region(region: Mapping[str, Any]) -> tuple[str, ...]:
    """A region's row: its own requests, whoever served them, and what it rents."""
    return (
        str(region["name"]),
        numbers.fixed(region["replicas"]),
        numbers.fixed(region["requests"]),
        numbers.percent(region["goodput_share"], 1),
        *(numbers.duration((region[name] or {}).get("p95")) for name in ("ttft_ms", "tpot_ms")),
        numbers.money(as_number(region["cost_usd"])),
    )


def _sentence(result: Mapping[str, Any]) -> str:
    job = result.get("job")
    if job is not None:
        return job_sentence(result, job)
    values = {
        "requests": numbers.fixed(result["requests"]),
        "time": hours(result["duration_s"]),
        "share": numbers.percent(result["goodput"]["share"], 1),
        "ttft": numbers.duration(result["ttft_ms"]["p95"]),
        "tpot": numbers.duration(result["tpot_ms"]["p95"]),
        "cost": numbers.money(as_number(result["cost_usd"])),
    }
    if comes_whole(result):
        return ngettext(
            "%(requests)s request in %(time)s: %(share)s within the limits, p95 answer in %(ttft)s, "
            "%(cost)s for the time",
            "%(requests)s requests in %(time)s: %(share)s within the limits, p95 answer in %(ttft)s, "
            "%(cost)s for the time",
            result["requests"],
        ) % (values)
    return ngettext(
        "%(requests)s request in %(time)s: %(share)s within the limits, p95 TTFT %(ttft)s, p95 TPOT %(tpot)s, "
        "%(cost)s for the time",
        "%(requests)s requests in %(time)s: %(share)s within the limits, p95 TTFT %(ttft)s, p95 TPOT %(tpot)s, "
        "%(cost)s for the time",
        result["requests"],
    ) % (values)


def _figures(result: Mapping[str, Any]) -> tuple[KeyFigure, ...]:
    if result.get("job") is not None:
        return job_figures(result, result["job"])
    return (
        KeyFigure(
            label=_("Cost"),
            value=numbers.money(as_number(result["cost_usd"])),
            notes=(
                tokens_price(result),
                pace(result, result["duration_s"]),
            ),
        ),
        KeyFigure(
            label=_("Speed"),
            value=numbers.duration(result["ttft_ms"]["p95"]),
            notes=_latency_notes(result),
        ),
        KeyFigure(
            label=_("Within the limits"),
            value=numbers.percent(result["goodput"]["share"], 1),
            notes=(
                _("%(n)s dropped, %(again)s preempted")
                % {"n": numbers.fixed(result["dropped"]), "again": numbers.fixed(result["preemptions"])},
                dropped_words(result),
                _("Replicas had work %(share)s of the time") % {"share": numbers.percent(result["utilization"])},
            ),
        ),
    )


def _latency_notes(result: Mapping[str, Any]) -> tuple[str, ...]:
    p99 = {"p99": numbers.duration(result["ttft_ms"]["p99"])}
    if comes_whole(result):
        return (_("p95 to the answer; p99 %(p99)s") % p99,)
    return (
        _("TTFT p95; p99 %(p99)s") % p99,
        _("TPOT p95 %(p95)s") % {"p95": numbers.duration(result["tpot_ms"]["p95"])},
    )


def _facts(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    settings = result["settings"]
    return (
        (_("Option"), option_words(str(result["option"]))),
        (_("Replicas at the start"), numbers.fixed(result["replicas"])),
        *_prefill(result),
        (_("Seed"), str(settings["seed"])),
        (_("Completed"), numbers.fixed(result["completed"])),
        *_tokens(result),
        (_("GPU hours"), numbers.rounded(result["gpu_hours"])),
        (_("Catalog"), words.catalog_version(str(result["catalog_version"]))),
    )


def _tokens(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Tokens found and made, by an engine that has a cache and makes some."""
    if has_cache(result):
        yield _("Prompt tokens found cached"), cached_words(result)
        yield _("Output"), _("%(n)s tokens/s") % {"n": numbers.rounded(result["throughput"]["output_tok_s"])}


def _prefill(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The pool that processes prompts, where there is one; of several regions, each has its own."""
    settings = result["settings"]
    if settings.get("prefill_replicas") and not result.get("regions"):
        values = {
            "n": numbers.fixed(settings["prefill_replicas"]),
            "rate": numbers.rounded(settings["transfer_gb_s"]),
        }
        yield _("Prefill pool"), _("%(n)s of them, KV cache at %(rate)s GB/s") % values
