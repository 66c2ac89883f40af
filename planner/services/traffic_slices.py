"""Traffic cut for a part of a simulation: into small batches, and to the requests whose turn is the part's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.planned_replica import Lengths
from planner.engine.simulate.traffic import batch, in_batches
from planner.services.simulation import TrafficSource
from planner.services.trace_files import Trace

BATCH_REQUESTS: Final = 1 << 14
"""Simulated between two progress reports: well under a second even where a fleet is hard to simulate."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """A source in small batches, so that progress is told and a cancellation heard between them."""

    source: TrafficSource

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def batches(self) -> Iterator[Traffic]:
        for each in self.source.batches():
            yield from in_batches(each, BATCH_REQUESTS)


@dataclass(frozen=True, slots=True)
class _Turns:
    """The requests that a round-robin gateway sends to the replicas ``first`` to ``stop - 1`` of ``replicas``.

    Their replicas are made for the mean lengths of all requests, as they would be beside the others.
    """

    source: TrafficSource
    first: int
    stop: int
    replicas: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def batches(self) -> Iterator[Traffic]:
        made = 0
        for each in self.source.batches():
            turn = (each.first_request + np.arange(len(each.arrival_s))) % self.replicas
            own = (turn >= self.first) & (turn < self.stop)
            yield batch(
                each.arrival_s[own],
                each.input_tokens[own],
                each.output_tokens[own],
                key=each.key[own] if len(each.key) else None,
                shared_tokens=each.shared_tokens[own] if len(each.shared_tokens) else None,
                first_request=made,
            )
            made += int(own.sum())


@dataclass(frozen=True, slots=True)
class _MadeFor:
    """Some requests of a trace, for replicas that are made for the mean lengths of all of them."""

    source: Trace
    lengths: Lengths

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


def turns_of(source: TrafficSource, first: int, stop: int, replicas: int) -> TrafficSource:
    """The requests whose turn is one of the replicas ``first`` to ``stop - 1``."""
    if not isinstance(source, Trace):
        return _Turns(source, first, stop, replicas)
    turn = np.arange(len(source)) % replicas
    own = np.flatnonzero((turn >= first) & (turn < stop))
    return _MadeFor(replace(source, columns=source.columns.take(own)), source.lengths)
