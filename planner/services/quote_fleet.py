"""A quote for a fleet that a search by simulation found, in place of the plan's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from planner.documents.wording import wording
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from planner.models import PlanKind, Run, ScenarioVersion
from planner.services.plan_json import plain
from planner.services.quote_plan import compute_item, option_of, place_text
from planner.services.quote_terms import ItemTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """What one gateway's fleet rents: of all, or of one region."""

    region: str
    """Empty where there are none."""
    replicas: int
    low: int | None
    """Replicas; None of a fleet that doesn't scale."""
    high: int | None
    node_hours: Decimal
    """Billed in the run."""


def is_quotable(run: Run) -> bool:
    """Whether what a search chose can be quoted: it holds the limits, and all its regions rent nodes of one kind.

    Where no request came there was nothing to hold.
    """
    result = run.result if isinstance(run.result, dict) else {}
    search = result.get("search")
    if not search or not search["tried"][search["chosen"]]["met"] or not result["requests"]:
        return False
    regions = run.params.get("regions") or ()
    return not any(region.get("scenario", {}).get("option") for region in regions)


def fleet_terms(version: ScenarioVersion, run: Run, language: str) -> dict[str, Any]:
    """Terms of a quote for the fleet that a search for ``version``'s plan found: its nodes, by region, or the hours of
    nodes that come and go with the load; and that they are not the plan's.

    Raises ``InvalidQuestion`` for a search that was for another plan, or whose fleet can't be quoted.
    """
    option, result = option_of(version), run.result if isinstance(run.result, dict) else {}
    same = result.get("option") == version.option_id and result.get("question") == version.plan["question"]
    if version.scenario.kind == PlanKind.TRAINING or not same or not is_quotable(run):
        message, allowed = say("The search was for another plan."), say("the plan that was searched for")
        raise InvalidQuestion([FieldError(field="run", value=None, message=message, allowed=allowed)])
    rented = list(_rented(option, result))
    return {
        "items": [plain(_item(version, each, result, language)) for each in rented],
        "assumptions": [_said(option, each, result, language) for each in rented],
    }


def _rented(option: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Rented]:
    search = result["search"]
    chosen = search["tried"][search["chosen"]]
    regions = result.get("regions") or ({"name": "", "gpu_hours": result["gpu_hours"]},)
    for region, size in zip(regions, chosen.get("regions") or (chosen,), strict=True):
        yield Rented(
            region=str(region["name"]),
            replicas=int(size["replicas"]),
            low=size["min_replicas"],
            high=size["max_replicas"],
            node_hours=Decimal(repr(region["gpu_hours"])) / Decimal(str(option["cluster"]["gpus_per_node"])),
        )


def _item(version: ScenarioVersion, rented: Rented, result: Mapping[str, Any], language: str) -> ItemTerms:
    option, words = option_of(version), wording(language)
    cluster, job = option["cluster"], result.get("job")
    place = ": ".join(part for part in (rented.region, place_text(cluster)) if part)
    shape = f"{cluster['gpus_per_node']:g}x {cluster['accelerator_name']}"
    mean = rented.node_hours / _hours(result)
    hours = Decimal(HOURS_PER_MONTH) if job is None else Decimal(job["hours"])
    if rented.low is not None and rented.high is not None:
        low, high = nodes_for(option, rented.low), nodes_for(option, rented.high)
        quantity = (mean * hours).quantize(Decimal(1) if job is None else Decimal("0.0001"))
        label = words.say("nodes.scaled", low=low, high=high, shape=shape)
        detail = words.say("nodes.scaled.detail", place=place, mean=words.fixed(mean, 2), hours=words.exact(hours))
    else:
        # Pools of two kinds round up to whole nodes each by itself, as the run was billed.
        split = bool(option.get("prefill_pool") or result["settings"].get("prefill_replicas"))
        nodes = max(1, round(mean)) if split else nodes_for(option, rented.replicas)
        quantity, label = nodes * hours, words.nodes(nodes, shape)
        detail = words.say("nodes.detail", place=place, n=nodes, hours=words.exact(hours))
    return replace(compute_item(version, language), label=label, detail=detail, quantity=quantity)


def _said(option: Mapping[str, Any], rented: Rented, result: Mapping[str, Any], language: str) -> str:
    words, planned = wording(language), int(option["layout"]["replicas"])
    if rented.low is None:
        said = words.say("fleet.simulated", n=rented.replicas, planned=planned)
    else:
        hours = words.rounded(float(_hours(result)))
        said = words.say("fleet.scaled", low=rented.low, high=rented.high, planned=planned, hours=hours)
    return f"{rented.region}: {said}" if rented.region else said


def _hours(result: Mapping[str, Any]) -> Decimal:
    """Simulated time."""
    return Decimal(repr(float(result["duration_s"]))) / SECONDS_PER_HOUR


def nodes_for(option: Mapping[str, Any], replicas: int) -> int:
    """Nodes that so many replicas of an option take: several to a node, or several nodes to one."""
    layout, per_node = option["layout"], float(option["cluster"]["gpus_per_node"])
    gpus = int(layout["pipeline"]) * max(int(layout["tensor"]), int(layout["expert"]))
    if gpus >= per_node:
        return replicas * math.ceil(gpus / per_node)
    return math.ceil(replicas / (per_node // gpus))
