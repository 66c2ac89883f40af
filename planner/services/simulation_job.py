"""The job ``simulation``: one option of an inference plan, serving generated traffic or an uploaded trace.

Checking needs no simulator, so that any process may start the job; running it is the workers' part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion, parse_question
from planner.services.json_input import check_json_types
from planner.services.planning import resolve_model
from planner.services.run_kind import RunKind, in_worker
from planner.services.stored_traces import has_trace

MEMBERS = ("question", "scenario", "traffic", "trace")
MOST_REQUESTS = 20_000_000
"""Generated in one run: some minutes of one core."""

Fields = TypeVar("Fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationJob:
    """The job's parameters, checked."""

    question: Mapping[str, Any]
    scenario: SimulationQuestion
    traffic: TrafficQuestion | None
    """What to generate; None where a trace is served."""
    trace: str | None
    """Which stored trace."""


def check_simulation(params: Mapping[str, Any]) -> None:
    """Raise ``InvalidQuestion`` for parameters that a worker would refuse before simulating."""
    read_simulation(params)


def read_simulation(params: Mapping[str, Any]) -> SimulationJob:
    """Parameters: ``question`` (as for a plan), ``scenario``, and either ``traffic`` or ``trace``.

    Raises ``InvalidQuestion`` with every fault, named ``question.FIELD``, ``scenario.FIELD``, ``traffic.FIELD``.
    """
    faults = [
        FieldError(
            field=name,
            value=params[name],
            message="Unknown field.",
            allowed=f"One of: {', '.join(MEMBERS)}",
            code="unknown_field",
        )
        for name in params
        if name not in MEMBERS
    ]
    faults += _question_faults(params.get("question"))
    scenario = _read_part("scenario", SimulationQuestion, params.get("scenario", {}), faults)
    trace = params.get("trace")
    traffic = None
    if trace is None:
        traffic = _read_part("traffic", TrafficQuestion, params.get("traffic", {}), faults)
        if traffic is not None:
            faults += _too_many(traffic)
    elif "traffic" in params:
        faults.append(
            FieldError(field="traffic", value=None, message="Given beside a trace.", allowed="one of traffic and trace")
        )
    elif not isinstance(trace, str) or not has_trace(trace):
        faults.append(
            FieldError(field="trace", value=trace, message="No such trace.", allowed="the id of an uploaded trace")
        )
    if faults or scenario is None:
        raise InvalidQuestion(faults)
    return SimulationJob(question=params["question"], scenario=scenario, traffic=traffic, trace=trace)


def _question_faults(question: object) -> list[FieldError]:
    if not isinstance(question, Mapping):
        allowed = "an inference question, as for a plan"
        return [FieldError(field="question", value=question, message="Not a JSON object.", allowed=allowed)]
    try:
        check_json_types(InferenceQuestion, question)
        resolve_model(parse_question(InferenceQuestion, question))
    except InvalidQuestion as error:
        return [_inside("question", fault) for fault in error.errors]
    return []


def _read_part(name: str, input_type: type[Fields], raw: object, faults: list[FieldError]) -> Fields | None:
    """One part of the parameters as values; what is wrong is added to ``faults``."""
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


def _too_many(traffic: TrafficQuestion) -> list[FieldError]:
    requests = traffic.requests_per_second * traffic.duration_s
    if requests <= MOST_REQUESTS:
        return []
    hours = traffic.hours * MOST_REQUESTS / requests
    allowed = f"up to {hours:.4g} h at this load ({MOST_REQUESTS:,} requests)"
    return [FieldError(field="traffic.hours", value=traffic.hours, message="Too many requests.", allowed=allowed)]


SIMULATION = RunKind(check=check_simulation, execute=in_worker("planner.services.simulation_run.run_simulation"))
