"""Simulating a plan's cluster on a request trace or on generated traffic, in this process.

Only workers and commands import this module: it brings in the compiled simulator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Protocol

from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.hardware import CatalogSnapshot
from planner.engine.model_summary import summarize
from planner.engine.question_reading import parse_question
from planner.engine.simulate.control import FleetControl
from planner.engine.simulate.layout import Array, Traffic
from planner.engine.simulate.planned_fleet import PlannedFleet
from planner.engine.simulate.planned_replica import Lengths
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import ClosedLoop
from planner.engine.simulate.warm_up import warm_up
from planner.engine.workload import InferenceQuestion
from planner.services.incident_report import incident_report
from planner.services.option_fleet import fleet_of, split_settings
from planner.services.plan_options import chosen_option
from planner.services.planning import plan_with_catalog, resolve_model
from planner.services.request_times import RequestTimes, TimesCollector
from planner.services.served import RentedPool, Served
from planner.services.simulation_notes import (
    cut_notes,
    fleet_notes,
    gateway_notes,
    hardware_note,
    spot_notes,
    start_notes,
    transfer_notes,
)
from planner.services.simulation_report import Costs, RentedTime, report

Told = Callable[[int, float], None]
"""Told how many requests have arrived and the simulated seconds; may raise to stop."""


class TrafficSource(Protocol):
    """Requests to serve: a trace, or a generator."""

    @property
    def lengths(self) -> Lengths:
        """Mean prompt and answer."""

    @property
    def hash_tokens(self) -> int | None:
        """Tokens that one of its block hashes covers."""

    @property
    def hash_ids(self) -> Array | None:
        """Its block hashes, all requests one after another."""

    @property
    def is_job(self) -> bool:
        """Whether its requests are all there at the beginning."""

    @property
    def has_no_prefixes(self) -> bool:
        """Whether nothing that prompts begin with is said of it: then each finds the question's cached share."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of it."""

    @property
    def loop(self) -> ClosedLoop | None:
        """Its clients, where they wait for their answers."""

    @property
    def lasts_s(self) -> float:
        """How long a fleet is kept for them at least; 0: until the last has left."""

    def batches(self) -> Iterator[Traffic]:
        """The requests in order of arrival."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """A run: its report, ready for JSON, and the times of its requests where asked for."""

    document: dict[str, Any]
    outcome: Outcome
    requests: RequestTimes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCluster:
    """One option of a plan, ready to be simulated as often as wanted."""

    question: InferenceQuestion
    plan: InferencePlan
    option: InferenceOption
    catalog: CatalogSnapshot
    """What the plan was made from."""

    def run(
        self,
        source: TrafficSource,
        settings: SimulationQuestion,
        *,
        keep_requests: bool = False,
        told: Told | None = None,
    ) -> Simulation:
        """Serve ``source``; raises ``InvalidQuestion`` where settings don't go together."""
        collector = TimesCollector() if keep_requests else None
        warm_up()
        start = time.perf_counter()
        served = serve(self.fleet(source, settings), source, settings, collector=collector, told=told)
        wall_s = time.perf_counter() - start
        document = describe(served, self, (self.option,), settings, wall_s=wall_s)
        return Simulation(
            document=document, outcome=served.outcome, requests=None if collector is None else collector.times()
        )

    def fleet(self, source: TrafficSource, settings: SimulationQuestion) -> PlannedFleet:
        """The option's cluster as a fleet to simulate."""
        return fleet_of(
            self.question,
            self.option,
            self.catalog,
            settings,
            lengths=source.lengths,
            hash_tokens=source.hash_tokens,
            own_prefixes=source.has_no_prefixes and self.question.prefix_kind == "private",
        )

    def settled(self, settings: SimulationQuestion) -> SimulationQuestion:
        """``settings`` with what the option adds to them: its prefill pool."""
        kv_bytes = summarize(resolve_model(self.question)).kv_bytes_per_token
        return split_settings(self.option, settings, kv_bytes * self.question.input_tokens)

    def with_option(self, wanted: str) -> PlannedCluster:
        """Another option of the same plan, by id or place."""
        return replace(self, option=chosen_option(self.plan, wanted))


