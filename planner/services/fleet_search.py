"""The smallest fleet of a plan's option that holds the SLO for a given traffic, by simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.simulate.capacity import CapacitySearch, meets
from planner.engine.simulate.question import SimulationQuestion
from planner.services.simulation import PlannedCluster, Simulation, Told, TrafficSource

MOST_REPLICAS: Final = 4096


def smallest_fleet(
    cluster: PlannedCluster,
    source: TrafficSource,
    settings: SimulationQuestion,
    *,
    keep_requests: bool = False,
    told: Told | None = None,
) -> Simulation:
    """Simulate ever better sizes, and return the smallest that meets the question's limits, with all that was tried.

    Raises ``InvalidQuestion`` where the question has no limits, or no size up to ``MOST_REPLICAS`` meets them.
    """
    question = cluster.question
    if question.ttft_ms is None and question.tpot_ms is None:
        raise InvalidQuestion([_no_limits()])
    search = CapacitySearch(start=settings.replicas or cluster.option.layout.replicas, most=MOST_REPLICAS)
    points: dict[int, dict[str, Any]] = {}
    while sizes := search.ask():
        met = {}
        for size in sizes:
            simulation = cluster.run(source, replace(settings, replicas=size), told=told)
            met[size] = holds(cluster, simulation)
            points[size] = search_point(cluster, simulation, replicas=size, met=met[size])
        search.tell(met)
    if search.answer is None:
        raise InvalidQuestion([_never_met(question.slo_percentile)])
    best = cluster.run(source, replace(settings, replicas=search.answer), keep_requests=keep_requests, told=told)
    found = {"replicas": search.answer, "percentile": question.slo_percentile, "tried": _in_order(points)}
    return replace(best, document=best.document | {"search": found})


def holds(cluster: PlannedCluster, simulation: Simulation) -> bool:
    """Whether a run meets the question's limits at its percentile, with every request answered."""
    question = cluster.question
    return meets(
        simulation.outcome,
        ttft_s=None if question.ttft_ms is None else question.ttft_ms / 1e3,
        tpot_s=None if question.tpot_ms is None else question.tpot_ms / 1e3,
        percentile=question.slo_percentile,
    )


def search_point(cluster: PlannedCluster, simulation: Simulation, *, replicas: int, met: bool) -> dict[str, Any]:
    """One size on the chart of SLO attainment against cost."""
    document, at = simulation.document, cluster.question.slo_percentile
    return {
        "replicas": replicas,
        "met": met,
        "ttft_ms": document["ttft_ms"][at],
        "tpot_ms": document["tpot_ms"][at],
        "goodput_share": document["goodput"]["share"],
        "goodput_requests_s": document["goodput"]["requests_s"],
        "gpu_hours": document["gpu_hours"],
        "cost_usd": document["cost_usd"],
    }


def _in_order(points: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    return [points[size] for size in sorted(points)]


def _no_limits() -> FieldError:
    return FieldError(
        field="ttft_ms",
        value=None,
        message="A smallest fleet needs a limit to hold.",
        allowed="ttft_ms, tpot_ms or both",
        code="required",
    )


def _never_met(percentile: str) -> FieldError:
    return FieldError(
        field="ttft_ms",
        value=None,
        message=f"No fleet of up to {MOST_REPLICAS:,} replicas holds the limits at {percentile} for this traffic.",
        allowed="looser limits, or another option",
        code="never_met",
    )
