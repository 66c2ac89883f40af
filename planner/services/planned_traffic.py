"""What a simulation's traffic takes from its plan where the question states no rate: what its clients are served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.traffic_question import traffic_like
from planner.engine.workload import InferenceQuestion
from planner.services.plan_options import chosen_option
from planner.services.planning import plan_inference


def traffic_of_plan(
    raw: Mapping[str, Any], question: InferenceQuestion, given: Mapping[str, Any], option: object = ""
) -> dict[str, Any]:
    """The ``given`` fields of traffic, and where they say nothing the plan's load and lengths.

    A fixed number of clients sends what the option serves them. Raises ``InvalidQuestion`` where nothing does.
    """
    if question.concurrency is None or "requests_per_second" in given:
        return traffic_like(question, given)
    try:
        plan = plan_inference(raw)
    except InvalidQuestion as invalid:
        faults = [replace(fault, field=f"question.{fault.field}") for fault in invalid.errors]
        raise InvalidQuestion(faults) from invalid
    try:
        wanted = chosen_option(plan, option if isinstance(option, str) else "")
    except InvalidQuestion as invalid:
        field = "scenario.option" if plan.options else "question"
        raise InvalidQuestion([replace(fault, field=field) for fault in invalid.errors]) from invalid
    return traffic_like(question, {"requests_per_second": float(f"{wanted.speed.peak_requests_s:.4g}"), **given})
