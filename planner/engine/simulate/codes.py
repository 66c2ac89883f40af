"""Whole-number codes shared by the compiled functions and their Python side."""

from __future__ import annotations

from typing import Final

NONE: Final = -1
"""No slot, no entry: the end of a list."""

# What a replica does.
CONTINUOUS: Final = 0
"""Iteration-level batching: prefill chunks and decodes in one iteration."""
BATCHED: Final = 1
"""Whole requests in batches (Triton's dynamic batcher)."""

# Which part of a request a replica serves.
WHOLE: Final = 0
PREFILL: Final = 1
DECODE: Final = 2

# How a request left.
DONE: Final = 0
QUEUE_FULL: Final = 1
QUEUE_TIMEOUT: Final = 2
TOO_LONG: Final = 3
REPLICA_LOST: Final = 4
CANCELLED: Final = 5
OUTCOMES: Final = ("done", "queue_full", "queue_timeout", "too_long", "replica_lost", "cancelled")

# Load balancing.
ROUND_ROBIN: Final = 0
LEAST_OUTSTANDING: Final = 1
POWER_OF_TWO: Final = 2
LEAST_KV: Final = 3
PREFIX_AWARE: Final = 4
SESSION_AFFINITY: Final = 5
POLICIES: Final = (
    "round_robin",
    "least_outstanding",
    "power_of_two",
    "least_kv",
    "prefix_aware",
    "session_affinity",
)

# Where a request is.
WAITING: Final = 0
PREFILLING: Final = 1
DECODING: Final = 2
MOVING: Final = 3
"""KV on its way to a decode replica, or waiting to be sent again."""
HELD: Final = 4
"""At the gateway: no replica takes it yet."""

# Timed events.
ROUTE: Final = 0
"""Send (again) to a replica; after a prefill, its KV has arrived."""
CANCEL: Final = 1
"""The client gives up."""
UNHOLD: Final = 2
"""A request has waited at the gateway for as long as it may."""
RELEASE: Final = 3
"""A closed loop's client sends its next request."""

# Why the kernel returned.
REACHED: Final = 0
NEED_TRAFFIC: Final = 1
FINISHED: Final = 2
GROW_SLOTS: Final = 3
GROW_EVENTS: Final = 4
GROW_CACHE: Final = 5
FLUSH_ROWS: Final = 6
PAUSED: Final = 7
"""So much has been done that it is time to tell, and to hear whether to go on."""
