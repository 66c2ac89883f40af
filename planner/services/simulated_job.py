"""An offline job as a simulation has it: how long it takes, and within what time a fleet must be done."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from planner.engine.cost import CENT, HOURS_STEP, quantize
from planner.engine.sentences import Sentence, say
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.units import SECONDS_PER_HOUR
from planner.engine.workload import InferenceQuestion


def share_of_job(question: InferenceQuestion, traffic: TrafficQuestion | None) -> float | None:
    """How much of the question's job ``traffic`` queues at the beginning; None where it is no job's.

    >>> asked = InferenceQuestion(model="m", offline_requests=4_000_000, offline_hours=24.0)
    >>> share_of_job(asked, TrafficQuestion(requests=1_000_000)), share_of_job(asked, TrafficQuestion())
    (0.25, None)
    """
    if traffic is None or traffic.requests is None or question.offline_requests is None:
        return None
    return traffic.requests / question.offline_requests


def within_s(question: InferenceQuestion, traffic: TrafficQuestion | None) -> float | None:
    """In what time a fleet must be done with what is queued, headroom kept as the plan keeps it; None of no job.

    >>> asked = InferenceQuestion(model="m", offline_requests=1000, offline_hours=10.0, headroom=0.2)
    >>> within_s(asked, TrafficQuestion(requests=1000)) / 3600
    8.0
    """
    share = share_of_job(question, traffic)
    if share is None or question.offline_hours is None:
        return None
    return question.offline_hours * SECONDS_PER_HOUR * (1.0 - question.headroom) * share


def sized_for(question: InferenceQuestion) -> Sentence:
    """What a search for the smallest fleet of a job is sized for."""
    return say(
        "Sized to answer {requests:,} requests within {hours:g} h, {free:.0%} of that time kept free.",
        requests=question.offline_requests,
        hours=question.offline_hours,
        free=question.headroom,
    )


def job_report(
    question: InferenceQuestion, traffic: TrafficQuestion | None, duration_s: float, cost_usd: Decimal | str
) -> dict[str, Any] | None:
    """The whole job at the pace of what was simulated: hours until the last answer, and its cost; None of no job."""
    share = share_of_job(question, traffic)
    if share is None or traffic is None:
        return None
    return {
        "requests": question.offline_requests,
        "simulated_requests": traffic.requests,
        "hours": quantize(Decimal(repr(duration_s / SECONDS_PER_HOUR / share)), HOURS_STEP),
        "within_hours": question.offline_hours,
        "usd": quantize(Decimal(cost_usd) / Decimal(repr(share)), CENT),
    }
