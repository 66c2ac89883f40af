"""What happened to a fleet: all of it counted, and as much of it kept as can be looked at.

What breaks is rare and always kept. Scalings and starts may be many: from ``MOST_KEPT`` on every second is left out,
then every second of those, so that what is kept stands for the whole time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge as in_order
from typing import Final

from planner.engine.simulate.lifecycle import Incident

ALWAYS: Final = ("failed", "noticed", "interrupted", "upgraded")
"""Kinds that are kept however much else happens."""
OF_NODES: Final = ("failed", "noticed", "interrupted", "repaired")
"""Kinds that befall a whole node: each of its replicas has its own, and they count once."""
MOST_KEPT: Final = 4096
"""Of each sort in a run, twice as many while it goes on."""
MOST_LISTED: Final = 1000
"""Of all kinds together in a report, of what may be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """What happened, in order of time."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """By kind, of all: nodes where it befell nodes, else replicas or times."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """By kind, of all, each replica's own."""
    lost_requests: int = 0
    """In flight when their replica went, of all."""
    kept: tuple[Incident, ...] = ()

    @property
    def total(self) -> int:
        """How many there were, each replica's own."""
        return sum(self.rows.values())


class IncidentLog:
    """Takes down what happens, in order of time."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._counts: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._noted = 0
        self._last: dict[tuple[str, int], float] = {}
        self._lost = 0
        self._always = _Thinned()
        self._others = _Thinned()

    def note(self, incident: Incident) -> None:
        """Count it, and keep it where it is to be kept."""
        self._noted += 1
        self._rows[incident.kind] += 1
        self._counts[incident.kind] += not self._is_counted(incident)
        self._lost += incident.lost_requests
        (self._always if incident.kind in ALWAYS else self._others).add(self._noted, incident)

    def _is_counted(self, incident: Incident) -> bool:
        """Whether it has befallen another replica of the same node just now."""
        if incident.kind not in OF_NODES or incident.node is None:
            return False
        same = (incident.kind, incident.node)
        is_counted = self._last.get(same) == incident.at_s
        self._last[same] = incident.at_s
        return is_counted

    def read(self) -> Incidents:
        """All of it so far."""
        both = in_order(self._always.kept, self._others.kept, key=lambda numbered: numbered[0])
        return Incidents(
            counts=dict(sorted(self._counts.items())),
            rows=dict(sorted(self._rows.items())),
            lost_requests=self._lost,
            kept=tuple(incident for _number, incident in both),
        )


class _Thinned:
    """Every ``step``-th of what was added; the step doubles when there are too many."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, Incident]] = []
        self._step = 1
        self._added = 0

    def add(self, number: int, incident: Incident) -> None:
        if self._added % self._step == 0:
            self.kept.append((number, incident))
            if len(self.kept) == 2 * MOST_KEPT:
                self.kept = self.kept[::2]
                self._step *= 2
        self._added += 1


def joined(parts: Sequence[Incidents]) -> Incidents:
    """What happened in parts that ran apart: counts and losses add up, in any order."""
    counts: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
        rows.update(part.rows)
    kept = sorted((each for part in parts for each in part.kept), key=lambda incident: incident.at_s)
    return Incidents(
        counts=dict(sorted(counts.items())),
        rows=dict(sorted(rows.items())),
        lost_requests=sum(part.lost_requests for part in parts),
        kept=tuple(kept),
    )


def listed(kinds: Sequence[str], most: int = MOST_LISTED, most_always: int = MOST_KEPT) -> list[int]:
    """Which of so many incidents to list, in their order: what breaks before all else, of the rest every so many.

    At most ``most`` where not more than that breaks, of which a tenth is left for the rest; what breaks is cut only
    beyond ``most_always``.

    >>> listed(["scaled"] * 9 + ["failed", "scaled"], most=5)
    [0, 3, 6, 9, 10]
    """
    always = [place for place, kind in enumerate(kinds) if kind in ALWAYS]
    others = [place for place, kind in enumerate(kinds) if kind not in ALWAYS]
    return sorted([*_spread(always, most_always), *_spread(others, max(most - len(always), most // 10))])


def _spread(places: Sequence[int], most: int) -> Sequence[int]:
    """So many of ``places``, evenly: the first and the last among them."""
    if len(places) <= most:
        return places
    return [places[round(n * (len(places) - 1) / max(most - 1, 1))] for n in range(most)]
