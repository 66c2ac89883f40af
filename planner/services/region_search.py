"""The smallest fleets of several regions that hold the SLO, each for its region's own requests.

First each region as if it were alone: where none takes another's requests, that is it. Else all together from there:
fewer (or more) in proportion, then one fewer in one region after another. Where scenarios have autoscalers, floors and
targets around the sizes found, in all such regions at once. Which runs are made follows from the question alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Final, Protocol

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.capacity import CapacitySearch
from planner.engine.simulate.results import Outcome
from planner.engine.workload import InferenceQuestion
from planner.services.capacity_question import CapacityQuestion
from planner.services.fleet_limits import no_limits
from planner.services.fleet_search import (
    FIXED,
    Changes,
    Share,
    by_cost,
    holds,
    metric_of,
    point,
    rank,
    scaling_changes,
)
from planner.services.served import Served, together
from planner.services.simulation_region import Region

Sizes = tuple[int, ...]
"""Replicas of each region."""
RegionChanges = tuple[Changes, ...]
"""Settings that one run differs in, by region."""

BESIDE: Final = (0.7, 0.85, 1.2)
"""Of sizes that are known: shown beside them, so that the chart says what less and more would do."""
ROUNDS_OF_ONE_FEWER: Final = 4
ALONE_SHARE: Final = 0.5
"""Of the search's progress: regions alone; sizes together have most of the rest."""
TOGETHER_SHARE: Final = 0.85


class Runs(Protocol):
    """Has runs made, in any order and number at a time; what came of them in the order asked."""

    def alone(self, sizes: Sequence[tuple[int, int]], share: Share) -> list[Served]:
        """Regions each by itself: (region, replicas)."""

    def together(self, changes: Sequence[RegionChanges], share: Share) -> list[list[Served]]:
        """All regions, by the parts that a run falls into."""


