"""What a run was asked with, in words: under its title, and beside its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from frontend import numbers
from frontend.answers.region_words import stated_links
from frontend.query import TRAFFIC_WAYS
from frontend.stated import stated
from planner.engine.field_spec import specs
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.models import Run

SWEEP = "plan_sweep"
SIMULATION = "simulation"
CAPACITY = "capacity_search"
SIMULATED = (SIMULATION, CAPACITY)
"""Kinds whose result is that of a simulated run."""
LOADS = tuple(name for names in TRAFFIC_WAYS.values() for name in names)
LENGTHS = ("input_tokens", "output_tokens")
TRACE_STATES = (*LOADS, *LENGTHS)
"""Fields of a question that a trace says for itself."""
PLANS_TRAFFIC = {
    **dict.fromkeys(("requests_per_second", "clients", "requests"), LOADS),
    **dict.fromkeys(("input_median", "input_lengths"), LENGTHS[:1]),
    **dict.fromkeys(("output_median", "output_lengths"), LENGTHS[1:]),
}
"""What a run's own traffic may state, and what of the question it stands for."""
IN_PLACE_OF = {
    "input_lengths": ("input_median", "input_sigma", "input_max"),
    "output_lengths": ("output_median", "output_sigma", "output_max"),
    "prefix_lengths": ("prefix_tokens",),
}
"""Lists of lengths as they were seen, and what is not used beside them."""
SCALING = ("autoscaler", "scaling_metric", "scaling_target", "min_replicas", "max_replicas")


def subtitle(run: Run, given: Mapping[str, str]) -> str:
    """What was asked, lengths always; of a simulation the traffic that it states itself stands for the plan's."""
    if run.params.get("trace"):
        return stated(InferenceQuestion, {name: value for name, value in given.items() if name not in TRACE_STATES})
    sites = [run.params, *(region for region in run.params.get("regions") or () if isinstance(region, dict))]
    traffics = [_used(traffic) for site in sites if isinstance(traffic := site.get("traffic"), dict)]
    stands_for = [names for own, names in PLANS_TRAFFIC.items() if any(each.get(own) is not None for each in traffics)]
    known = specs(InferenceQuestion)
    told = {name: known[name][1] for name in LENGTHS} | dict(given)
    told = {name: value for name, value in told.items() if not any(name in names for names in stands_for)}
    served = traffics[0] if traffics and len(sites) == 1 else {}
    own = {name: served[name] for name in PLANS_TRAFFIC if served.get(name) is not None}
    return " · ".join(text for text in (stated(InferenceQuestion, told), stated(TrafficQuestion, own)) if text)


def _used(traffic: Mapping[str, Any]) -> Mapping[str, Any]:
    """Traffic without what a list in it takes the place of."""
    unused = {name for seen, names in IN_PLACE_OF.items() if traffic.get(seen) for name in names}
    return {name: value for name, value in traffic.items() if name not in unused}


def inputs_of(run: Run) -> tuple[tuple[str, str], ...]:
    """What the run was started with, what is default left out; of a search, what it has chosen in its place."""
    given = {part: found if isinstance(found := run.params.get(part), dict) else {} for part in ("traffic", "scenario")}
    scenario = stated(SimulationQuestion, given["scenario"], but_defaults=True)
    if run.kind == CAPACITY and isinstance(run.result, dict):
        scenario = _chosen_scenario(given["scenario"], run.result)
    found = [
        (title, text)
        for title, text in (
            (_("Traffic"), stated(TrafficQuestion, _used(given["traffic"]), but_defaults=True)),
            (_("Scenario"), scenario),
        )
        if text
    ]
    if run.params.get("trace"):
        found.insert(0, (_("Traffic"), _("an uploaded trace")))
    return (*found, *_region_inputs(run.params.get("regions")))


def _region_inputs(regions: Any) -> Iterator[tuple[str, str]]:
    """What each region was started with beside what all have, and who takes its requests."""
    for region in regions if isinstance(regions, list) else ():
        own = (
            stated(TrafficQuestion, _used(region.get("traffic") or {})),
            stated(SimulationQuestion, region.get("scenario") or {}),
            _("an uploaded trace") if region.get("trace") else "",
            stated_links(region),
        )
        yield str(region.get("name", "")), " · ".join(part for part in own if part) or numbers.NOTHING


def _chosen_scenario(given: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """What was asked for, with the size and the scaling that the search chose."""
    settings, known = result["settings"], specs(SimulationQuestion)
    kept = {
        name: value
        for name, value in given.items()
        if name in known and name not in (*SCALING, "replicas") and value != known[name][1]
    }
    chosen = () if settings.get("autoscaler", "none") == "none" else SCALING
    if "regions" not in result:
        chosen = ("replicas", *chosen)
    return stated(SimulationQuestion, kept | {name: settings[name] for name in chosen if name in settings})
