"""Running the job ``capacity_search``: only workers import this module, for it brings in the compiled simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.services.capacity_job import read_capacity
from planner.services.fleet_search import Changes, FleetSearch, Share
from planner.services.plan_json import plain
from planner.services.run_kind import ReportProgress, Spread
from planner.services.served import Served, together, unpack
from planner.services.simulation import costs_of, describe
from planner.services.simulation_parts import Sites, sites_of
from planner.services.simulation_run import TIMED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workers:
    """Has runs made by whoever is free."""

    sites: Sites
    report: ReportProgress
    spread: Spread

    def serve_all(self, changes: Sequence[Changes], share_of_search: Share) -> list[Served]:
        """One run for each set of changes, several at a time."""
        tasks = [self.sites.tasks(each) for each in changes]

        def told(share: float, message: str) -> None:
            self.report(share_of_search(share), f"{_names(changes)}: {message}" if message else _names(changes))

        parts = iter(self.spread([task for each in tasks for task in each], told))
        return [together([unpack(next(parts)) for _task in each]) for each in tasks]


def _names(changes: Sequence[Changes]) -> str:
    if "scaling_target" in changes[0]:
        return f"{len(changes)} autoscaler settings"
    return f"{', '.join(str(each['replicas']) for each in changes)} replicas"


def run_capacity_search(params: Mapping[str, Any], report: ReportProgress, spread: Spread) -> dict[str, Any]:
    """Search; the result is that of the best run, with all that was tried in ``search``."""
    job = read_capacity(params)
    simulation, (region,) = job.simulation, job.simulation.regions
    sites = sites_of(simulation)
    options = [sites.first.option]
    search = FleetSearch(
        question=sites.first.question,
        scenario=region.scenario,
        start=sites.first.option.layout.replicas,
        asked=job.search,
        bill=lambda served: costs_of(served, options).usd,
    )
    search.run(_Workers(sites=sites, report=report, spread=spread).serve_all)
    if search.best is None:
        raise RuntimeError("a search without runs")
    settings = replace(region.scenario, **search.changes)
    document = describe(search.best, sites.first, options, settings, wall_s=0.0)
    kept = {name: value for name, value in document.items() if name not in TIMED}
    more = {"search": search.document(), "traffic": region.traffic, "trace": region.trace}
    result: dict[str, Any] = plain(kept | more)
    return result
