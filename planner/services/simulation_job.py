"""The job ``simulation``: one option of an inference plan, serving generated traffic or an uploaded trace.

Checking needs no simulator, so that any process may start the job; running it is the workers' part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.sentences import say
from planner.engine.simulate.layout import MAX_FALLBACKS
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.models import User
from planner.services.generated_traffic import MOST_REQUESTS
from planner.services.json_input import check_json_types
from planner.services.plan_options import chosen_option
from planner.services.planned_traffic import traffic_of_plan
from planner.services.planning import plan_inference, resolve_model
from planner.services.run_kind import SpreadKind, in_worker, part_in_worker
from planner.services.stored_traces import has_trace, may_use_trace

MEMBERS: Final = ("question", "scenario", "traffic", "trace", "regions")
REGION_MEMBERS: Final = ("name", "scenario", "traffic", "trace", "fallback", "round_trip_ms", "spill_outstanding")
MOST_REGIONS: Final = 16
LONGEST_NAME: Final = 60

Fields = TypeVar("Fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One gateway's replicas and the traffic that comes to it; a job without regions has one, without a name."""

    name: str
    scenario: SimulationQuestion
    traffic: TrafficQuestion | None
    """What to generate; None where a trace is served."""
    trace: str | None
    """Which stored trace."""
    fallback: tuple[int, ...] = ()
    """Regions, by place, that take requests this one can't."""
    round_trip_ms: float = 0.0
    """Added to a request of this region that another one serves."""
    spill_outstanding: int | None = None
    """Once every replica has this many requests out, requests go to a fallback too."""


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


def check_simulation(params: Mapping[str, Any], owner: User | None) -> None:
    """Raise ``InvalidQuestion`` for parameters that a worker would refuse, and for a trace that isn't ``owner``'s."""
    check_options(read_simulation(params, has=partial(may_use_trace, user=owner)))


def check_options(job: SimulationJob) -> None:
    """Raise ``InvalidQuestion`` where the question has no plan, or its plan lacks an option that a scenario names."""
    try:
        plan = plan_inference(job.question)
    except InvalidQuestion as invalid:
        raise InvalidQuestion([_inside("question", fault) for fault in invalid.errors]) from invalid
    faults: list[FieldError] = []
    for place, region in enumerate(job.regions):
        try:
            chosen_option(plan, region.scenario.option)
        except InvalidQuestion as invalid:
            part = f"regions.{place}.scenario" if region.name else "scenario"
            faults += [_inside(part, fault) if fault.field == "option" else fault for fault in invalid.errors]
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
    faults = _unknown(params, members)
    question = _read_question(params.get("question"), faults)
    if "regions" in params:
        regions = _read_regions(params, question, faults, has)
    else:
        only = _read_region(params, question, faults, has, name="")
        regions = () if only is None else (only,)
    if faults or not regions:
        raise InvalidQuestion(faults)
    return SimulationJob(question=params["question"], regions=regions)


def _unknown(raw: Mapping[str, Any], known: Sequence[str]) -> list[FieldError]:
    return [
        FieldError(
            field=name,
            value=raw[name],
            message="Unknown field.",
            allowed=f"One of: {', '.join(known)}",
            code="unknown_field",
        )
        for name in raw
        if name not in known
    ]


def _read_regions(
    params: Mapping[str, Any],
    question: InferenceQuestion | None,
    faults: list[FieldError],
    has: Callable[[str], bool],
) -> tuple[Region, ...]:
    raw = params["regions"]
    if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_REGIONS or not all(isinstance(r, Mapping) for r in raw):
        allowed = f"a list of 1 to {MOST_REGIONS} objects"
        faults.append(FieldError(field="regions", value=None, message=say("Not a list of regions."), allowed=allowed))
        return ()
    if "trace" in params:
        allowed = "a trace of its own in each region"
        faults.append(FieldError(field="trace", value=None, message=say("Given beside regions."), allowed=allowed))
    names = [str(region.get("name", "")) for region in raw]
    linked = any(region.get("fallback") for region in raw)
    regions = []
    for place, region in enumerate(raw):
        own: list[FieldError] = _unknown(region, REGION_MEMBERS)
        own += _name_faults(region.get("name"), names[:place])
        joined = _with_common(region, params, place)
        fallback = _fallback(region, names, own)
        read = _read_region(joined, question, own, has, name=names[place], fallback=fallback, linked=linked, raw=region)
        faults += [_inside(f"regions.{place}", fault) for fault in own]
        if read is not None:
            regions.append(read)
    if sum(region.traffic.expected_requests for region in regions if region.traffic is not None) > MOST_REQUESTS:
        allowed = f"up to {MOST_REQUESTS:,} requests in all regions"
        faults.append(FieldError(field="regions", value=None, message=say("Too many requests."), allowed=allowed))
    return tuple(regions)


def _name_faults(name: object, before: Sequence[str]) -> list[FieldError]:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        allowed = f"a text of 1 to {LONGEST_NAME} characters"
        return [FieldError(field="name", value=name, message=say("Not a name."), allowed=allowed)]
    if name in before:
        return [FieldError(field="name", value=name, message=say("Named twice."), allowed="another name")]
    return []


