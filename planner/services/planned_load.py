"""The load that a plan is sized for, as the traffic of a search for its smallest fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from planner.engine.errors import InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.sentences import Sentence, say
from planner.engine.sizing import demand_of
from planner.engine.workload import InferenceQuestion

AS_GIVEN: Final = say("Sized for this traffic as it is: no peak factor or headroom is added.")
"""Of traffic that states its own load, of a trace, and of clients that wait for their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoad:
    """A mean load whose busiest hour is the plan's peak and what its headroom keeps free beyond it."""

    requests_s: float
    mean_requests_s: float
    """Of the question."""
    peak_factor: float
    headroom: float

    @property
    def sentence(self) -> Sentence:
        """What it is, for a reader."""
        return say(
            "Sized for {load:,.4g} requests/s, as the plan is: {mean:,.4g} on average, peak factor {factor:g}, "
            "{free:.0%} of capacity kept free.",
            load=self.requests_s,
            mean=self.mean_requests_s,
            factor=self.peak_factor,
            free=self.headroom,
        )


def planned_load(question: InferenceQuestion, *, daily_peak: float = 1.0) -> PlannedLoad | None:
    """What the question's plan is sized for; None where clients wait for their answers, or a job has no peak.

    Traffic whose busiest hour is ``daily_peak`` times its mean has that much of the peak factor itself.

    >>> question = InferenceQuestion(model="m", requests_per_second=4.0, peak_factor=2.0, headroom=0.2)
    >>> planned_load(question).requests_s, planned_load(question, daily_peak=2.0).requests_s
    (10.0, 5.0)
    """
    demand = demand_of(question)
    if demand.clients or demand.is_offline or demand.mean_requests_s <= 0:
        return None
    beyond = max(question.peak_factor / daily_peak, 1.0) / (1.0 - question.headroom)
    return PlannedLoad(
        requests_s=float(f"{demand.mean_requests_s * beyond:.6g}"),
        mean_requests_s=demand.mean_requests_s,
        peak_factor=question.peak_factor,
        headroom=question.headroom,
    )


def at_planned_load(params: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sentence]:
    """A search's parameters, with the load that the plan is sized for where they state none; and which load it is."""
    traffic = params.get("traffic")
    load = None
    if "trace" not in params and isinstance(traffic or {}, Mapping):
        traffic = dict(traffic or {})
        load = _load_of(params.get("question"), traffic)
    if load is None:
        return params, AS_GIVEN
    return {**params, "traffic": {**(traffic or {}), "requests_per_second": load.requests_s}}, load.sentence


def _load_of(raw: object, traffic: Mapping[str, Any]) -> PlannedLoad | None:
    if not isinstance(raw, Mapping) or traffic.get("clients") is not None or "requests_per_second" in traffic:
        return None
    try:
        question = parse_question(InferenceQuestion, raw)
    except InvalidQuestion:
        # Its faults are told where the question is read.
        return None
    daily_peak = traffic.get("daily_peak", 1.0)
    known = isinstance(daily_peak, int | float) and not isinstance(daily_peak, bool) and daily_peak >= 1
    return planned_load(question, daily_peak=daily_peak if known else 1.0)
