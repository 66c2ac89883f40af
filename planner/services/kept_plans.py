"""The plan that all parts of a simulation rest on: made once a process, and the same as whoever cut the job found."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from planner.engine.answers import InferenceOption
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.services.run_kind import Task
from planner.services.simulation import PlannedCluster, planned_cluster
from planner.services.simulation_job import SimulationJob

MOST_LISTED: Final = 500
"""Options that a plan lists at most: in one made anew, an option may stand further down."""
PLANS_KEPT: Final = 2

_kept: dict[tuple[str, str], PlannedCluster] = {}
"""The last plans of this process by question and version of catalog and prices: one for all parts of a job."""


def _plan_key(job: SimulationJob, version: str) -> tuple[str, str]:
    return json.dumps(job.question, sort_keys=True), version


def keep_plan(job: SimulationJob, plan: PlannedCluster) -> None:
    """For parts of the job that this process serves too."""
    _keep(_plan_key(job, plan.plan.catalog_version), plan)


def _keep(key: tuple[str, str], plan: PlannedCluster) -> None:
    _kept[key] = plan
    for old in list(_kept)[:-PLANS_KEPT]:
        del _kept[old]


def clusters_of(job: SimulationJob, task: Task) -> list[PlannedCluster]:
    """What each region rents, as whoever cut the job into parts found it.

    Prices may have changed since, for a part has none: its replicas are all that must be the same.
    """
    key = _plan_key(job, task["catalog"])
    if key not in _kept:
        _keep(key, _planned_again(job, task))
    return [_kept[key].with_option(option) for option in task["options"]]


def _planned_again(job: SimulationJob, task: Task) -> PlannedCluster:
    listed = planned_cluster(job.question)
    if listed.plan.catalog_version != task["catalog"]:
        if _list_version(listed.plan.catalog_version) != _list_version(task["catalog"]):
            raise _stale(say("The catalog has changed while this ran."), "catalog")
        listed = planned_cluster({**job.question, "max_options": MOST_LISTED})
    nodes = {option.id: mark_of(option) for option in listed.plan.options}
    if any(nodes.get(name) != same for name, same in zip(task["options"], task["nodes"], strict=True)):
        message = say("Your organization's prices have changed while this ran: what it simulates is no longer offered.")
        raise _stale(message, "prices")
    return listed


def _list_version(version: str) -> str:
    """Of the catalog alone, whatever price book is laid over it."""
    return version.partition("+")[0]


def _stale(message: str, code: str) -> InvalidQuestion:
    fault = FieldError(field="question", value=None, message=message, allowed=say("start it again"), code=code)
    return InvalidQuestion([fault])


def mark_of(option: InferenceOption) -> str:
    """A mark of all that a simulation takes from an option: the same for the same replicas, whatever they cost."""
    pool, speed = option.prefill_pool, option.speed
    # To six digits: beside other options in the same arrays, the last bits of a float may differ.
    figures = (option.memory.capacity_gib, speed.capacity_requests_s, speed.ttft_ms["mean"])
    facts = (option.cluster, option.layout, pool and pool.gpus, option.weight_format, [f"{f:.6g}" for f in figures])
    return sha256(repr(facts).encode()).hexdigest()
