"""Regions that take each other's requests, as one fleet of several pools with one stream of traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.planned_fleet import PlannedFleet
from planner.engine.simulate.planned_replica import Lengths
from planner.services.region_traffic import interleave
from planner.services.simulation_job import Region


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedSource:
    """Several regions' traffic, each request with the pool it belongs to."""

    sources: Sequence[Any]
    pools: Sequence[int]
    """The first pool of each region."""
    notes: tuple[str, ...]
    hash_tokens: None = None
    hash_ids: None = None

    @property
    def lengths(self) -> Lengths:
        """Of the first region: each region's replicas are made for its own."""
        lengths: Lengths = self.sources[0].lengths
        return lengths

    def batches(self) -> Iterator[Traffic]:
        """All requests in order of arrival."""
        return interleave([source.batches() for source in self.sources], self.pools)


def linked_source(regions: Sequence[Region], sources: Sequence[Any], planned: Sequence[PlannedFleet]) -> LinkedSource:
    """The regions' traffic as one; raises ``InvalidQuestion`` for a trace whose block hashes couldn't be told apart."""
    hashed = [place for place, source in enumerate(sources) if source.hash_ids is not None]
    if hashed:
        message = "A trace with block hashes can't be shared between regions."
        allowed = "regions without fallback, or a trace with prefix_id"
        raise InvalidQuestion(
            [FieldError(field=f"regions.{hashed[0]}.trace", value=None, message=message, allowed=allowed)]
        )
    notes = (f"{region.name}: {note}" for region, source in zip(regions, sources, strict=True) for note in source.notes)
    return LinkedSource(sources=sources, pools=first_pools(planned), notes=tuple(notes))


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
        nodes_per_unit=1,
    )
