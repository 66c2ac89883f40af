"""Two simulated runs side by side: what was asked of each, as far as it differs, and how they went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers.region_words import links_of
from frontend.answers.simulation_words import PERCENTILES, as_number, cached_words
from frontend.query import default_text
from frontend.stated import option_words, value_with_unit
from planner.engine.field_spec import specs
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.capacity_question import CapacityQuestion

Row = tuple[str, str, str, str]
"""What, in this run, in the other, and by how much this one differs."""
Params = Mapping[str, Any]

MANY_TIMES = 10
"""From here on a difference reads better as a multiple than in percent."""
SAID_APART = ("model", "option")
"""Settings that have a row of their own, where they aren't a region's."""
MOST_NAMED = 3
"""Differences that tell a run from another in a list."""


def compare(result: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Row, ...]:
    """How two runs went, this one first."""
    rows = zip(_measured(result), _measured(other), strict=True)
    return tuple((label, here, there, _difference(value, base)) for (label, here, value), (_label, there, base) in rows)


def settings_apart(here: Params, there: Params, results: tuple[Any, Any] = ({}, {})) -> tuple[Row, ...]:
    """Every setting in which two runs' parameters differ, the question's first.

    Where their results are given, traffic is what was generated, what the plan filled in with it.
    """
    rows = [*_apart(InferenceQuestion, here.get("question"), there.get("question"))]
    regions = [_regions(params, result) for params, result in zip((here, there), results, strict=True)]
    if regions[0] or regions[1]:
        rows += _regions_apart(*regions)
    else:
        ones = [_one(params, result) for params, result in zip((here, there), results, strict=True)]
        rows += _site_apart("", *ones)
    rows += _apart(CapacityQuestion, here.get("search"), there.get("search"), _("Smallest fleet"))
    return tuple(rows)


def named_apart(here: Params, there: Params) -> str:
    """What tells the other run from this one, in a few words: its own values."""
    rows = settings_apart(here, there)
    if not rows:
        return _("same settings")
    said = ", ".join(f"{label} {theirs}" for label, _ours, theirs, _by in rows[:MOST_NAMED])
    more = len(rows) - MOST_NAMED
    return said if more < 1 else said + " " + _("and %(n)s more") % {"n": numbers.fixed(more)}


def _one(params: Params, result: Any) -> dict[str, Any]:
    """The parts of a run without regions: its traffic as it was generated, of a search the scenario that it chose."""
    known, parts = _given(result), {name: params.get(name) for name in ("scenario", "traffic", "trace")}
    if isinstance(known.get("traffic"), Mapping):
        parts["traffic"] = known["traffic"]
    if "search" in known:
        parts["scenario"] = known["settings"]
    return parts


def _regions(params: Params, result: Any) -> dict[str, dict[str, Any]]:
    """Each region's parts over the common ones, by name; of a search, what it chose over those."""
    chosen = {each["name"]: _given(each.get("settings")) for each in _given(result).get("regions") or ()}
    found = {}
    for region in params.get("regions") or ():
        name = str(region.get("name", ""))
        parts = {part: {**_given(params.get(part)), **_given(region.get(part))} for part in ("scenario", "traffic")}
        parts["scenario"] |= chosen.get(name, {})
        found[name] = {**region, **parts}
    return found


def _regions_apart(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Row]:
    for name in dict.fromkeys((*here, *there)):
        if name not in here or name not in there:
            ours, theirs = (_("yes") if name in each else _("no") for each in (here, there))
            yield _("Region %(name)s") % {"name": name}, ours, theirs, ""
            continue
        yield from _site_apart(name, here[name], there[name])
        links, other = links_of(here[name]), links_of(there[name])
        yield from (
            (f"{name} · {label}", links[label], other[label], "") for label in links if links[label] != other[label]
        )


def _site_apart(name: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Row]:
    """Traffic or trace, and the scenario, of one gateway."""
    before = f"{name} · " if name else ""
    traces = [each.get("trace") for each in (here, there)]
    if traces[0] != traces[1]:
        both = all(traces)
        ours, theirs = (_trace_words(trace, both=both) for trace in traces)
        yield f"{before}{_('Traffic')}", ours, theirs, ""
    if not any(traces):
        yield from _apart(TrafficQuestion, here.get("traffic"), there.get("traffic"), before + _("Traffic"), full=False)
    yield from _apart(SimulationQuestion, here.get("scenario"), there.get("scenario"), name)


def _trace_words(trace: Any, *, both: bool) -> str:
    if not trace:
        return _("generated")
    return _("trace %(name)s") % {"name": str(trace)[:8]} if both else _("an uploaded trace")


def _apart(input_type: type, here: Any, there: Any, before: str = "", *, full: bool = True) -> Iterator[Row]:
    """Fields whose values differ, defaults filled in where ``full``: what is left out of traffic is the plan's."""
    known = specs(input_type)
    for name, (spec, default) in known.items():
        if name in SAID_APART and not before:
            continue
        ours, theirs = (_given(each).get(name, default if full else None) for each in (here, there))
        if _same(ours) != _same(theirs):
            label = f"{before} · {_(spec.label)}" if before else _(spec.label)
            yield label, _shown(name, spec, ours, here), _shown(name, spec, theirs, there), ""


def _same(value: Any) -> Any:
    """A value as it compares: 4 and 4.0 are one, a list is its items."""
    if isinstance(value, bool) or value in (None, "", [], ()):
        return value or None
    return float(value) if isinstance(value, int | float) else default_text(value)


def _shown(name: str, spec: Any, value: Any, part: Any) -> str:
    if value in (None, "", [], ()):
        return numbers.NOTHING
    if spec.kind == "config":
        return _("a config of its own")
    if name == "option":
        return option_words(str(value))
    return value_with_unit(name, spec, value, _given(part))


def _given(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, Mapping) else {}


def _difference(value: float | None, base: float | None) -> str:
    """Over the other run's, e.g. ``+12 %``, or how many times; nothing where one isn't known, or is no quantity."""
    if value is None or not base:
        return ""
    if value >= MANY_TIMES * base:
        return f"× {numbers.rounded(value / base)}"
    change = value / base - 1.0
    if abs(change) < 0.0005:
        return "0 %"
    return ("+" if change > 0 else "−") + numbers.percent(abs(change), 0 if abs(change) >= 0.1 else 1)


def _measured(result: Mapping[str, Any]) -> Iterator[tuple[str, str, float | None]]:
    question = result.get("question") or {}
    yield _("Model"), str(question.get("model") or numbers.NOTHING), None
    yield _("Option"), option_words(str(result["option"])), None
    yield _("Replicas at the start"), numbers.fixed(result["replicas"]), result["replicas"]
    yield _("Requests"), numbers.fixed(result["requests"]), result["requests"]
    yield _("Dropped"), numbers.fixed(result["dropped"]), result["dropped"]
    share = result["goodput"]["share"]
    yield _("Within the limits"), numbers.percent(share, 1), None
    for name in ("ttft", "tpot"):
        for at in PERCENTILES:
            value = result[f"{name}_ms"][at]
            yield f"{name.upper()} {at}", numbers.duration(value), value
    yield _("Prompt tokens found cached"), cached_words(result), result.get("cached_input_tokens")
    cost = as_number(result["cost_usd"])
    yield _("Cost"), numbers.money(cost), cost
    yield _("GPU hours"), numbers.rounded(result["gpu_hours"]), result["gpu_hours"]
    yield _("Catalog"), words.catalog_version(str(result["catalog_version"])), None