def _with_common(region: Mapping[str, Any], params: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The region's parts over the common ones; a common seed gives each region traffic of its own."""
    joined: dict[str, Any] = {"question": params.get("question")}
    for part in ("scenario", "traffic"):
        common, own = params.get(part, {}), region.get(part, {})
        both = isinstance(common, Mapping) and isinstance(own, Mapping)
        joined[part] = {**common, **own} if both else own
        if both and isinstance(common.get("seed", 0), int) and "seed" not in own:
            joined[part]["seed"] = common.get("seed", 0) + place
    if "trace" in region:
        joined["trace"] = region["trace"]
        if "traffic" not in region:
            del joined["traffic"]
    return joined


def _fallback(region: Mapping[str, Any], names: Sequence[str], faults: list[FieldError]) -> tuple[int, ...]:
    raw = region.get("fallback", [])
    others = [name for name in names if name != region.get("name")]
    if not isinstance(raw, list) or len(raw) > MAX_FALLBACKS or any(name not in others for name in raw):
        allowed = f"up to {MAX_FALLBACKS} of: {', '.join(others) or 'no other region'}"
        faults.append(
            FieldError(field="fallback", value=None, message=say("Not names of other regions."), allowed=allowed)
        )
        return ()
    return tuple(names.index(name) for name in raw)


def _read_region(
    parts: Mapping[str, Any],
    question: InferenceQuestion | None,
    faults: list[FieldError],
    has: Callable[[str], bool],
    *,
    name: str,
    fallback: tuple[int, ...] = (),
    linked: bool = False,
    raw: Mapping[str, Any] | None = None,
) -> Region | None:
    scenario = read_part("scenario", SimulationQuestion, parts.get("scenario", {}), faults)
    trace, traffic = parts.get("trace"), None
    if trace is None:
        asked = parts.get("traffic", {})
        if question is not None and not faults and isinstance(asked, Mapping):
            try:
                option = parts.get("scenario", {}).get("option", "")
                asked = traffic_of_plan(parts["question"], question, asked, option, at_given_times=linked)
            except InvalidQuestion as invalid:
                faults += invalid.errors
        traffic = read_part("traffic", TrafficQuestion, asked, faults)
        if traffic is not None:
            faults += too_many_requests(traffic, MOST_REQUESTS)
            faults += _cant_wait(traffic) if linked else []
    elif "traffic" in parts:
        faults.append(
            FieldError(
                field="traffic",
                value=None,
                message=say("Given beside a trace."),
                allowed=say("one of traffic and trace"),
            )
        )
    elif not isinstance(trace, str) or not has(trace):
        faults.append(
            FieldError(
                field="trace", value=trace, message=say("No such trace."), allowed=say("the id of an uploaded trace")
            )
        )
    round_trip_ms = _bounded(raw or {}, "round_trip_ms", 0.0, 60_000.0, faults)
    spill = _bounded(raw or {}, "spill_outstanding", 1, 1_000_000, faults)
    if scenario is None or faults:
        return None
    return Region(
        name=name,
        scenario=scenario,
        traffic=traffic,
        trace=trace,
        fallback=fallback,
        round_trip_ms=round_trip_ms or 0.0,
        spill_outstanding=None if spill is None else int(spill),
    )


def _cant_wait(traffic: TrafficQuestion) -> list[FieldError]:
    if traffic.clients is None:
        return []
    message = say("Regions that take each other's requests get them at given times.")
    allowed = say("a mean load, or regions without fallback")
    return [FieldError(field="traffic.clients", value=traffic.clients, message=message, allowed=allowed)]


def _bounded(
    raw: Mapping[str, Any], name: str, low: float, high: float, faults: list[FieldError]
) -> float | int | None:
    value = raw.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, type(low) | int) or not low <= value <= high:
        faults.append(
            FieldError(
                field=name,
                value=value,
                message="Out of range.",
                allowed=say("{low:g} to {high:,g}", low=low, high=high),
            )
        )
        return None
    return value


def _read_question(raw: object, faults: list[FieldError]) -> InferenceQuestion | None:
    if not isinstance(raw, Mapping):
        allowed = "an inference question, as for a plan"
        faults.append(FieldError(field="question", value=raw, message="Not a JSON object.", allowed=allowed))
        return None
    try:
        check_json_types(InferenceQuestion, raw)
        question = parse_question(InferenceQuestion, raw)
        resolve_model(question)
    except InvalidQuestion as error:
        faults += [_inside("question", fault) for fault in error.errors]
        return None
    return question


def read_part(name: str, input_type: type[Fields], raw: object, faults: list[FieldError]) -> Fields | None:
    """One part of a job's parameters as values; what is wrong is added to ``faults``, None where it can't be read."""
    if not isinstance(raw, Mapping):
        faults.append(FieldError(field=name, value=raw, message="Not a JSON object.", allowed="a JSON object"))
        return None
    try:
        check_json_types(input_type, raw)
        return parse_question(input_type, raw)
    except InvalidQuestion as invalid:
        faults += [_inside(name, fault) for fault in invalid.errors]
        return None


def _inside(part: str, fault: FieldError) -> FieldError:
    return FieldError(
        field=f"{part}.{fault.field}",
        value=fault.value,
        message=fault.message,
        allowed=fault.allowed,
        code=fault.code,
    )


def too_many_requests(traffic: TrafficQuestion | None, most: int) -> list[FieldError]:
    """The fault of traffic that is more than ``most`` requests, with the length that would do."""
    requests = 0.0 if traffic is None else traffic.expected_requests
    if traffic is None or requests <= most:
        return []
    hours = traffic.hours * most / requests
    allowed = f"up to {hours:.4g} h at this load ({most:,} requests)"
    return [FieldError(field="traffic.hours", value=traffic.hours, message=say("Too many requests."), allowed=allowed)]


SIMULATION = SpreadKind(
    check=check_simulation,
    execute=in_worker("planner.services.simulation_run.run_simulation"),
    execute_part=part_in_worker("planner.services.simulation_parts.serve_part"),
)
