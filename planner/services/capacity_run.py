"""Running the job ``capacity_search``: only workers import this module, for it brings in the compiled simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.services.capacity_job import MEMBERS, CapacityJob, read_capacity
from planner.services.fleet_search import FIXED, Changes, FleetSearch, Share
from planner.services.plan_json import plain
from planner.services.planned_load import at_planned_load
from planner.services.region_search import RegionChanges, RegionSearch
from planner.services.run_kind import ReportProgress, Spread, Task
from planner.services.served import Served, together, unpack
from planner.services.simulated_job import within_s
from planner.services.simulation import costs_of, describe
from planner.services.simulation_parts import Sites, serve_part, sites_of
from planner.services.simulation_run import TIMED, run_document, what_was_served


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workers:
    """Has runs made by whoever is free."""

    sites: Sites
    report: ReportProgress
    spread: Spread

    def serve_all(self, changes: Sequence[Changes], share_of_search: Share) -> list[Served]:
        """One run for each set of changes, several at a time."""
        tasks = [self.sites.tasks([each]) for each in changes]

        def told(share: float, message: str) -> None:
            self.report(share_of_search(share), f"{_names(changes)}: {message}" if message else _names(changes))

        parts = iter(self.spread([task for each in tasks for task in each], told))
        return [together([unpack(next(parts)) for _task in each]) for each in tasks]


def _names(changes: Sequence[Changes]) -> str:
    if "scaling_target" in changes[0]:
        return f"{len(changes)} autoscaler settings"
    return f"{', '.join(str(each['replicas']) for each in changes)} replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RegionWorkers:
    """The same for runs of several regions."""

    sites: Sites
    report: ReportProgress
    spread: Spread

    def alone(self, sizes: Sequence[tuple[int, int]], share_of_search: Share) -> list[Served]:
        """Regions each by itself, at so many replicas."""
        tasks = []
        for place, size in sizes:
            changes: list[Changes] = [{} for _region in self.sites.job.regions]
            changes[place] = {**FIXED, "replicas": size}
            tasks.append(self.sites.tasks_of(place, changes))
        return [together(parts) for parts in self._done(tasks, "Each region alone", share_of_search)]

    def together(self, changes: Sequence[RegionChanges], share_of_search: Share) -> list[list[Served]]:
        """All regions, one run for each set of changes."""
        sizes = ("+".join(str(each["replicas"]) for each in one) for one in changes)
        scaled = any("scaling_target" in each for each in changes[0]) if changes else False
        names = f"{len(changes)} autoscaler settings" if scaled else f"{', '.join(sizes)} replicas"
        return self._done([self.sites.tasks(each) for each in changes], names, share_of_search)

    def _done(self, tasks: list[list[dict[str, Any]]], names: str, share_of_search: Share) -> list[list[Served]]:
        def told(share: float, message: str) -> None:
            self.report(share_of_search(share), f"{names}: {message}" if message else names)

        if not tasks:
            return []
        parts = iter(self.spread([task for each in tasks for task in each], told))
        return [[unpack(next(parts)) for _task in each] for each in tasks]


def run_capacity_search(params: Mapping[str, Any], report: ReportProgress, spread: Spread) -> dict[str, Any]:
    """Search; the result is that of the best run, with all that was tried in ``search``."""
    job = read_capacity(params)
    found = search_regions(job, report, spread) if job.simulation.regions[0].name else _one(job, report, spread)
    kept = {name: value for name, value in found.items() if name not in TIMED}
    kept["search"] |= {"sized_for": job.sized_for}
    result: dict[str, Any] = plain(kept | what_was_served(job.simulation, kept))
    return result


def _one(job: CapacityJob, report: ReportProgress, spread: Spread) -> dict[str, Any]:
    """One gateway, without regions."""
    simulation, (region,) = job.simulation, job.simulation.regions
    sites = sites_of(simulation)
    options = [sites.first.option]
    search = FleetSearch(
        question=sites.first.question,
        scenario=region.scenario,
        start=sites.first.option.layout.replicas,
        asked=job.search,
        bill=lambda served: costs_of(served, options).usd,
        within_s=within_s(sites.first.question, region.traffic),
    )
    search.run(_Workers(sites=sites, report=report, spread=spread).serve_all)
    if search.best is None:
        raise RuntimeError("a search without runs")
    settings = replace(region.scenario, **search.changes)
    return describe(search.best, sites.first, options, settings, wall_s=0.0) | {"search": search.document()}


def search_regions(job: CapacityJob, report: ReportProgress, spread: Spread) -> dict[str, Any]:
    """Several regions; each of the document's regions has the settings it was chosen with."""
    simulation = job.simulation
    sites = sites_of(simulation)
    options = [cluster.option for cluster in sites.clusters]
    search = RegionSearch(
        question=sites.first.question,
        regions=simulation.regions,
        starts=tuple(option.layout.replicas for option in options),
        linked=simulation.is_linked,
        asked=job.search,
        bill=lambda served: costs_of(served, options).usd,
    )
    search.run(_RegionWorkers(sites=sites, report=report, spread=spread))
    document = run_document(sites, search.best)
    document["settings"] |= search.changes[0]
    for region, changes in zip(document["regions"], search.changes, strict=True):
        region["settings"] = dict(changes)
    return document | {"search": search.document()}


def serve_capacity_part(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
    """One part of a search: of the traffic that it is sized for."""
    return serve_part(at_planned_load(params)[0], task, report, MEMBERS)
