"""What a simulated fleet did, as one value: merged from parts that ran apart, and as bytes between workers.

The bytes are a zip of arrays (no pickles) with one JSON member for everything that isn't an array; floats and whole
numbers come back as they were.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

import numpy as np

from planner.engine.simulate.distributions import Distribution
from planner.engine.simulate.incidents import Incidents, joined
from planner.engine.simulate.layout import Array
from planner.engine.simulate.lifecycle import Incident
from planner.engine.simulate.merging import added, merge
from planner.engine.simulate.results import AtHome, Outcome, Samples, Timeline

NESTED: Final[dict[str, type]] = {
    "ttft": Distribution,
    "tpot": Distribution,
    "e2e": Distribution,
    "timeline": Timeline,
    "samples": Samples,
}
"""Members of an outcome that have members themselves."""
FACTS: Final = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedPool:
    """What the rented units of one pool are."""

    region: int
    """Whose pool it is, by its place among the regions; 0 where there is one."""
    nodes_per_unit: float
    replicas: int
    """At the start."""
    unit_gpus: float
    prefills: bool = False
    """Whether it only processes prompts, for another pool."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """A simulated fleet: how it went, what happened to it, and what a reader should know."""

    outcome: Outcome
    happened: Incidents
    """To the fleet."""
    pools: tuple[RentedPool, ...]
    """In the order of the outcome's ``unit_hours``."""
    replicas: int
    """At the start."""
    notes: tuple[str, ...]

    def of_region(self, region: int) -> AtHome:
        """How the requests of a region went, wherever they were served."""
        own = [self.outcome.at_home(number) for number, pool in enumerate(self.pools) if pool.region == region]
        return AtHome(
            requests=sum(each.requests for each in own),
            done=sum(each.done for each in own),
            good=sum(each.good for each in own),
            ttft=added([each.ttft for each in own]),
            tpot=added([each.tpot for each in own]),
        )

    def gpu_hours(self, region: int) -> float:
        """Paid for by a region."""
        pools = zip(self.pools, self.outcome.unit_hours, strict=True)
        return float(sum(hours * pool.unit_gpus for pool, hours in pools if pool.region == region))

    def replicas_of(self, region: int) -> int:
        """At the start, of a region."""
        return sum(pool.replicas for pool in self.pools if pool.region == region)


def together(parts: Sequence[Served]) -> Served:
    """Fleets that ran apart as one; the order of parts is that of replicas and pools."""
    if len(parts) == 1:
        return parts[0]
    happened: list[Incidents] = []
    places = pools = 0
    for part in parts:
        kept = tuple(_moved(incident, places, pools) for incident in part.happened.kept)
        happened.append(replace(part.happened, kept=kept))
        places += len(part.outcome.busy_s)
        pools += len(part.pools)
    return Served(
        outcome=merge([part.outcome for part in parts]),
        happened=joined(happened),
        pools=tuple(pool for part in parts for pool in part.pools),
        replicas=sum(part.replicas for part in parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _moved(incident: Incident, places: int, pools: int) -> Incident:
    replica = None if incident.replica is None else incident.replica + places
    node = None if incident.node is None else incident.node + places
    return replace(incident, replica=replica, node=node, pool=incident.pool + pools)


def pack(served: Served) -> bytes:
    """``served`` as bytes; the same value gives the same bytes."""
    arrays: dict[str, Array] = {}
    facts: dict[str, Any] = {
        "happened": asdict(served.happened),
        "pools": [asdict(pool) for pool in served.pools],
        "replicas": served.replicas,
        "notes": list(served.notes),
        "outcome": {},
    }
    for name, value in _members(served.outcome):
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            facts["outcome"][name] = value
    arrays[FACTS] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def unpack(packed: bytes) -> Served:
    """What ``pack`` was given."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    facts = json.loads(arrays.pop(FACTS).tobytes())
    flat: dict[str, Any] = facts["outcome"] | arrays
    members: dict[str, Any] = {}
    for outcome_field in fields(Outcome):
        name = outcome_field.name
        nested = NESTED.get(name)
        members[name] = (
            flat[name]
            if nested is None
            else nested(**{each.name: flat[f"{name}.{each.name}"] for each in fields(nested)})
        )
    return Served(
        outcome=Outcome(**members),
        happened=_happened(**facts["happened"]),
        pools=tuple(RentedPool(**pool) for pool in facts["pools"]),
        replicas=facts["replicas"],
        notes=tuple(facts["notes"]),
    )


def _happened(kept: Sequence[Mapping[str, Any]], **totals: Any) -> Incidents:
    return Incidents(kept=tuple(Incident(**incident) for incident in kept), **totals)


def _members(outcome: Outcome) -> Iterator[tuple[str, Any]]:
    for outcome_field in fields(Outcome):
        name, value = outcome_field.name, getattr(outcome, outcome_field.name)
        if name in NESTED:
            for each in fields(value):
                yield f"{name}.{each.name}", getattr(value, each.name)
        else:
            yield name, value
