"""Traffic like a plan's: its load or its clients, and lengths whose means are the asked ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.engine.field_spec import specs
from planner.engine.simulate.traffic_question import MOST_QUEUED, OPEN_ONLY, TrafficQuestion
from planner.engine.sizing import cached_tokens, demand_of
from planner.engine.workload import InferenceQuestion

BLOCK_TOKENS = 16
"""Whole blocks of a prompt are found cached."""
LONGEST_DEVIATIONS = 20.0
"""Above the mean: the few that are longer are cut."""


def says_when(given: Mapping[str, Any]) -> bool:
    """Whether ``given`` fields of traffic describe when requests come, as an open loop has it.

    >>> says_when({"hours": 2.0, "daily_peak": 1.0}), says_when({"daily_peak": 2.0})
    (False, True)
    """
    return any(name in given and given[name] != specs(TrafficQuestion)[name][1] for name in OPEN_ONLY)


def is_job(given: Mapping[str, Any]) -> bool:
    """Whether requests of an offline job come at once: nothing ``given`` says that they come over time.

    >>> is_job({"input_median": 90.0, "hours": 1.0}), is_job({"hours": 2.0}), is_job({"requests_per_second": 5.0})
    (True, False, False)
    """
    if given.get("clients") is not None or "requests_per_second" in given or says_when(given):
        return False
    default = specs(TrafficQuestion)["hours"][1]
    return bool(given.get("hours", default) == default)


def traffic_like(question: InferenceQuestion, given: Mapping[str, Any]) -> dict[str, Any]:
    """The ``given`` fields of traffic, and where they say nothing the question's mean load and its lengths, fixed.

    Gaps scatter as the question's arrivals and answers as its answers do; a prefix that all requests share is one of
    the traffic's. A side whose median is given keeps its default spread; a fixed number of clients stays one, unless a
    rate is given; an offline job (or as much of it as one run holds) is queued at once, unless something
    given says that it comes over time.

    >>> asked = InferenceQuestion(model="m", requests_per_second=10.0, input_tokens=1024, output_tokens=256)
    >>> like = traffic_like(asked, {"hours": 0.1, "output_median": 90.0})
    >>> like["requests_per_second"], like["input_median"], like["input_sigma"], like["output_median"]
    (10.0, 1024.0, 0.0, 90.0)
    """
    asked: dict[str, Any] = {}
    rate = demand_of(question).mean_requests_s
    if given.get("requests") is not None:
        pass
    elif question.offline_requests is not None and is_job(given):
        asked["requests"] = min(question.offline_requests, MOST_QUEUED)
    elif question.concurrency is not None and "requests_per_second" not in given:
        asked["clients"] = question.concurrency
    elif rate > 0 and given.get("clients") is None:
        asked["requests_per_second"] = float(f"{rate:.6g}")
    over_time = given.get("clients") is None and given.get("requests") is None
    if "clients" not in asked and question.offline_requests is None and over_time:
        asked["gap_cv"] = question.arrival_cv
    if "input_median" not in given and not given.get("input_lengths"):
        shared = 0
        if question.prefix_kind == "shared" and "prefixes" not in given:
            shared = cached_tokens(question, BLOCK_TOKENS)
        if shared:
            asked |= {"prefixes": 1, "prefix_tokens": shared}
        asked |= _lengths("input", question.input_tokens - shared, 0.0)
    if "output_median" not in given and not given.get("output_lengths"):
        asked |= _lengths("output", question.output_tokens, question.output_cv)
    return asked | dict(given)


def _lengths(side: str, mean_tokens: int, cv: float) -> dict[str, Any]:
    """Lognormal lengths of a mean and a coefficient of variation; what is asked for is never cut by the default."""
    spec, longest = specs(TrafficQuestion)[f"{side}_max"]
    spread = 1.0 + cv**2
    high = max(longest, min(math.ceil(mean_tokens * (1.0 + LONGEST_DEVIATIONS * cv)), int(spec.maximum or longest)))
    return {
        f"{side}_median": float(f"{mean_tokens / math.sqrt(spread):.6g}"),
        f"{side}_sigma": float(f"{math.sqrt(math.log(spread)):.6g}"),
        f"{side}_max": high,
    }
