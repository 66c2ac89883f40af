"""What may be asked of a search for the smallest fleet: one flat set of named, bounded fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.engine.field_spec import integer

MOST_REPLICAS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuestion:
    """How far and how widely to search; the limits are those of the plan's question."""

    most_replicas: int = integer(
        "Most replicas", 512, 1, MOST_REPLICAS, "replicas", "Larger fleets are not tried.", "search"
    )
    parallel: int = integer(
        "Runs at a time", 4, 1, 16, "runs", "Sizes tried together, by as many workers as are free.", "search"
    )
