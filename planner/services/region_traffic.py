"""Several regions' traffic as one stream, each request knowing the pool it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.engine.simulate.layout import Array, Traffic
from planner.engine.simulate.traffic import batch

NO_KEY = -1
NO_HASHES = -1


@dataclass(slots=True)
class _Stream:
    """One region's batches, and how far the one at hand is used up."""

    batches: Iterator[Traffic]
    head: Traffic | None
    used: int = 0

    def last_s(self) -> float:
        """The last arrival known."""
        return float(self.head.arrival_s[-1]) if self.head is not None else np.inf

    def take_until(self, limit_s: float) -> slice:
        """Rows of the head up to a time; the head stays until ``advance``."""
        if self.head is None:
            return slice(0, 0)
        stop = int(np.searchsorted(self.head.arrival_s, limit_s, side="right"))
        taken = slice(self.used, max(stop, self.used))
        self.used = taken.stop
        return taken

    def advance(self) -> None:
        """The next batch that holds anything, once the head is used up."""
        while self.head is not None and self.used >= len(self.head.arrival_s):
            self.head, self.used = next(self.batches, None), 0


def interleave(
    regions: Sequence[Iterator[Traffic]], pools: Sequence[int], first_hashes: Sequence[int] | None = None
) -> Iterator[Traffic]:
    """The regions' requests by arrival; of two at the same time the earlier region's comes first.

    Keys (prefixes, sessions) of different regions stay apart. Never more than one batch a region in memory.
    ``first_hashes`` says where each region's block hashes begin among all, where there are any.
    """
    streams = [_Stream(batches=batches, head=next(batches, None)) for batches in regions]
    for stream in streams:
        stream.advance()
    made = 0
    while any(stream.head is not None for stream in streams):
        limit_s = min(stream.last_s() for stream in streams)
        parts = [(place, stream.head, stream.take_until(limit_s)) for place, stream in enumerate(streams)]
        columns = [
            _columns(head, cut, place, len(streams), pools[place])
            | ({} if first_hashes is None else _hashes(head, cut, first_hashes[place]))
            for place, head, cut in parts
            if head is not None and cut.stop > cut.start
        ]
        joined = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
        order = np.argsort(joined["arrival_s"], kind="stable")
        arrival_s = joined["arrival_s"]
        yield batch(**{name: column[order] for name, column in joined.items()}, first_request=made)
        made += len(arrival_s)
        for stream in streams:
            stream.advance()


def _columns(traffic: Traffic, cut: slice, place: int, regions: int, pool: int) -> dict[str, Array]:
    count = cut.stop - cut.start
    key = traffic.key[cut] if len(traffic.key) else np.full(count, NO_KEY)
    shared = traffic.shared_tokens[cut] if len(traffic.shared_tokens) else np.zeros(count, np.int64)
    return {
        "arrival_s": traffic.arrival_s[cut],
        "input_tokens": traffic.input_tokens[cut],
        "output_tokens": traffic.output_tokens[cut],
        "key": np.where(key == NO_KEY, NO_KEY, key * regions + place),
        "shared_tokens": shared,
        "pool": np.full(count, pool),
    }


def _hashes(traffic: Traffic, cut: slice, first: int) -> dict[str, Array]:
    """Where each request's hashes begin, and how many they are; none where it goes by its key."""
    if not len(traffic.hashes):
        count = cut.stop - cut.start
        return {"hashes": np.zeros(count, np.int64), "hash_counts": np.full(count, NO_HASHES)}
    edges = traffic.hashes[cut.start : cut.stop + 1]
    return {"hashes": first + edges[:-1], "hash_counts": np.diff(edges)}