@dataclass(slots=True, kw_only=True)
class RegionSearch:
    """A search under way: what was tried with all regions, and the best of it."""

    question: InferenceQuestion
    regions: tuple[Region, ...]
    starts: Sizes
    """Replicas of the plan."""
    linked: bool
    """Whether regions take each other's requests."""
    asked: CapacityQuestion
    bill: Callable[[Served], Decimal]
    points: list[dict[str, Any]] = field(default_factory=list, init=False)
    best: list[Served] = field(default_factory=list, init=False)
    """The parts of the best run."""
    changes: RegionChanges = field(default=(), init=False)
    """Of the best run."""
    chosen: int = field(default=-1, init=False)
    smallest: Sizes | None = field(default=None, init=False)
    """The fewest replicas that do without an autoscaler; None where none tried do."""
    told: float = field(default=0.0, init=False)
    known: dict[Sizes, int] = field(default_factory=dict, init=False)
    """Sizes that were tried without autoscalers, and their points."""

    def run(self, runs: Runs) -> None:
        """Search; raises ``InvalidQuestion`` where the question has no limits."""
        if self.question.ttft_ms is None and self.question.tpot_ms is None:
            raise InvalidQuestion([no_limits()])
        sizes, busiest = self._alone(runs)
        if self._try_sizes(runs, [sizes])[sizes]:
            self.smallest = sizes
        if self.linked:
            self._in_proportion(runs, sizes)
            self._one_fewer(runs)
        else:
            self._try_sizes(runs, [proportion(sizes, round(share * sum(sizes))) for share in BESIDE])
        scales = [region.scenario.autoscaler != "none" for region in self.regions]
        if any(scales) and self.smallest is not None:
            self._autoscaled(runs, self.smallest, busiest)

    def document(self) -> dict[str, Any]:
        """All that was tried with all regions, by what it costs an hour."""
        order = by_cost(self.points)
        return {
            "replicas": None if self.smallest is None else sum(self.smallest),
            "percentile": self.question.slo_percentile,
            "limits_ms": {"ttft": self.question.ttft_ms, "tpot": self.question.tpot_ms},
            "most_replicas": self.asked.most_replicas,
            "chosen": order.index(self.chosen),
            "tried": [self.points[place] for place in order],
        }

    def _share(self, end: float) -> Share:
        """Progress of the next runs: half of what is left until ``end``."""
        low, self.told = self.told, self.told + (end - self.told) / 2.0
        return partial(_between, low, self.told)

    def _alone(self, runs: Runs) -> tuple[Sizes, list[Outcome]]:
        """Each region by itself: the fewest that do (or those that came closest), and how they went."""
        searches = [
            CapacitySearch(
                start=region.scenario.replicas or start, most=self.asked.most_replicas, width=self.asked.parallel
            )
            for region, start in zip(self.regions, self.starts, strict=True)
        ]
        closest: list[list[tuple[float, float, int, Outcome]]] = [[] for _search in searches]
        enough: list[dict[int, Outcome]] = [{} for _search in searches]
        while asks := [(place, size) for place, search in enumerate(searches) for size in search.ask()]:
            met: list[dict[int, bool]] = [{} for _search in searches]
            for (place, size), served in zip(asks, runs.alone(asks, self._share(ALONE_SHARE)), strict=True):
                outcome = served.outcome
                met[place][size] = holds(self.question, outcome)
                if met[place][size]:
                    enough[place][size] = outcome
                # Where none keeps a request within them, the soonest is closest, as among fleets of one region.
                wait_s = outcome.e2e.mean_s if outcome.e2e.count else math.inf
                near = (-outcome.good / max(outcome.requests, 1), wait_s, size, outcome)
                closest[place] = [min([*closest[place], near], key=lambda each: each[:3])]
            for place, search in enumerate(searches):
                search.tell(met[place])
                enough[place] = {size: enough[place][size] for size in sorted(enough[place])[:1]}
        # What holds the limits at the fewest replicas; else what came closest.
        chosen = [next(iter(held.items()), None) or near[0][2:] for held, near in zip(enough, closest, strict=True)]
        return tuple(size for size, _outcome in chosen), [outcome for _size, outcome in chosen]

    def _in_proportion(self, runs: Runs, sizes: Sizes) -> None:
        """The fewest replicas in the proportion of ``sizes``."""
        total, met = sum(sizes), self.smallest is not None
        most = total if met else max(self.asked.most_replicas * len(sizes), total)
        search = CapacitySearch(start=total, most=most, width=self.asked.parallel)
        search.tell({len(sizes) - 1: False} | {total: met})
        while totals := search.ask():
            tried = self._try_sizes(runs, [proportion(sizes, each) for each in totals])
            search.tell(dict(zip(totals, tried.values(), strict=True)))
        if search.answer is not None:
            self.smallest = proportion(sizes, search.answer) if search.answer != total else sizes

    def _one_fewer(self, runs: Runs) -> None:
        """One replica fewer in the region where it saves most, while all hold their limits."""
        for _round in range(ROUNDS_OF_ONE_FEWER):
            sizes = self.smallest
            if sizes is None:
                return
            fewer = [(*sizes[:at], size - 1, *sizes[at + 1 :]) for at, size in enumerate(sizes) if size > 1]
            enough = [each for each, met in self._try_sizes(runs, fewer).items() if met]
            if not enough:
                return
            self.smallest = min(enough, key=lambda each: (self.points[self.known[each]]["cost_usd"], each))

    def _autoscaled(self, runs: Runs, sizes: Sizes, busiest: Sequence[Outcome]) -> None:
        tried = []
        for region, size, outcome in zip(self.regions, sizes, busiest, strict=True):
            fixed: list[Changes] = [_fixed(size)]
            scales = region.scenario.autoscaler != "none"
            tried.append(scaling_changes(region.scenario, size, outcome) if scales else fixed)
        longest = max(len(each) for each in tried)
        changes = [tuple(each[step * len(each) // longest] for each in tried) for step in range(longest)]
        for each, parts in zip(changes, runs.together(changes, self._share(1.0)), strict=True):
            self._note(each, parts)

    def _try_sizes(self, runs: Runs, sizes: Sequence[Sizes]) -> dict[Sizes, bool]:
        """Runs with these replicas and no autoscaler: whether all regions hold their limits."""
        new = [each for each in dict.fromkeys(sizes) if each not in self.known]
        changes = [tuple(_fixed(size) for size in each) for each in new]
        for size, each, parts in zip(new, changes, runs.together(changes, self._share(TOGETHER_SHARE)), strict=True):
            self.known[size] = len(self.points)
            self._note(each, parts)
        return {each: bool(self.points[self.known[each]]["met"]) for each in sizes}

    def _note(self, changes: RegionChanges, parts: list[Served]) -> None:
        """Keep a run's point, and the run where it is the best so far."""
        served = together(parts)
        met = all(holds(self.question, served.of_region(place)) for place in range(len(self.regions)))
        tried = point(self.question, _totals(changes), served, met=met, usd=self.bill(served))
        tried["regions"] = [
            {"name": region.name, **_shown(each), "scaling_metric": metric_of(region.scenario, each)}
            for region, each in zip(self.regions, changes, strict=True)
        ]
        self.points.append(tried)
        if not self.best or rank(tried) < rank(self.points[self.chosen]):
            self.best, self.changes, self.chosen = parts, changes, len(self.points) - 1


def proportion(sizes: Sizes, total: int) -> Sizes:
    """``total`` replicas in the proportion of ``sizes``, at least one a region.

    >>> proportion((6, 3, 1), 5), proportion((6, 3, 1), 2), proportion((4, 4), 7)
    ((3, 1, 1), (1, 1, 1), (4, 3))
    """
    exact = [size * total / sum(sizes) for size in sizes]
    found = [max(1, int(each)) for each in exact]
    left = sorted(range(len(sizes)), key=lambda place: (found[place] - exact[place], place))
    for place in left[: max(total - sum(found), 0)]:
        found[place] += 1
    return tuple(found)


def _fixed(size: int) -> dict[str, Any]:
    return {**FIXED, "replicas": size}


def _between(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


def _totals(changes: RegionChanges) -> dict[str, Any]:
    """The settings of all regions added up; targets differ from region to region."""
    total: dict[str, Any] = {"replicas": sum(each["replicas"] for each in changes)}
    if any("scaling_target" in each for each in changes):
        total["scaling_target"] = None
        for name in ("min_replicas", "max_replicas"):
            total[name] = sum(each.get(name, each["replicas"]) for each in changes)
    return total


def _shown(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: changes.get(name) for name in ("replicas", "min_replicas", "max_replicas", "scaling_target")}