def serve(
    planned: PlannedFleet,
    source: TrafficSource,
    settings: SimulationQuestion,
    *,
    collector: TimesCollector | None = None,
    told: Told | None = None,
    lasts_s: float = 0.0,
) -> Served:
    """Serve ``source`` with a fleet, in this process; the fleet is kept for ``lasts_s`` too, of parts beside it."""
    control = FleetControl(planned.lives, seed=settings.seed)
    outcome = simulate(
        replace(planned.fleet, loop=source.loop),
        source.batches(),
        control=control,
        hash_ids=source.hash_ids,
        rows=None if collector is None else collector.take,
        progress=told,
        lasts_s=max(source.lasts_s, lasts_s),
    )
    return Served(
        outcome=outcome,
        happened=control.happened,
        pools=tuple(
            RentedPool(
                region=0,
                nodes_per_unit=nodes,
                replicas=pool.replicas,
                unit_gpus=pool.gpus_per_unit,
                prefills=pool.decode_pool is not None,
            )
            for pool, nodes in zip(planned.fleet.pools, planned.nodes_per_unit, strict=True)
        ),
        replicas=planned.replicas,
        notes=(
            *source.notes,
            *cut_notes(source.loop, settings, outcome),
            *gateway_notes(source.loop, planned, is_job=source.is_job),
            *fleet_notes(planned),
            *start_notes(planned),
            *transfer_notes(planned, settings),
        ),
    )


def describe(
    served: Served,
    cluster: PlannedCluster,
    options: Sequence[InferenceOption],
    settings: SimulationQuestion,
    *,
    wall_s: float,
) -> dict[str, Any]:
    """A run as JSON values; ``options`` are what each region rents."""
    question, plan = cluster.question, cluster.plan
    document = report(
        served.outcome,
        wall_s=wall_s,
        costs=costs_of(served, options),
        limits_ms={"ttft": question.ttft_ms, "tpot": question.tpot_ms},
    )
    return document | {
        "incidents": incident_report(served.happened),
        "option": options[0].id,
        "replicas": served.replicas,
        "settings": asdict(cluster.settled(settings)),
        "question": plan.question,
        "catalog_version": plan.catalog_version,
        "engine_version": plan.engine_version,
        "notes": [
            *dict.fromkeys(hardware_note(option) for option in options),
            *spot_notes(options[0], settings),
            *served.notes,
        ],
    }


def costs_of(served: Served, options: Sequence[InferenceOption], *, region: int | None = None) -> Costs:
    """What a run is billed, or one of its regions: each pool's units at the price of its region's option.

    A pool that was served in parts is one.
    """
    pools: dict[tuple[int, bool], RentedTime] = {}
    for pool, hours, work_s in zip(served.pools, served.outcome.unit_hours, served.outcome.work_s, strict=True):
        if region not in (None, pool.region):
            continue
        rented = RentedTime(
            usd_per_hour=options[pool.region].price.usd_per_node_hour * Decimal(repr(float(pool.nodes_per_unit))),
            hours=float(hours),
            busy_s=float(work_s[0]),
            prefill_s=float(work_s[1]),
        )
        same = pools.get((pool.region, pool.prefills))
        pools[pool.region, pool.prefills] = rented if same is None else same.and_more(rented)
    return Costs(rented=tuple(pools.values()))


def planned_cluster(raw_plan: Mapping[str, Any], option: str = "") -> PlannedCluster:
    """Plan ``raw_plan`` and choose one of its options (its id or place; the first where empty).

    Raises ``InvalidQuestion`` where the question is wrong, nothing fits, or there is no such option.
    """
    plan, catalog = plan_with_catalog(raw_plan)
    return PlannedCluster(
        question=parse_question(InferenceQuestion, raw_plan),
        plan=plan,
        option=chosen_option(plan, option),
        catalog=catalog,
    )
