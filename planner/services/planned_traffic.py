"""What a simulation's traffic takes from its plan: its load, its clients, or what those are served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.traffic_like import says_when, traffic_like
from planner.engine.simulate.traffic_question import MOST_CLIENTS
from planner.engine.workload import InferenceQuestion
from planner.services.plan_options import chosen_option
from planner.services.planning import plan_inference


def traffic_of_plan(
    raw: Mapping[str, Any],
    question: InferenceQuestion,
    given: Mapping[str, Any],
    option: object = "",
    *,
    at_given_times: bool = False,
) -> dict[str, Any]:
    """The ``given`` fields of traffic, and where they say nothing the plan's load and lengths.

    A fixed number of clients stays one that waits for its answers, unless requests must come ``at_given_times``, the
    traffic says when they do, or the clients are too many for one run: then as many come as the option serves such
    clients. Raises ``InvalidQuestion`` where nothing does.
    """
    if question.concurrency is None or "requests_per_second" in given or given.get("clients") is not None:
        return traffic_like(question, given)
    if not at_given_times and not says_when(given) and question.concurrency <= MOST_CLIENTS:
        return traffic_like(question, given)
    try:
        plan = plan_inference(raw)
    except InvalidQuestion as invalid:
        faults = [fault.inside("question") for fault in invalid.errors]
        raise InvalidQuestion(faults) from invalid
    try:
        wanted = chosen_option(plan, option if isinstance(option, str) else "")
    except InvalidQuestion as invalid:
        field = "scenario.option" if plan.options else "question"
        raise InvalidQuestion([replace(fault, field=field) for fault in invalid.errors]) from invalid
    return traffic_like(question, {"requests_per_second": float(f"{wanted.speed.peak_requests_s:.4g}"), **given})
