"""What a simulation's scenario asks of an option's fleet, checked before the job starts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from planner.engine.answers import InferenceOption
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.engine.simulate.planned_fleet import check_sizes, places_of
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.units import SECONDS_PER_HOUR
from planner.services.simulation_region import Region, too_many_requests

LOOKING: Final = ("least_outstanding", "least_kv", "prefix_aware", "session_affinity")
"""Gateways that look at every replica for each request."""
MOST_LOOKS: Final = 200_000_000_000
"""In one run: some twenty minutes of looking."""
READING: Final = (8_000, 130)
"""Looks that an autoscaler's reading takes as long as, and more for each replica: 50 us and 0.8 us, of 6 ns each."""
LOSS: Final = (2_300, 10)
"""The same for a lost node and what comes in its place: 14 us, and 0.06 us for each replica."""


def fleet_faults(region: Region, option: InferenceOption, regions: int = 1, lasts_s: float = 0.0) -> list[FieldError]:
    """What is wrong with the fleet of one of so many ``regions``, as far as it shows before a trace is read.

    ``lasts_s`` is how long it is kept for the others' traffic.
    """
    planned = option.layout.replicas
    try:
        check_sizes(region.scenario, planned)
    except InvalidQuestion as invalid:
        return [fault.inside("scenario") for fault in invalid.errors]
    faults = []
    if region.scenario.policy in LOOKING:
        places = (region.scenario.replicas or planned) + region.scenario.prefill_replicas
        message = say("Too many requests for a gateway that looks at each of {places:,} replicas.", places=places)
        faults = [replace(fault, message=message) for fault in too_many_requests(region.traffic, MOST_LOOKS // places)]
    if region.traffic is not None and not faults:
        hours = max(region.traffic.hours, lasts_s / SECONDS_PER_HOUR)
        faults = event_faults(region.scenario, option, hours, "traffic.hours", MOST_LOOKS // regions)
    return faults


def event_faults(
    settings: SimulationQuestion, option: InferenceOption, hours: float, field: str, most: int = MOST_LOOKS
) -> list[FieldError]:
    """The fault of a time in which more happens beside its requests than one run can simulate, with one that would do.

    ``field`` is what says how long it is, ``most`` how many looks it may cost.
    """
    looks = looks_an_hour(settings, option)
    if looks * hours <= most:
        return []
    message = say("More readings of the autoscaler or lost nodes in this time than one run can simulate.")
    allowed = say("up to {hours:g} h with this fleet and scenario", hours=float(f"{most / looks:.3g}"))
    return [FieldError(field=field, value=hours, message=message, allowed=allowed, code="conflict")]


def looks_an_hour(settings: SimulationQuestion, option: InferenceOption) -> float:
    """What an hour of a fleet costs beside its requests, in looks of a gateway at a replica."""
    places = places_of(settings, option.layout.replicas)
    readings = 0.0
    if settings.autoscaler != "none":
        readings += SECONDS_PER_HOUR / settings.scrape_s
    if settings.autoscaler == "keda":
        readings += SECONDS_PER_HOUR / settings.polling_s
    nodes = places * max(1, math.ceil(option.layout.gpus_per_replica / option.cluster.gpus_per_node))
    losses = nodes * (settings.spot_interruptions_per_hour or 0.0)
    if settings.node_failure_hours is not None:
        losses += nodes / settings.node_failure_hours
    return readings * (READING[0] + READING[1] * places) + losses * (LOSS[0] + LOSS[1] * places)
