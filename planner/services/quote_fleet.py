"""A quote for a fleet that a simulation sized, in place of the plan's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.documents.wording import wording
from planner.models import PlanKind, ScenarioVersion
from planner.services.plan_json import plain
from planner.services.quote_plan import compute_item, option_of


def fleet_terms(version: ScenarioVersion, replicas: int, language: str) -> dict[str, Any]:
    """Terms of a quote for ``replicas`` of a serving plan's option, as a simulation found them enough: its nodes, and
    that they are not the plan's; nothing for split pools, whose replicas are of two kinds.
    """
    option = option_of(version)
    if version.scenario.kind == PlanKind.TRAINING or option.get("prefill_pool"):
        return {}
    item = compute_item(version, language, nodes_for(option, replicas))
    said = wording(language).say("fleet.simulated", n=replicas, planned=int(option["layout"]["replicas"]))
    return {"items": [plain(item)], "assumptions": [said]}


def nodes_for(option: Mapping[str, Any], replicas: int) -> int:
    """Nodes that so many replicas of an option take: several to a node, or several nodes to one."""
    layout, per_node = option["layout"], float(option["cluster"]["gpus_per_node"])
    gpus = int(layout["pipeline"]) * max(int(layout["tensor"]), int(layout["expert"]))
    if gpus >= per_node:
        return replicas * math.ceil(gpus / per_node)
    return math.ceil(replicas / (per_node // gpus))
