"""What happened to a simulated fleet, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from planner.engine.simulate.incidents import Incidents, listed


def incident_report(happened: Incidents, regions: Sequence[str] = ()) -> dict[str, Any]:
    """Counts by kind and requests that were in flight, of all; and those that are listed, in order.

    What befalls a node is counted once (``counts``) and listed for each of its replicas (``rows`` and ``total`` say
    how many of those there are).

    ``regions`` are the names of the pools' regions, where there are several; each incident then says in which it was.
    """
    kept = happened.kept
    found = [asdict(kept[place]) for place in listed([incident.kind for incident in kept])]
    if regions:
        found = [each | {"region": regions[each["pool"]]} for each in found]
    return {
        "counts": dict(happened.counts),
        "rows": dict(happened.rows),
        "total": happened.total,
        "lost_requests": happened.lost_requests,
        "listed": found,
    }
