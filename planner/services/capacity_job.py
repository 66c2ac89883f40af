"""The job ``capacity_search``: the smallest fleet, and autoscaler setting, that hold the limits for a traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.sentences import Sentence
from planner.engine.workload import InferenceQuestion
from planner.models import User
from planner.services.capacity_question import CapacityQuestion
from planner.services.fleet_limits import no_limits
from planner.services.planned_load import AS_GIVEN, at_planned_load
from planner.services.run_kind import SpreadKind, in_worker, part_in_worker
from planner.services.simulated_job import within_s
from planner.services.simulation_job import SimulationJob, check_options, read_simulation
from planner.services.simulation_region import read_part, too_many_requests
from planner.services.stored_traces import has_trace, may_use_trace

MOST_REQUESTS: Final = 10_000_000
"""Generated in each of its runs, of which there are some ten to thirty: a week of 16 requests a second."""
MEMBERS: Final = ("question", "scenario", "traffic", "trace", "regions", "search")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityJob:
    """The job's parameters, checked."""

    simulation: SimulationJob
    search: CapacityQuestion
    sized_for: Sentence = AS_GIVEN
    """Which load it is."""


def check_capacity(params: Mapping[str, Any], owner: User | None) -> None:
    """Raise ``InvalidQuestion`` for parameters that a worker would refuse, and for a trace that isn't ``owner``'s."""
    check_options(read_capacity(params, has=partial(may_use_trace, user=owner)).simulation)


def read_capacity(params: Mapping[str, Any], *, has: Callable[[str], bool] = has_trace) -> CapacityJob:
    """Parameters of a simulation, and ``search``; the question must have a limit, or be of a job that ends by a time.

    Traffic that states no load has the one that the plan is sized for: its peak, and headroom beyond it.
    Raises ``InvalidQuestion`` with every fault. ``has`` says which traces there are.
    """
    faults: list[FieldError] = []
    params, sized_for = at_planned_load(params)
    search = read_part("search", CapacityQuestion, params.get("search", {}), faults)
    simulation = None
    try:
        simulation = read_simulation(params, MEMBERS, has=has)
    except InvalidQuestion as invalid:
        faults += invalid.errors
    if simulation is not None:
        for part, region in simulation.named_regions():
            found = too_many_requests(region.traffic, MOST_REQUESTS // len(simulation.regions))
            faults += [fault.inside(part) for fault in found]
        question = parse_question(InferenceQuestion, simulation.question)
        is_timed = len(simulation.regions) == 1 and within_s(question, simulation.regions[0].traffic) is not None
        if question.ttft_ms is None and question.tpot_ms is None and not is_timed:
            faults.append(replace(no_limits(), field="question.ttft_ms"))
    if faults or simulation is None or search is None:
        raise InvalidQuestion(faults)
    return CapacityJob(simulation=simulation, search=search, sized_for=sized_for)


CAPACITY_SEARCH = SpreadKind(
    check=check_capacity,
    execute=in_worker("planner.services.capacity_run.run_capacity_search"),
    execute_part=part_in_worker("planner.services.capacity_run.serve_capacity_part"),
)
