"""One region of a simulation: its scenario and the traffic or trace that comes to its gateway, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.sentences import say
from planner.engine.simulate.planned_fleet import check_batching, check_settings
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.generated_traffic import MOST_REQUESTS
from planner.services.json_input import check_json_types
from planner.services.planned_traffic import traffic_of_plan

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

    @property
    def lasts_s(self) -> float:
        """How long its traffic was asked for; 0 of a trace, or of a job."""
        return 0.0 if self.traffic is None else self.traffic.lasts_s


def longest_s(regions: Sequence[Region]) -> float:
    """How long the traffic of any region was asked for: so long all are kept."""
    return max(region.lasts_s for region in regions)


def read_region(
    parts: Mapping[str, Any],
    question: InferenceQuestion | None,
    faults: list[FieldError],
    has: Callable[[str], bool],
    *,
    name: str,
    fallback: tuple[int, ...] = (),
    linked: bool = False,
    raw: Mapping[str, Any] | None = None,
    searched: bool = False,
) -> Region | None:
    """A region of a job's parameters, its ``raw`` members read beside them; what is wrong is added to ``faults``.

    ``linked`` says that regions take each other's requests; ``has`` which traces there are; ``searched`` that the
    autoscaler's target is.
    """
    scenario = read_part("scenario", SimulationQuestion, parts.get("scenario", {}), faults)
    if scenario is not None:
        try:
            check_settings(scenario, searched=searched)
        except InvalidQuestion as invalid:
            faults += [fault.inside("scenario") for fault in invalid.errors]
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
    if scenario is not None and question is not None:
        faults += [fault.inside("question") for fault in check_batching(question, scenario)]
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


def read_part(name: str, input_type: type[Fields], raw: object, faults: list[FieldError]) -> Fields | None:
    """One part of a job's parameters as values; what is wrong is added to ``faults``, None where it can't be read."""
    if not isinstance(raw, Mapping):
        faults.append(
            FieldError(field=name, value=raw, message=say("Not a JSON object."), allowed=say("a JSON object"))
        )
        return None
    try:
        check_json_types(input_type, raw)
        return parse_question(input_type, raw)
    except InvalidQuestion as invalid:
        faults += [fault.inside(name) for fault in invalid.errors]
        return None


def too_many_requests(traffic: TrafficQuestion | None, most: int) -> list[FieldError]:
    """The fault of traffic that is more than ``most`` requests, with the length that would do."""
    requests = 0.0 if traffic is None else traffic.expected_requests
    if traffic is None or requests <= most:
        return []
    if traffic.requests is not None:
        queued = say("up to {most:,} requests", most=most)
        message = say("Too many requests.")
        return [FieldError(field="traffic.requests", value=traffic.requests, message=message, allowed=queued)]
    hours = traffic.hours * most / requests
    # Where the load falls, the first hours have more of it.
    while replace(traffic, hours=hours).expected_requests > most:
        hours *= 0.9
    allowed = say("up to {hours:,.4g} h at this load ({most:,} requests)", hours=hours, most=most)
    message = say("Too many requests: {requests:,.0f} in {hours:g} h.", requests=requests, hours=traffic.hours)
    return [FieldError(field="traffic.hours", value=traffic.hours, message=message, allowed=allowed)]
