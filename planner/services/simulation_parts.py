"""A simulation cut into parts that don't interact, and one such part served: in any worker, with the same outcome.

Regions that send each other nothing are parts. So are, in a long run, replicas behind a round-robin gateway: each gets
the requests whose turn is its own, whatever happens to the others. The cut follows from the question alone, never
from the number of workers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO, Any, Final

from planner.engine.errors import InvalidQuestion
from planner.engine.sentences import say
from planner.engine.simulate.planned_fleet import PlannedFleet
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.warm_up import warm_up
from planner.engine.units import SECONDS_PER_HOUR
from planner.services.compiled_simulator import wait_until_compiled
from planner.services.fleet_checks import event_faults
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.kept_plans import clusters_of, keep_plan, mark_of
from planner.services.region_fleet import alike, linked_fleet, linked_source
from planner.services.run_kind import ReportProgress, Task
from planner.services.served import RentedPool, Served, pack
from planner.services.simulation import PlannedCluster, Told, TrafficSource, planned_cluster, serve
from planner.services.simulation_job import MEMBERS, SimulationJob, read_simulation
from planner.services.simulation_region import Region, longest_s
from planner.services.stored_traces import open_trace, stored_bytes, trace_refused
from planner.services.trace_columns import TraceError
from planner.services.trace_files import Trace, read_trace_stream
from planner.services.traffic_slices import Sliced, turns_of

MOST_ROWS: Final = 50_000_000
READ_SHARE: Final = 0.05
"""Of a part's progress: compiling and planning."""
TRACE_SHARE: Final = 0.6
"""The same where a trace is read: its rows take longer to read than to simulate."""
SHARD_REQUESTS: Final = 1_000_000
"""A run is cut where each part has so many: making or reading the traffic is each part's own work."""
MOST_SHARDS: Final = 8
BYTES_A_ROW: Final = 16
"""Of a trace, at least: how many requests a stored one may have."""
LINKED: Final = "linked"

