"""What a simulation's scenario asks of an option's fleet, checked before the job starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.engine.simulate.planned_fleet import check_sizes
from planner.services.simulation_region import Region, too_many_requests

LOOKING: Final = ("least_outstanding", "least_kv", "prefix_aware", "session_affinity")
"""Gateways that look at every replica for each request."""
MOST_LOOKS: Final = 200_000_000_000
"""In one run: some twenty minutes of looking."""


def fleet_faults(region: Region, planned: int) -> list[FieldError]:
    """What is wrong with a region's fleet, whose option has ``planned`` replicas."""
    try:
        check_sizes(region.scenario, planned)
    except InvalidQuestion as invalid:
        return [fault.inside("scenario") for fault in invalid.errors]
    if region.scenario.policy not in LOOKING:
        return []
    places = (region.scenario.replicas or planned) + region.scenario.prefill_replicas
    message = say("Too many requests for a gateway that looks at each of {places:,} replicas.", places=places)
    faults = too_many_requests(region.traffic, MOST_LOOKS // places)
    return [replace(fault, message=message) for fault in faults]
