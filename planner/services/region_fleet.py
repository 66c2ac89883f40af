"""Regions that take each other's requests, as one fleet of several pools with one stream of traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.engine.simulate.layout import Array, Traffic
from planner.engine.simulate.planned_fleet import PlannedFleet
from planner.engine.simulate.planned_replica import Lengths
from planner.services.region_traffic import interleave
from planner.services.simulation_region import Region


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkedSource:
    """Several regions' traffic, each request with the pool it belongs to."""

    sources: Sequence[Any]
    pools: Sequence[int]
    """The first pool of each region."""
    notes: tuple[str, ...]
    hash_tokens: int | None
    hash_ids: Array | None
    """Block hashes of all regions' traces, one region after another: what one knows, the others don't."""
    first_hashes: Sequence[int] | None
    """Where each region's begin."""

    @property
    def is_job(self) -> bool:
        """Whether all requests of all regions are there at the beginning."""
        return all(source.is_job for source in self.sources)

    @property
    def has_no_prefixes(self) -> bool:
        """Of the first region: each region's replicas are made for its own."""
        return bool(self.sources[0].has_no_prefixes)

    @property
    def loop(self) -> None:
        """None: regions that take each other's requests get them at given times."""

    @property
    def lasts_s(self) -> float:
        """As long as the region's whose traffic lasts longest."""
        return max(float(source.lasts_s) for source in self.sources)

    @property
    def lengths(self) -> Lengths:
        """Of the first region: each region's replicas are made for its own."""
        lengths: Lengths = self.sources[0].lengths
        return lengths

    def batches(self) -> Iterator[Traffic]:
        """All requests in order of arrival."""
        return interleave([source.batches() for source in self.sources], self.pools, self.first_hashes)


@dataclass(frozen=True, slots=True)
class _Hashed:
    """A region's traffic for replicas that know prompts by stretches as long as another region's hashes."""

    source: Any
    hash_tokens: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


def alike(sources: Sequence[Any]) -> list[Any]:
    """The regions' traffic, with one length of hashed stretches for all their replicas where a trace has hashes."""
    tokens = max((source.hash_tokens or 0 for source in sources), default=0)
    return [_Hashed(source, tokens) for source in sources] if tokens else list(sources)


def linked_source(regions: Sequence[Region], sources: Sequence[Any], planned: Sequence[PlannedFleet]) -> LinkedSource:
    """The regions' traffic as one."""
    notes = (f"{region.name}: {note}" for region, source in zip(regions, sources, strict=True) for note in source.notes)
    ids = [
        np.zeros(0, np.int64) if source.hash_ids is None else source.hash_ids * len(sources) + place
        for place, source in enumerate(sources)
    ]
    hashed = any(source.hash_ids is not None for source in sources)
    return LinkedSource(
        sources=sources,
        pools=first_pools(planned),
        notes=tuple(notes),
        hash_tokens=sources[0].hash_tokens,
        hash_ids=np.concatenate(ids) if hashed else None,
        first_hashes=[sum(len(each) for each in ids[:place]) for place in range(len(ids))] if hashed else None,
    )


def first_pools(planned: Sequence[PlannedFleet]) -> list[int]:
    """Where each region's pools begin when all are in one list."""
    firsts, pools = [], 0
    for each in planned:
        firsts.append(pools)
        pools += len(each.fleet.pools)
    return firsts


def linked_fleet(regions: Sequence[Region], planned: Sequence[PlannedFleet]) -> PlannedFleet:
    """One fleet of all the regions' pools: a request that its own pool can't take goes to its fallbacks in turn."""
    firsts = first_pools(planned)
    pools = []
    for place, (region, each) in enumerate(zip(regions, planned, strict=True)):
        for number, pool in enumerate(each.fleet.pools):
            moved = pool if pool.decode_pool is None else replace(pool, decode_pool=firsts[place] + pool.decode_pool)
            if number == 0:
                fallback = tuple(firsts[other] for other in region.fallback)
                moved = replace(moved, fallback=fallback, spill_outstanding=region.spill_outstanding)
            pools.append(moved)
    home = [place for place, each in enumerate(planned) for _pool in each.fleet.pools]
    distance_s = [[0.0 if a == b else regions[a].round_trip_ms / 1e3 for b in home] for a in home]
    return PlannedFleet(
        fleet=replace(planned[0].fleet, pools=pools, distance_s=distance_s),
        lives=tuple(life for each in planned for life in each.lives),
        nodes_per_unit=tuple(nodes for each in planned for nodes in each.nodes_per_unit),
    )