Source = Callable[[Region], TrafficSource]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """The regions of a job with what each rents: one plan, an option a region."""

    job: SimulationJob
    clusters: tuple[PlannedCluster, ...]

    @property
    def first(self) -> PlannedCluster:
        """The first region's, or the only one."""
        return self.clusters[0]

    def tasks(self, changes: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """The parts of one run, with ``changes`` to each region's scenario."""
        if self.job.is_linked:
            return [self._task(changes) | {"part": LINKED}]
        return [task for place in range(len(self.job.regions)) for task in self.tasks_of(place, changes)]

    def tasks_of(self, place: int, changes: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """The parts of one region by itself."""
        plan = self._task(changes) | {"part": place}
        shards = _shards(changed(self.job.regions, changes)[place], self.clusters[place])
        return [plan | ({} if shard is None else {"shard": list(shard)}) for shard in shards]

    def _task(self, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "catalog": self.first.plan.catalog_version,
            "options": [cluster.option.id for cluster in self.clusters],
            "nodes": [mark_of(cluster.option) for cluster in self.clusters],
            "changes": [dict(each) for each in changes],
        }


def sites_of(job: SimulationJob) -> Sites:
    """Plan the job's question, and choose each region's option."""
    first = planned_cluster(job.question, job.scenario.option)
    sites = Sites(job=job, clusters=tuple(first.with_option(region.scenario.option) for region in job.regions))
    keep_plan(job, first)
    return sites


def changed(regions: Sequence[Region], changes: Sequence[Mapping[str, Any]]) -> list[Region]:
    """The regions with some settings of their scenarios changed, by region; as they are where ``changes`` is empty."""
    if not changes:
        return list(regions)
    return [
        replace(region, scenario=replace(region.scenario, **each))
        for region, each in zip(regions, changes, strict=True)
    ]


def serve_part(
    params: Mapping[str, Any], task: Task, report: ReportProgress, members: Sequence[str] = MEMBERS
) -> bytes:
    """One part of a job whose parameters, with ``members``, hold a simulation's."""
    job = read_simulation(params, members)
    return pack(serve_task(job, task, report))


def serve_task(
    job: SimulationJob, task: Task, report: ReportProgress, *, opened: Callable[[str], IO[bytes]] = open_trace
) -> Served:
    """One of the tasks of ``Sites.tasks``; ``opened`` opens a trace by its name."""
    wait_until_compiled(report)
    report(0.0, "Loading the simulator")
    warm_up()
    clusters = clusters_of(job, task)
    regions = changed(job.regions, task["changes"])
    if task["part"] == LINKED:
        sources = [_source(region, _reading(report, n, len(regions)), opened) for n, region in enumerate(regions)]
        return _serve_linked(regions, clusters, sources, report)
    place = task["part"]
    source = _source(regions[place], _reading(report), opened)
    return _serve_region(place, regions, clusters[place], source, task.get("shard"), report)


def _serve_region(
    place: int,
    regions: Sequence[Region],
    cluster: PlannedCluster,
    source: TrafficSource,
    shard: Sequence[int] | None,
    report: ReportProgress,
) -> Served:
    """One region by itself, kept as long as the traffic of any was asked for."""
    region, lasts_s = regions[place], longest_s(regions)
    end_s = max(_last_s(region, source), lasts_s)
    _check_span(region, cluster, end_s)
    planned = cluster.fleet(source, region.scenario)
    if shard is not None:
        source = turns_of(source, shard[0], shard[1], planned.replicas)
        planned = _cut(planned, shard[0], shard[1])
    served = serve(planned, Sliced(source), region.scenario, told=_told(report, end_s, [region]), lasts_s=lasts_s)
    pools = tuple(replace(pool, region=place) for pool in served.pools)
    return replace(served, pools=pools, notes=_named(region, served.notes))


def _serve_linked(
    regions: Sequence[Region],
    clusters: Sequence[PlannedCluster],
    sources: Sequence[TrafficSource],
    report: ReportProgress,
) -> Served:
    """Regions that take each other's requests, all in one run."""
    end_s = max(_last_s(region, each) for region, each in zip(regions, sources, strict=True))
    for region, cluster in zip(regions, clusters, strict=True):
        _check_span(region, cluster, end_s)
    sources = alike(sources)
    planned = [
        cluster.fleet(source, region.scenario)
        for cluster, source, region in zip(clusters, sources, regions, strict=True)
    ]
    source, fleet = linked_source(regions, sources, planned), linked_fleet(regions, planned)
    served = serve(fleet, Sliced(source), regions[0].scenario, told=_told(report, end_s, regions))
    pools = tuple(
        RentedPool(
            region=place,
            nodes_per_unit=nodes,
            replicas=pool.replicas,
            unit_gpus=pool.gpus_per_unit,
            prefills=pool.decode_pool is not None,
        )
        for place, each in enumerate(planned)
        for pool, nodes in zip(each.fleet.pools, each.nodes_per_unit, strict=True)
    )
    return replace(served, pools=pools)


def _check_span(region: Region, cluster: PlannedCluster, end_s: float) -> None:
    """Raise ``InvalidQuestion`` for a trace in whose time more happens than one run can simulate."""
    if region.trace is not None:
        faults = event_faults(region.scenario, cluster.option, end_s / SECONDS_PER_HOUR, "trace")
        if faults:
            raise InvalidQuestion(faults)


def _named(region: Region, notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{region.name}: {note}" for note in notes) if region.name else tuple(notes)


def _shards(region: Region, cluster: PlannedCluster) -> list[tuple[int, int] | None]:
    """First and last replica of each part of a region; one part for all where they depend on each other."""
    settings = region.scenario
    replicas = settings.replicas or cluster.option.layout.replicas
    whole: list[tuple[int, int] | None] = [None]
    if not _independent(settings) or cluster.option.prefill_pool is not None:
        return whole
    gpus = cluster.option.layout.gpus_per_replica
    # Replicas that share a node stay together, for it is billed as one.
    node = max(1, int(cluster.option.cluster.gpus_per_node // gpus))
    nodes = math.ceil(replicas / node)
    count = min(MOST_SHARDS, nodes, int(_requests(region) // SHARD_REQUESTS))
    if count < 2:
        return whole
    edges = [min(round(place * nodes / count) * node, replicas) for place in range(count + 1)]
    return list(pairwise(edges))


def _independent(settings: SimulationQuestion) -> bool:
    """Whether what one replica is sent says nothing about what another one is sent."""
    steady = settings.autoscaler == "none" and settings.upgrade_at_s is None
    unbroken = settings.node_failure_hours is None and settings.spot_interruptions_per_hour is None
    apart = not settings.prefill_replicas and not settings.draft_tokens and settings.max_outstanding is None
    return settings.policy == "round_robin" and steady and unbroken and apart


def _requests(region: Region) -> float:
    """How many there are, as far as it can be known without reading them."""
    if region.traffic is not None:
        return region.traffic.expected_requests
    return stored_bytes(region.trace or "") / BYTES_A_ROW


def _cut(planned: PlannedFleet, first: int, stop: int) -> PlannedFleet:
    (pool,) = planned.fleet.pools
    cut = replace(pool, replicas=stop - first, max_replicas=None)
    return replace(planned, fleet=replace(planned.fleet, pools=[cut]))


def _reading(report: ReportProgress, place: int = 0, sources: int = 1) -> ReportProgress:
    """Progress of reading one of so many sources, as that of the part."""

    def told(share_done: float, message: str = "") -> None:
        report(TRACE_SHARE * (place + share_done) / sources, message)

    return told


def _told(report: ReportProgress, end_s: float, regions: Sequence[Region]) -> Told:
    before = TRACE_SHARE if any(region.trace is not None for region in regions) else READ_SHARE

    def told(requests: int, now_s: float) -> None:
        share = before + (1.0 - before) * min(now_s / end_s, 1.0)
        report(share, f"{requests:,} requests, {now_s / 3600:.2f} h simulated")

    return told


def _last_s(region: Region, source: TrafficSource) -> float:
    """When the last request arrives, or may: then all is done but the last answers."""
    if isinstance(source, Trace):
        return max(float(source.columns.arrival_s[-1]), 1e-9)
    return region.traffic.duration_s if region.traffic is not None else 1e-9


def _source(region: Region, report: ReportProgress, opened: Callable[[str], IO[bytes]]) -> TrafficSource:
    if region.traffic is not None:
        return GeneratedTraffic(question=region.traffic)
    return _read_trace(region.trace or "", report, opened)


def _read_trace(name: str, report: ReportProgress, opened: Callable[[str], IO[bytes]]) -> Trace:
    def told(rows: int) -> None:
        report(min(stream.tell() / max(length, 1), 1.0), f"Reading the trace: {rows:,} rows")
        if rows > MOST_ROWS:
            allowed = say("up to {most:,} requests", most=MOST_ROWS)
            raise TraceError(say("Too many rows."), row=rows, allowed=allowed)

    with opened(name) as stream:
        length = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        try:
            return read_trace_stream(stream, told=told, names=False)  # type: ignore[arg-type]
        except TraceError as error:
            raise trace_refused(error) from error
