"""The job ``simulation``: one option of an inference plan, serving generated traffic or an uploaded trace.

Checking needs no simulator, so that any process may start the job; running it is the workers' part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from planner.engine.errors import FieldError, InvalidQuestion, unknown_fields
from planner.engine.sentences import Noun, say
from planner.engine.simulate.planned_fleet import MOST_PLACES, places_of
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.records import MAX_FALLBACKS
from planner.engine.workload import InferenceQuestion
from planner.models import User
from planner.services.fleet_checks import fleet_faults
from planner.services.generated_traffic import MOST_REQUESTS
from planner.services.job_question import read_job_question
from planner.services.plan_options import chosen_option
from planner.services.planning import plan_inference
from planner.services.run_kind import SpreadKind, in_worker, part_in_worker
from planner.services.simulation_region import Region, longest_s, read_region
from planner.services.stored_traces import has_trace, may_use_trace

MEMBERS: Final = ("question", "scenario", "traffic", "trace", "regions")
REGION_MEMBERS: Final = ("name", "scenario", "traffic", "trace", "fallback", "round_trip_ms", "spill_outstanding")
MOST_REGIONS: Final = 16
LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationJob:
    """The job's parameters, checked."""

    question: Mapping[str, Any]
    regions: tuple[Region, ...]

    @property
    def scenario(self) -> SimulationQuestion:
        """Of the first region, or the only one."""
        return self.regions[0].scenario

    @property
    def is_linked(self) -> bool:
        """Whether requests move between regions: then they can't be simulated apart."""
        return any(region.fallback for region in self.regions)

    def named_regions(self) -> Iterator[tuple[str, Region]]:
        """Each region behind what its faults' names begin with: nothing where there is but one, without a name."""
        for place, region in enumerate(self.regions):
            yield f"regions.{place}" if region.name else "", region


def check_simulation(params: Mapping[str, Any], owner: User | None) -> None:
    """Raise ``InvalidQuestion`` for parameters that a worker would refuse, and for a trace that isn't ``owner``'s."""
    check_options(read_simulation(params, has=partial(may_use_trace, user=owner)))


def check_options(job: SimulationJob) -> None:
    """Raise ``InvalidQuestion`` where the question has no plan, or its plan lacks an option that a scenario names."""
    try:
        plan = plan_inference(job.question)
    except InvalidQuestion as invalid:
        raise InvalidQuestion([fault.inside("question") for fault in invalid.errors]) from invalid
    faults: list[FieldError] = []
    places, lasts_s = 0, longest_s(job.regions)
    for part, region in job.named_regions():
        try:
            option = chosen_option(plan, region.scenario.option)
        except InvalidQuestion as invalid:
            faults += [
                fault.inside("scenario").inside(part) if fault.field == "option" else fault for fault in invalid.errors
            ]
        else:
            faults += [fault.inside(part) for fault in fleet_faults(region, option, len(job.regions), lasts_s)]
            places += places_of(region.scenario, option.layout.replicas)
    if job.is_linked and places > MOST_PLACES and not faults:
        message = say("{places:,} replicas in all are more than a run may have.", places=places)
        allowed = say("up to {most:,} in all", most=MOST_PLACES)
        faults.append(FieldError(field="regions", value=None, message=message, allowed=allowed, code="conflict"))
    if not plan.options:
        faults = [replace(faults[0], field="question")]
    if faults:
        raise InvalidQuestion(faults)


def read_simulation(
    params: Mapping[str, Any], members: Sequence[str] = MEMBERS, *, has: Callable[[str], bool] = has_trace
) -> SimulationJob:
    """Parameters: ``question`` (as for a plan), ``scenario``, and either ``traffic``, ``trace``, or ``regions``.

    Each of the regions has a name, and may have a scenario and traffic that add to the common ones, or a trace.
    Load and lengths that traffic leaves out are the question's.
    Raises ``InvalidQuestion`` with every fault, named ``question.FIELD``, ``scenario.FIELD``, ``traffic.FIELD``,
    ``regions.PLACE.FIELD``. ``has`` says which traces there are.
    """
    faults = unknown_fields(params, members)
    question = read_job_question(params.get("question"), faults)
    if "regions" in params:
        regions = _read_regions(params, question, faults, has, searched="search" in members)
    else:
        only = read_region(params, question, faults, has, name="", searched="search" in members)
        regions = () if only is None else (only,)
    if faults or not regions:
        raise InvalidQuestion(faults)
    return SimulationJob(question=params["question"], regions=regions)


