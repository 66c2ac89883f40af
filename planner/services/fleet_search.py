"""The smallest fleet of a plan's option, and its autoscaler's setting, that hold the SLO for a given traffic.

First fixed sizes: doubling up, then cutting the bracket, several sizes at a time. Where the scenario has an
autoscaler, then floors and targets around the size found, all at once. Which runs are made follows from the question
alone; how many of them run at the same time is the caller's affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Final

from planner.engine.cost import CENT, quantize
from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.capacity import CapacitySearch, meets
from planner.engine.simulate.distributions import STATISTICS, Distribution
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.results import AtHome, Outcome
from planner.engine.workload import InferenceQuestion
from planner.services.capacity_question import CapacityQuestion
from planner.services.fleet_limits import no_limits
from planner.services.served import Served
from planner.services.simulation_report import pace

Changes = Mapping[str, Any]
"""Settings of the scenario that one run differs in."""
Share = Callable[[float], float]
"""From the share of these runs to the share of the search."""
ServeAll = Callable[[Sequence[Changes], Share], list[Served]]
"""Has runs made, in any order and number at a time; their outcomes in the order asked."""
Bill = Callable[[Served], Decimal]

FIXED: Final[Changes] = {"autoscaler": "none"}
TARGET_SHARES: Final = (0.4, 0.6, 0.8, 1.0)
"""Of what each replica of the smallest fixed fleet carries at the busiest time."""
SHARED_TARGETS: Final = {"utilization": (0.4, 0.55, 0.7, 0.85), "kv_use": (0.4, 0.55, 0.7, 0.85)}
"""Of metrics that are shares themselves."""
FLOORS: Final = (0.0, 0.25, 0.5)
"""Of the smallest fixed fleet; one replica at least."""
CEILING: Final = 2
"""Times the smallest fixed fleet: an autoscaler that lags needs more at times than a fleet that never scales."""


@dataclass(slots=True, kw_only=True)
class FleetSearch:
    """A search under way: what was tried, and the best of it."""

    question: InferenceQuestion
    scenario: SimulationQuestion
    start: int
    """Replicas of the plan."""
    asked: CapacityQuestion
    bill: Bill
    within_s: float | None = None
    """In what time a job must be done; None where nothing is to be done by a time."""
    points: list[dict[str, Any]] = field(default_factory=list, init=False)
    best: Served | None = field(default=None, init=False)
    changes: Changes = field(default_factory=dict, init=False)
    """Of the best run."""
    chosen: int = field(default=-1, init=False)
    """Which of the points is the best."""
    smallest: int | None = field(default=None, init=False)
    """The fewest replicas that do without an autoscaler; None where none up to the most do."""

    def run(self, serve_all: ServeAll) -> None:
        """Search; raises ``InvalidQuestion`` where the question has no limits."""
        if self.question.ttft_ms is None and self.question.tpot_ms is None and self.within_s is None:
            raise InvalidQuestion([no_limits()])
        scales = self.scenario.autoscaler != "none"
        busiest = self._fixed(serve_all, 0.6 if scales else 1.0)
        if scales and self.smallest is not None and busiest is not None:
            changes = scaling_changes(self.scenario, self.smallest, busiest)
            for each, served in zip(changes, serve_all(changes, lambda share: 0.6 + 0.4 * share), strict=True):
                self._note(each, served)

    def document(self) -> dict[str, Any]:
        """All that was tried, by what it costs an hour; of a job, until it is done."""
        order = by_cost(self.points, is_job=self.within_s is not None)
        return {
            "replicas": self.smallest,
            "percentile": self.question.slo_percentile,
            "limits_ms": {"ttft": self.question.ttft_ms, "tpot": self.question.tpot_ms},
            "within_s": self.within_s,
            "most_replicas": self.asked.most_replicas,
            "chosen": order.index(self.chosen),
            "tried": [self.points[place] for place in order],
        }

    def _fixed(self, serve_all: ServeAll, whole: float) -> Outcome | None:
        """Fixed sizes; returns how the smallest that does went."""
        search = CapacitySearch(
            start=self.scenario.replicas or self.start, most=self.asked.most_replicas, width=self.asked.parallel
        )
        enough: dict[int, Outcome] = {}
        met: dict[int, bool] = {}
        done = 0
        while sizes := search.ask():
            left = rounds_left(met, sizes, self.asked.parallel)
            share = partial(_between, whole * done / (done + left), whole * (done + 1) / (done + left))
            changes = [{**FIXED, "replicas": size} for size in sizes]
            found = serve_all(changes, share)
            told = {size: self._note(each, served) for size, each, served in zip(sizes, changes, found, strict=True)}
            enough |= {size: served.outcome for size, served in zip(sizes, found, strict=True) if told[size]}
            enough = {size: enough[size] for size in sorted(enough)[:1]}
            met |= told
            search.tell(told)
            done += 1
        self.smallest = search.answer
        return None if search.answer is None else enough[search.answer]

    def _note(self, changes: Changes, served: Served) -> bool:
        """Keep a run's point, and the run where it is the best so far."""
        met = holds(self.question, served.outcome) and (
            self.within_s is None or served.outcome.duration_s <= self.within_s
        )
        tried = point(self.question, changes, served, met=met, usd=self.bill(served))
        self.points.append(tried | {"scaling_metric": metric_of(self.scenario, changes)})
        is_job = self.within_s is not None
        if self.best is None or rank(self.points[-1], is_job=is_job) < rank(self.points[self.chosen], is_job=is_job):
            self.best, self.changes, self.chosen = served, changes, len(self.points) - 1
        return met


