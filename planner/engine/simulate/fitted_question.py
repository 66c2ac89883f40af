"""A fitted model of traffic as the question that asks for it, in the fields of a file or a request."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from planner.engine.field_spec import specs
from planner.engine.simulate.arrivals import FLAT_DAY
from planner.engine.simulate.lengths import Seen
from planner.engine.simulate.traffic_question import WORKDAYS, TrafficQuestion
from planner.engine.simulate.workload_model import TrafficModel


def traffic_question_of(model: TrafficModel, *, hours: float) -> TrafficQuestion:
    """The question that asks for traffic like ``model``'s.

    Values outside a field's bounds are cut to them, and all are rounded to four digits.

    >>> asked = TrafficQuestion(requests_per_second=3.0, daily_peak=2.0, gap_cv=1.5)
    >>> found = traffic_question_of(asked.model(), hours=24.0)
    >>> found.requests_per_second, found.daily_peak, found.peak_hour, found.gap_cv, found.input_median
    (3.0, 2.0, 14.0, 1.5, 700.0)
    """
    profile, bursts = model.arrivals.profile, model.arrivals.bursts
    mean_hour = sum(profile.by_hour) / len(profile.by_hour)
    workday = sum(profile.by_weekday[:WORKDAYS]) / WORKDAYS
    given: dict[str, Any] = {
        "requests_per_second": profile.mean_rate,
        "hours": hours,
        "gap_cv": model.arrivals.gap_cv,
        "daily_peak": max(profile.by_hour) / mean_hour,
        "peak_hour": float(profile.by_hour.index(max(profile.by_hour))),
        "weekend": sum(profile.by_weekday[WORKDAYS:]) / 2 / workday,
        "trend_per_week": profile.trend_per_week,
    }
    if profile.by_hour == FLAT_DAY:
        del given["peak_hour"]
    if bursts is not None:
        given |= {"burst_factor": bursts.busy_factor, "burst_share": bursts.busy_share, "burst_s": bursts.busy_s}
    if profile.steps:
        given |= {"rates": profile.steps, "rate_s": profile.step_s}
    for side, drawn in (("input", model.lengths.input_tokens), ("output", model.lengths.output_tokens)):
        if isinstance(drawn, Seen):
            given |= {f"{side}_median": float(np.median(drawn.tokens)), f"{side}_lengths": drawn.tokens}
        else:
            given |= {f"{side}_median": drawn.median, f"{side}_sigma": drawn.sigma, f"{side}_max": drawn.high}
    given["length_correlation"] = model.lengths.correlation
    if model.prefixes is not None:
        shared = model.prefixes
        given |= {"prefixes": shared.count, "prefix_tokens": shared.tokens, "prefix_zipf": shared.zipf}
        given |= {"prefix_share": shared.share, "prefix_lengths": shared.seen}
        given |= {"prefix_with_input": shared.with_input, "prefix_with_output": shared.with_output}
    return TrafficQuestion(**{name: _within(name, value) for name, value in given.items()})


def _within(name: str, value: Any) -> Any:
    spec, _ = specs(TrafficQuestion)[name]
    if spec.kind == "numbers":
        return tuple(min(max(each, spec.minimum or 0), spec.maximum or each) for each in value)
    bounded = min(max(value, spec.minimum or 0.0), spec.maximum if spec.maximum is not None else value)
    return round(bounded) if spec.kind == "integer" else float(f"{bounded:.4g}")


def changed_fields(question: TrafficQuestion) -> dict[str, Any]:
    """What differs from the defaults, as a file or a request says it; load and lengths always.

    A request that left those out would mean its plan's.
    """
    default = asdict(TrafficQuestion())
    load = "requests" if question.requests is not None else "requests_per_second"
    said = (load if question.clients is None else "clients", "input_median", "output_median")
    return {name: value for name, value in asdict(question).items() if name in said or value != default[name]}
