"""The simulator's state: arrays, most of them of records, that compiled code and Python read and write alike.

Everything is plain numpy, so a run can be stopped, saved and resumed bit for bit.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.engine.simulate.records import (
    BIN,
    COEFFICIENTS,
    ENTRY,
    EVENT,
    FLEET,
    KIND,
    POOL,
    REPLICA,
    ROW,
    SAMPLE,
    SLOT,
)

Array = NDArray[Any]

OCTAVES: Final = 40
FIRST_OCTAVE: Final = -20
FINE: Final = 1024
"""Histogram bins per octave: a value is known to 0.1 % (a bin)."""
COARSE: Final = 32
TIME_BINS: Final = 480
"""Bins of every timeline; when a run outgrows them, pairs merge and the bin doubles."""
HEAT_ROWS: Final = 64
"""Replicas drawn one by one in the heat maps; more share rows."""
TTFT, TPOT, E2E = range(3)


FIELDS: Final[dict[str, tuple[np.dtype[Any], int]]] = {
    "fleet": (FLEET, 1),
    "kinds": (KIND, 1),
    "coefficients": (COEFFICIENTS, 1),
    "verify": (COEFFICIENTS, 1),
    "replicas": (REPLICA, 1),
    "pools": (POOL, 1),
    "members": (np.dtype("i8"), 2),
    "distance": (np.dtype("f8"), 2),
    "tree": (np.dtype("f8"), 1),
    "slots": (SLOT, 1),
    "events": (EVENT, 1),
    "heap_key": (np.dtype("f8"), 2),
    "heap_slot": (np.dtype("i8"), 2),
    "phases": (np.dtype("i8"), 2),
    "buckets": (np.dtype("i8"), 1),
    "entries": (ENTRY, 1),
    "rows": (ROW, 1),
    "histogram": (np.dtype("i8"), 2),
    "home_histogram": (np.dtype("i8"), 2),
    "bins": (BIN, 1),
    "bin_histogram": (np.dtype("i4"), 2),
    "samples": (SAMPLE, 1),
    "heat_kv": (np.dtype("f4"), 2),
    "heat_waiting": (np.dtype("f4"), 2),
    "hash_ids": (np.dtype("i8"), 1),
}
"""Element type and dimensions of every array of the state."""


def zeros(field: str, *shape: int) -> Array:
    """A new array for a field of the state, of the field's element type."""
    return np.zeros(shape, FIELDS[field][0])


class State(NamedTuple):
    """All of a run."""

    fleet: Array
    """One ``FLEET`` record."""
    kinds: Array
    coefficients: Array
    """Step-time coefficients by kind."""
    verify: Array
    """The same without what only prompts cost: for the tokens that speculative decoding verifies."""
    replicas: Array
    pools: Array
    members: Array
    """(pools, replicas): who the gateway believes ready, by pool."""
    distance: Array
    """(pools, pools): seconds added when a request of one pool is served by another."""
    tree: Array
    """A tournament of next-event times over replicas; the leaves are its second half."""
    slots: Array
    events: Array
    heap_key: Array
    """(replicas, sequences): when each running request finishes."""
    heap_slot: Array
    phases: Array
    """(replicas, block_tokens): running sequences by where in a block they stand."""
    buckets: Array
    entries: Array
    rows: Array
    histogram: Array
    """(TTFT, TPOT, E2E) x fine logarithmic bins."""
    home_histogram: Array
    """(pools x (TTFT, TPOT)) x the same bins, by the pool a request belongs to; empty where there is one."""
    bins: Array
    bin_histogram: Array
    """(time bins x (TTFT, TPOT)) x coarse logarithmic bins."""
    samples: Array
    heat_kv: Array
    heat_waiting: Array
    hash_ids: Array
    """Block hashes of the whole trace, where it has them."""


class Traffic(NamedTuple):
    """One batch of requests, sorted by arrival. Optional columns may be empty arrays."""

    arrival_s: Array
    input_tokens: Array
    output_tokens: Array
    key: Array
    """Which token stream a prompt belongs to (a session, a shared prefix); -1 none."""
    shared_tokens: Array
    """How much of the stream this request shares: its prompt and answer where not given."""
    hashes: Array
    """Index of each request's first block hash in the trace's, one more entry than requests."""
    hash_counts: Array
    """Its hashes, where they don't end where the next request's begin; -1 for a request that goes by its key."""
    pool: Array
    first_request: int
    """Request number of the first row."""