def by_cost(points: Sequence[Mapping[str, Any]], *, is_job: bool = False) -> list[int]:
    """The order of points by what they cost an hour, for a fleet too small runs on until its backlog is gone."""
    return sorted(range(len(points)), key=lambda place: (*_costs(points[place], is_job=is_job), place))


def _costs(tried: Mapping[str, Any], *, is_job: bool) -> tuple[Decimal, ...]:
    return (tried["cost_usd"],) if is_job else (tried["usd_per_hour"] or Decimal(0), tried["cost_usd"])


def _between(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


def rank(tried: Mapping[str, Any], *, is_job: bool = False) -> tuple[Any, ...]:
    """What holds the limits is preferred, the cheapest of it; else what comes closest to holding them."""
    if tried["met"]:
        return (0, *_costs(tried, is_job=is_job), tried["replicas"])
    # Where none keeps a request within them, the one that is soonest is closest: not the cheapest.
    waits = tuple(math.inf if tried[name] is None else tried[name] for name in ("ttft_ms", "tpot_ms"))
    return (1, -(tried["goodput_share"] or 0.0), *waits, tried["cost_usd"])


def rounds_left(met: Mapping[int, bool], sizes: Sequence[int], width: int) -> int:
    """How many rounds of runs a search still needs, this one included, as far as can be told.

    >>> rounds_left({}, (4, 8, 16, 32), 4), rounds_left({16: False, 32: True}, (19, 22, 26, 29), 4)
    (2, 2)
    """
    enough = [size for size, holds_it in met.items() if holds_it]
    if not enough:
        return 1 + max(1, math.ceil(math.log(max(sizes[0], 1), width + 1)))
    few = max((size for size, holds_it in met.items() if not holds_it and size < min(enough)), default=0)
    return max(1, math.ceil(math.log(max(min(enough) - few, 1), width + 1)))


def scaling_changes(scenario: SimulationQuestion, smallest: int, outcome: Outcome) -> list[dict[str, Any]]:
    """Floors and targets to try, where ``smallest`` replicas without an autoscaler went as ``outcome``."""
    floors = sorted({max(1, math.ceil(share * smallest)) for share in FLOORS})
    targets = SHARED_TARGETS.get(scenario.scaling_metric) or tuple(
        float(f"{share * _busiest(scenario.scaling_metric, outcome) / smallest:.3g}") for share in TARGET_SHARES
    )
    most = max(CEILING * smallest, smallest + 1)
    return [
        {"replicas": smallest, "min_replicas": floor, "max_replicas": most, "scaling_target": target}
        for floor in floors
        for target in targets
        if target > 0
    ]


def _busiest(metric: str, outcome: Outcome) -> float:
    """The metric of all replicas together at its highest."""
    if metric == "requests_per_s":
        return float(outcome.timeline.arrived.max(initial=0)) / outcome.timeline.bin_s
    if metric == "queue":
        return float(outcome.samples.waiting_max.max(initial=0.0))
    return float((outcome.samples.running + outcome.samples.waiting).max(initial=0.0))


def holds(question: InferenceQuestion, outcome: Outcome | AtHome) -> bool:
    """Whether a run meets the question's limits at its percentile, with every request answered."""
    return meets(
        outcome,
        ttft_s=None if question.ttft_ms is None else question.ttft_ms / 1e3,
        tpot_s=None if question.tpot_ms is None else question.tpot_ms / 1e3,
        percentile=question.slo_percentile,
    )


def metric_of(scenario: SimulationQuestion, changes: Changes) -> str | None:
    """What the target of a run's autoscaler is of; None where it has no autoscaler."""
    return scenario.scaling_metric if "scaling_target" in changes else None


def point(question: InferenceQuestion, changes: Changes, served: Served, *, met: bool, usd: Decimal) -> dict[str, Any]:
    """One run on the chart of SLO attainment against cost."""
    outcome, at = served.outcome, question.slo_percentile
    return {
        "replicas": changes["replicas"],
        "autoscaled": "scaling_target" in changes,
        "scaling_target": changes.get("scaling_target"),
        "min_replicas": changes.get("min_replicas"),
        "max_replicas": changes.get("max_replicas"),
        "met": met,
        "ttft_ms": _at(outcome.ttft, at),
        "tpot_ms": _at(outcome.tpot, at),
        "goodput_share": outcome.good / outcome.requests if outcome.requests else None,
        "goodput_requests_s": outcome.good / outcome.duration_s if outcome.duration_s > 0 else None,
        "duration_s": outcome.duration_s,
        "dropped": outcome.requests - outcome.left["done"],
        "gpu_hours": outcome.gpu_hours,
        "cost_usd": quantize(usd, CENT),
        **pace(usd, outcome),
    }


def _at(latency: Distribution, statistic: str) -> float | None:
    value_s = latency.mean_s if statistic == "mean" else latency.quantile_s(STATISTICS[statistic])
    return None if math.isnan(value_s) else value_s * 1e3
