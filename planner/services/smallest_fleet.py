"""The search for the smallest fleet in this process: for commands, where no workers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.warm_up import warm_up
from planner.services.capacity_question import MOST_REPLICAS, CapacityQuestion
from planner.services.fleet_limits import never_met
from planner.services.fleet_search import Changes, FleetSearch, Share
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.served import Served
from planner.services.simulated_job import within_s
from planner.services.simulation import PlannedCluster, Simulation, TrafficSource, costs_of, serve


def smallest_fleet(
    cluster: PlannedCluster, source: TrafficSource, settings: SimulationQuestion, *, keep_requests: bool = False
) -> Simulation:
    """Simulate ever better sizes, and return the cheapest that meets the question's limits, with all that was tried.

    Raises ``InvalidQuestion`` where the question has no limits, or no size up to ``MOST_REPLICAS`` meets them.
    """
    search = FleetSearch(
        question=cluster.question,
        scenario=settings,
        start=cluster.option.layout.replicas,
        asked=CapacityQuestion(most_replicas=MOST_REPLICAS, parallel=1),
        bill=lambda served: costs_of(served, (cluster.option,)).usd,
        within_s=within_s(cluster.question, source.question) if isinstance(source, GeneratedTraffic) else None,
    )

    def serve_all(changes: Sequence[Changes], _share: Share) -> list[Served]:
        each = [replace(settings, **one) for one in changes]
        return [serve(cluster.fleet(source, one), source, one) for one in each]

    warm_up()
    search.run(serve_all)
    if search.smallest is None:
        raise InvalidQuestion([never_met(cluster.question.slo_percentile, MOST_REPLICAS)])
    best = cluster.run(source, replace(settings, **search.changes), keep_requests=keep_requests)
    return replace(best, document=best.document | {"search": search.document()})
