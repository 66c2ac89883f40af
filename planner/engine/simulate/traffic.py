"""Requests as arrays: batches of traffic, from columns or from a generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from planner.engine.simulate.layout import Array, Traffic

NOTHING: Final[Array] = np.zeros(0, np.int64)
BATCH: Final = 1 << 18
"""Requests generated or read at a time."""


def empty_batch() -> Traffic:
    """No requests.

    >>> len(empty_batch().arrival_s)
    0
    """
    return batch(np.zeros(0), NOTHING, NOTHING)


def batch(
    arrival_s: Array,
    input_tokens: Array,
    output_tokens: Array,
    *,
    key: Array | None = None,
    shared_tokens: Array | None = None,
    hashes: Array | None = None,
    hash_counts: Array | None = None,
    pool: Array | None = None,
    first_request: int = 0,
) -> Traffic:
    """Columns as one batch of traffic, in the types the compiled side reads."""

    def whole(column: Array | None) -> Array:
        return NOTHING if column is None else np.ascontiguousarray(column, dtype=np.int64)

    return Traffic(
        arrival_s=np.ascontiguousarray(arrival_s, dtype=np.float64),
        input_tokens=whole(input_tokens),
        output_tokens=whole(output_tokens),
        key=whole(key),
        shared_tokens=whole(shared_tokens),
        hashes=whole(hashes),
        hash_counts=whole(hash_counts),
        pool=whole(pool),
        first_request=first_request,
    )


def in_batches(traffic: Traffic, size: int = BATCH) -> Iterator[Traffic]:
    """One batch cut into several of up to ``size`` requests; views, not copies."""
    for start in range(0, max(len(traffic.arrival_s), 1), size):
        stop = start + size

        def cut(column: Array, more: int = 0, start: int = start, stop: int = stop) -> Array:
            return column[start : stop + more] if len(column) else column

        yield Traffic(
            arrival_s=traffic.arrival_s[start:stop],
            input_tokens=traffic.input_tokens[start:stop],
            output_tokens=traffic.output_tokens[start:stop],
            key=cut(traffic.key),
            shared_tokens=cut(traffic.shared_tokens),
            hashes=cut(traffic.hashes, 1),
            hash_counts=cut(traffic.hash_counts),
            pool=cut(traffic.pool),
            first_request=traffic.first_request + start,
        )
