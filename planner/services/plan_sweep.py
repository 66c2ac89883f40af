"""The job ``plan_sweep``: one inference question planned again and again under more and more load.

It answers what a single plan can't: how cost and speed move with the traffic, and where another node is due.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.engine.answers import InferenceOption, InferencePlan, Rejection
from planner.engine.errors import FieldError, InvalidQuestion, unknown_fields
from planner.engine.field_spec import specs
from planner.engine.question_reading import parse_question
from planner.engine.sentences import say
from planner.engine.workload import InferenceQuestion
from planner.models import User
from planner.services.job_question import read_job_question
from planner.services.plan_json import plain
from planner.services.planning import plan_inference
from planner.services.run_kind import ReportProgress, RunKind

TRAFFIC_FIELDS = ("requests_per_second", "users", "concurrency", "offline_requests")
"""A question states one of these; the sweep multiplies it."""
COUNTED = ("concurrency", "offline_requests")
"""Those of them that are whole numbers."""
MOST_POINTS = 50
LOWEST_FACTOR, HIGHEST_FACTOR = 1e-3, 1e3
STAGES = (
    *("engine", "weight_format", "layout", "memory", "kv_memory", "ttft_slo", "tpot_slo"),
    *("replicas", "available_nodes", "max_nodes", "budget"),
)
"""What options are tried on, in order: one that breaks late came closer to serving than one that breaks early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The job's parameters, checked."""

    question: Mapping[str, Any]
    lowest: float
    highest: float
    points: int

    def factors(self) -> list[float]:
        """Multiples of the asked load, evenly spaced in ratio.

        >>> Sweep(question={}, lowest=0.25, highest=4, points=5).factors()
        [0.25, 0.5, 1.0, 2.0, 4.0]
        """
        # Rounded, so that a point at the asked load is at exactly that load.
        return [float(f"{factor:.6g}") for factor in np.geomspace(self.lowest, self.highest, self.points)]


def check_sweep(params: Mapping[str, Any], owner: User | None) -> None:
    """Raise ``InvalidQuestion`` for parameters that ``run_sweep`` would refuse."""
    read_sweep(params)


def read_sweep(params: Mapping[str, Any]) -> Sweep:
    """Parameters: ``question``, and optionally ``lowest`` (0.25), ``highest`` (8) and ``points`` (12).

    Raises ``InvalidQuestion`` with every fault; those of the question are named ``question.FIELD``.
    """
    faults = unknown_fields(params, ("question", "lowest", "highest", "points"))
    question = params.get("question")
    read_job_question(question, faults)
    factor_range = say("{least:g} to {most:g} times the asked load", least=LOWEST_FACTOR, most=HIGHEST_FACTOR)
    lowest, highest, points = params.get("lowest", 0.25), params.get("highest", 8.0), params.get("points", 12)
    for name, factor in (("lowest", lowest), ("highest", highest)):
        if not _is_number(factor) or not LOWEST_FACTOR <= factor <= HIGHEST_FACTOR:
            faults.append(FieldError(field=name, value=factor, message="Out of range.", allowed=factor_range))
    if not isinstance(points, int) or isinstance(points, bool) or not 2 <= points <= MOST_POINTS:
        allowed = say("a whole number from {least} to {most}", least=2, most=MOST_POINTS)
        faults.append(FieldError(field="points", value=points, message="Out of range.", allowed=allowed))
    if not faults and lowest >= highest:
        faults.append(
            FieldError(
                field="highest", value=highest, message="Not above lowest.", allowed=say("> {lowest:g}", lowest=lowest)
            )
        )
    if faults or not isinstance(question, Mapping):
        raise InvalidQuestion(faults)
    return Sweep(question=question, lowest=lowest, highest=highest, points=points)


def run_sweep(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
    """Plan every point; the result lists them by rising load, each with its best option or why there is none."""
    sweep = read_sweep(params)
    asked = parse_question(InferenceQuestion, sweep.question)
    (field,) = [name for name in TRAFFIC_FIELDS if getattr(asked, name) is not None]
    loads = _loads(sweep, field, getattr(asked, field))
    points: list[dict[str, Any]] = []
    catalog_version = ""
    for done, (factor, load) in enumerate(loads.items()):
        report(done / len(loads), f"Planning {factor:.3g} times the load")
        plan = plan_inference(dict(sweep.question) | {field: load, "max_options": 1})
        catalog_version = plan.catalog_version
        points.append({"load": load, **_point(factor, plan)})
    return {"catalog_version": catalog_version, "traffic_field": field, "points": points}


def _loads(sweep: Sweep, field: str, asked: float) -> dict[float, float | int]:
    """The loads to plan by their multiple of the asked one, each once: none beyond what a question may state."""
    spec = specs(InferenceQuestion)[field][0]
    low, high = spec.minimum or 0.0, spec.maximum or math.inf
    loads = (min(max(_scaled(field, asked, factor), low), high) for factor in sweep.factors())
    return {float(f"{load / asked:.6g}"): load for load in dict.fromkeys(loads)}


def _scaled(field: str, asked: float, factor: float) -> float | int:
    load = asked * factor
    return max(1, round(load)) if field in COUNTED else load


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _point(factor: float, plan: InferencePlan) -> dict[str, Any]:
    return {
        "load_factor": factor,
        "mean_requests_s": plan.mean_requests_s,
        "peak_requests_s": plan.peak_requests_s,
        "best": _best(plan.options[0]) if plan.options else None,
        "reason": None if plan.options else _reason(plan.rejections),
    }


def _reason(rejections: Sequence[Rejection]) -> str:
    """What the options that came closest broke on, and the one that was the least over."""
    tried = [rejection for rejection in rejections if not rejection.code.startswith("filter_")]
    if not tried:
        return "No offer passes the filters."
    closest = max(tried, key=lambda rejection: (_stage(rejection), -_excess(rejection)))
    return f"{closest.subject}: {closest.reason}"


def _stage(rejection: Rejection) -> int:
    return STAGES.index(rejection.code) if rejection.code in STAGES else -1


def _excess(rejection: Rejection) -> float:
    """By what factor an option is over its limit."""
    if rejection.value is None or not rejection.limit:
        return math.inf
    return rejection.value / rejection.limit


def _best(option: InferenceOption) -> dict[str, Any]:
    cluster, price, speed = option.cluster, option.price, option.speed
    chosen: dict[str, Any] = plain(
        {
            "job": option.job,
            "provider": cluster.provider,
            "region": cluster.region,
            "country": cluster.country,
            "instance_type": cluster.instance_type,
            "accelerator_name": cluster.accelerator_name,
            "nodes": cluster.nodes,
            "gpus_used": cluster.gpus_used,
            "gpus_billed": cluster.gpus_billed,
            "replicas": option.layout.replicas,
            "usd_per_hour": price.usd_per_hour,
            "usd_per_month": price.usd_per_month,
            "usd_per_million_output": option.usd_per_million_output,
            "ttft_ms": speed.ttft_ms,
            "tpot_ms": speed.tpot_ms,
            "utilization": speed.utilization,
            "limit": option.limit,
        }
    )
    return chosen


PLAN_SWEEP = RunKind(check=check_sweep, execute=run_sweep)
