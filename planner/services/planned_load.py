"""The load that a plan is sized for, as the traffic of a search for its smallest fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from planner.engine.errors import InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.sentences import Sentence, say
from planner.engine.simulate.traffic_like import is_job
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.sizing import demand_of
from planner.engine.workload import InferenceQuestion
from planner.services.simulated_job import sized_for

AS_GIVEN: Final = say("Sized for this traffic as it is: no peak factor or headroom is added.")
"""Of traffic that states its own load, of a trace, and of clients that wait for their answers."""


PEAKS: Final = ("daily_peak", "rates", "rate_s")
"""Fields of traffic that give it a busiest hour."""


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

    def sentence_of_regions(self, *, all_of_them: bool) -> Sentence:
        """What those regions are sized for that state no load of their own."""
        values = {"mean": self.mean_requests_s, "factor": self.peak_factor, "free": self.headroom}
        if all_of_them:
            return say(
                "Each region is sized as the plan is: {mean:,.4g} requests/s on average, peak factor {factor:g}, "
                "{free:.0%} of capacity kept free.",
                **values,
            )
        return say(
            "Regions that state no load are sized as the plan is: {mean:,.4g} requests/s on average, peak factor "
            "{factor:g}, {free:.0%} of capacity kept free; the others for their traffic as it is.",
            **values,
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
    question, common = _question(params.get("question")), params.get("traffic") or {}
    if question is None or not isinstance(common, Mapping):
        return params, AS_GIVEN
    if "regions" in params:
        return _regions_at_planned_load(params, question, common)
    if "trace" in params:
        return params, AS_GIVEN
    if question.offline_requests is not None and (common.get("requests") or is_job(common)):
        return params, sized_for(question)
    load = _load_of(question, common)
    if load is None:
        return params, AS_GIVEN
    return {**params, "traffic": {**common, "requests_per_second": load.requests_s}}, load.sentence


def _regions_at_planned_load(
    params: Mapping[str, Any], question: InferenceQuestion, common: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Sentence]:
    """The same for each region: one that states a load, or has a trace, keeps it."""
    regions = params["regions"]
    if not isinstance(regions, list):
        return params, AS_GIVEN
    loads = [_load_of_region(question, common, region) for region in regions]
    planned = next((load for load in loads if load is not None), None)
    if planned is None:
        return params, AS_GIVEN
    sized = [
        region
        if load is None
        else {**region, "traffic": {**region.get("traffic", {}), "requests_per_second": load.requests_s}}
        for region, load in zip(regions, loads, strict=True)
    ]
    return {**params, "regions": sized}, planned.sentence_of_regions(all_of_them=None not in loads)


def _load_of_region(question: InferenceQuestion, common: Mapping[str, Any], region: object) -> PlannedLoad | None:
    own = region.get("traffic", {}) if isinstance(region, Mapping) else None
    if not isinstance(region, Mapping) or "trace" in region or not isinstance(own, Mapping):
        return None
    return _load_of(question, {**common, **own})


def _question(raw: object) -> InferenceQuestion | None:
    if not isinstance(raw, Mapping):
        return None
    try:
        return parse_question(InferenceQuestion, raw)
    except InvalidQuestion:
        # Its faults are told where the question is read.
        return None


def _load_of(question: InferenceQuestion, traffic: Mapping[str, Any]) -> PlannedLoad | None:
    if traffic.get("clients") is not None or "requests_per_second" in traffic or traffic.get("requests") is not None:
        return None
    try:
        busiest = parse_question(TrafficQuestion, {name: traffic[name] for name in PEAKS if name in traffic})
    except InvalidQuestion:
        # Its faults are told where the traffic is read.
        return planned_load(question)
    return planned_load(question, daily_peak=busiest.busiest_hour)