def _read_regions(
    params: Mapping[str, Any],
    question: InferenceQuestion | None,
    faults: list[FieldError],
    has: Callable[[str], bool],
    *,
    searched: bool,
) -> tuple[Region, ...]:
    raw = params["regions"]
    if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_REGIONS or not all(isinstance(r, Mapping) for r in raw):
        allowed = say("a list of 1 to {most} objects", most=MOST_REGIONS)
        faults.append(FieldError(field="regions", value=None, message=say("Not a list of regions."), allowed=allowed))
        return ()
    if "trace" in params:
        allowed = say("a trace of its own in each region")
        faults.append(FieldError(field="trace", value=None, message=say("Given beside regions."), allowed=allowed))
    names = [str(region.get("name", "")) for region in raw]
    linked = any(region.get("fallback") for region in raw)
    regions = []
    for place, region in enumerate(raw):
        own: list[FieldError] = unknown_fields(region, REGION_MEMBERS)
        own += _name_faults(region.get("name"), names[:place])
        joined = _with_common(region, params, place)
        fallback = _fallback(region, names, own)
        named = {"name": names[place], "fallback": fallback, "linked": linked, "raw": region, "searched": searched}
        read = read_region(joined, question, own, has, **named)
        faults += [fault.inside(f"regions.{place}") for fault in own]
        if read is not None:
            regions.append(read)
    if sum(region.traffic.expected_requests for region in regions if region.traffic is not None) > MOST_REQUESTS:
        allowed = say("up to {most:,} requests in all regions", most=MOST_REQUESTS)
        faults.append(FieldError(field="regions", value=None, message=say("Too many requests."), allowed=allowed))
    return tuple(regions)


def _name_faults(name: object, before: Sequence[str]) -> list[FieldError]:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        allowed = say("a text of 1 to {most} characters", most=LONGEST_NAME)
        return [FieldError(field="name", value=name, message=say("Not a name."), allowed=allowed)]
    if name in before:
        return [FieldError(field="name", value=name, message=say("Named twice."), allowed=say("another name"))]
    return []


def _with_common(region: Mapping[str, Any], params: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The region's parts over the common ones; a common seed gives each region traffic of its own."""
    joined: dict[str, Any] = {"question": params.get("question")}
    for part in ("scenario", "traffic"):
        common, own = params.get(part, {}), region.get(part, {})
        both = isinstance(common, Mapping) and isinstance(own, Mapping)
        joined[part] = {**common, **own} if both else own
        seed = common.get("seed", 0) if both else None
        if type(seed) is int and "seed" not in own:
            joined[part]["seed"] = seed + place
    if "trace" in region:
        joined["trace"] = region["trace"]
        if "traffic" not in region:
            del joined["traffic"]
    return joined


def _fallback(region: Mapping[str, Any], names: Sequence[str], faults: list[FieldError]) -> tuple[int, ...]:
    raw = region.get("fallback", [])
    others = [name for name in names if name != region.get("name")]
    if not isinstance(raw, list) or len(raw) > MAX_FALLBACKS or any(name not in others for name in raw):
        allowed = say(
            "up to {most} of: {names}", most=MAX_FALLBACKS, names=", ".join(others) or Noun("no other region")
        )
        faults.append(
            FieldError(field="fallback", value=None, message=say("Not names of other regions."), allowed=allowed)
        )
        return ()
    return tuple(names.index(name) for name in raw)


SIMULATION = SpreadKind(
    check=check_simulation,
    execute=in_worker("planner.services.simulation_run.run_simulation"),
    execute_part=part_in_worker("planner.services.simulation_parts.serve_part"),
)
