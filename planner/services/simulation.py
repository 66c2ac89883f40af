"""Simulating a plan's cluster on a request trace, in this process.

Only workers and commands import this module: it brings in the compiled simulator.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from catalog.profiles import serving_memory_profile, serving_profiles
from catalog.selectors import catalog_snapshot
from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.simulate.layout import Array
from planner.engine.simulate.planned_replica import Lengths, planned_replica
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.run import RowsSink, simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.warm_up import warm_up
from planner.engine.workload import InferenceQuestion, parse_question
from planner.services.planning import plan_inference, resolve_model
from planner.services.simulation_report import Costs, report
from planner.services.trace_files import Trace

Told = Callable[[int, float], None]
"""Told how many requests have arrived and the simulated seconds; may raise to stop."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestTimes:
    """When each request of a trace, in its order, got where; nan where it never did."""

    scheduled_s: Array
    first_token_s: Array
    last_token_s: Array
    replica: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """A run: its report, ready for JSON, and the times of its requests where asked for."""

    document: dict[str, Any]
    requests: RequestTimes | None


def simulate_plan(
    raw_plan: Mapping[str, Any],
    trace: Trace,
    settings: SimulationQuestion,
    *,
    keep_requests: bool = False,
    told: Told | None = None,
) -> Simulation:
    """Plan ``raw_plan``, take the chosen option's cluster, and serve ``trace`` with it.

    Raises ``InvalidQuestion`` where the question is wrong, nothing fits, or there is no such option.
    """
    question = parse_question(InferenceQuestion, raw_plan)
    plan = plan_inference(raw_plan)
    option = chosen_option(plan, settings.option)
    fleet = planned_fleet(question, option, trace, settings)
    collector = _Collector(len(trace)) if keep_requests else None
    warm_up()
    start = time.perf_counter()
    outcome = simulate(
        fleet,
        trace.batches(),
        hash_ids=trace.columns.hash_ids,
        rows=None if collector is None else collector.take,
        progress=told,
    )
    wall_s = time.perf_counter() - start
    document = report(
        outcome,
        wall_s=wall_s,
        costs=_costs(option, outcome, fleet),
        limits_ms={"ttft": question.ttft_ms, "tpot": question.tpot_ms},
    )
    header = {
        "option": option.id,
        "replicas": fleet.pools[0].replicas,
        "settings": asdict(settings),
        "question": plan.question,
        "catalog_version": plan.catalog_version,
        "engine_version": plan.engine_version,
        "notes": [*trace.notes, *_fleet_notes(option, fleet)],
    }
    return Simulation(
        document=document | header, requests=None if collector is None else collector.times(trace.origin_s)
    )


def chosen_option(plan: InferencePlan, wanted: str) -> InferenceOption:
    """The plan's option by id or place (from 0); the first where nothing is named."""
    if not plan.options:
        advice = "; ".join(f"{each.field}: {each.suggestion}" for each in plan.advice)
        raise InvalidQuestion(
            [FieldError(field="plan", value=None, message="Nothing fits this question.", allowed=advice or "another")]
        )
    by_name = {option.id: option for option in plan.options}
    by_name |= {str(place): option for place, option in enumerate(plan.options)}
    if wanted and wanted not in by_name:
        raise InvalidQuestion(
            [
                FieldError(
                    field="option",
                    value=wanted,
                    message="Not an option of this plan.",
                    allowed=f"0 to {len(plan.options) - 1}, or an option's id",
                )
            ]
        )
    return by_name[wanted] if wanted else plan.options[0]


def planned_fleet(
    question: InferenceQuestion, option: InferenceOption, trace: Trace, settings: SimulationQuestion
) -> Fleet:
    """The option's replicas behind one gateway, as ``settings`` would have them."""
    columns = trace.columns
    kind = planned_replica(
        option,
        resolve_model(question),
        question,
        settings,
        catalog_snapshot(),
        serving_profiles(),
        serving_memory_profile(question.engine),
        lengths=Lengths(
            input_tokens=float(np.mean(columns.input_tokens)), output_tokens=float(np.mean(columns.output_tokens))
        ),
        hash_tokens=trace.hash_tokens,
    )
    replicas = settings.replicas or option.layout.replicas
    per_node = max(1, int(option.cluster.gpus_per_node // kind.gpus))
    nodes_each = max(1, math.ceil(kind.gpus / option.cluster.gpus_per_node))
    pool = Pool(
        kind=kind,
        replicas=replicas,
        policy=settings.policy,  # type: ignore[arg-type]
        load_cap=settings.load_cap,
        max_outstanding=settings.max_outstanding,
        hold_s=settings.queue_timeout_s,
        replicas_per_unit=per_node,
        unit_gpus=option.cluster.gpus_per_node * nodes_each,
    )
    return Fleet(
        pools=[pool],
        client_timeout_s=settings.client_timeout_s,
        slo_ttft_s=_seconds(question.ttft_ms),
        slo_tpot_s=_seconds(question.tpot_ms),
        seed=settings.seed,
    )


def _seconds(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1e3


def _costs(option: InferenceOption, outcome: Outcome, fleet: Fleet) -> Costs:
    """Node-hours x the option's price; a replica over several nodes is billed for all of them."""
    nodes_each = Decimal(str(fleet.pools[0].gpus_per_unit / option.cluster.gpus_per_node))
    return Costs(
        usd_per_unit_hour=option.price.usd_per_node_hour * nodes_each, unit_hours=float(outcome.unit_hours.sum())
    )


def _fleet_notes(option: InferenceOption, fleet: Fleet) -> list[str]:
    kind = fleet.pools[0].kind
    return [
        f"{fleet.pools[0].replicas} replicas of {option.layout.tensor * option.layout.pipeline} GPUs "
        f"({option.cluster.accelerator_name}, {option.weight_format}), {option.confidence.kind} speed.",
        f"KV cache: {kind.record()['blocks']:,} blocks of {kind.record()['block_tokens']} tokens a replica.",
    ]


class _Collector:
    """Times by request number, filled as requests leave."""

    def __init__(self, requests: int) -> None:
        self._columns = {name: np.full(requests, math.nan) for name in ("scheduled", "first", "last")}
        self._replica = np.full(requests, -1, np.int32)

    @property
    def take(self) -> RowsSink:
        """What the run hands finished requests to."""
        return self._take

    def _take(self, rows: Array) -> None:
        for name, column in self._columns.items():
            column[rows["request"]] = rows[name]
        self._replica[rows["request"]] = rows["replica"]

    def times(self, origin_s: float) -> RequestTimes:
        """The columns, in the trace's own time."""
        return RequestTimes(
            scheduled_s=self._columns["scheduled"] + origin_s,
            first_token_s=self._columns["first"] + origin_s,
            last_token_s=self._columns["last"] + origin_s,
            replica=self._replica,
        )
