"""Running the job ``simulation``: only workers import this module, for it brings in the compiled simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.services.incident_report import incident_report
from planner.services.plan_json import plain
from planner.services.run_kind import ReportProgress, Spread
from planner.services.served import Served, together, unpack
from planner.services.simulated_job import job_report
from planner.services.simulation import costs_of, describe
from planner.services.simulation_job import SimulationJob, read_simulation
from planner.services.simulation_parts import Sites, serve_task, sites_of
from planner.services.simulation_report import cents_of, region_report

TIMED = ("wall_s", "simulated_requests_per_wall_s")
"""How long a run took differs between two runs of the same question, so it is no part of a result."""


def run_simulation(params: Mapping[str, Any], report: ReportProgress, spread: Spread) -> dict[str, Any]:
    """Simulate, reporting progress by simulated time; the result is the same in any process, and in any number."""
    job = read_simulation(params)
    sites = sites_of(job)
    tasks = sites.tasks()
    parts = [serve_task(job, tasks[0], report)] if len(tasks) == 1 else [unpack(part) for part in spread(tasks, report)]
    document = run_document(sites, parts)
    document = {name: value for name, value in document.items() if name not in TIMED}
    result: dict[str, Any] = plain(document | what_was_served(job, document))
    return result


def what_was_served(job: SimulationJob, document: Mapping[str, Any]) -> dict[str, Any]:
    """The first region's traffic or trace, and how a job of all of it went where the traffic is one's."""
    first = job.regions[0]
    found: dict[str, Any] = {"traffic": first.traffic, "trace": first.trace}
    question = parse_question(InferenceQuestion, job.question)
    done = job_report(question, first.traffic, document["duration_s"], document["cost_usd"])
    return found if done is None or len(job.regions) > 1 else found | {"job": done}


def run_document(sites: Sites, parts: Sequence[Served], *, wall_s: float = 0.0) -> dict[str, Any]:
    """What a run says, of all its parts; with several regions also of each."""
    options = [cluster.option for cluster in sites.clusters]
    served = together(parts)
    document = describe(served, sites.first, options, sites.job.scenario, wall_s=wall_s)
    if sites.job.regions[0].name:
        document["regions"] = _regions(sites, served, document["cost_usd"])
        names = [sites.job.regions[pool.region].name for pool in served.pools]
        document["incidents"] = incident_report(served.happened, names)
    return document


def _regions(sites: Sites, served: Served, total: Decimal) -> list[dict[str, Any]]:
    """Each region: its own requests, whoever served them, and what it rents until all have ended."""
    options = [cluster.option for cluster in sites.clusters]
    places = range(len(sites.job.regions))
    bills = cents_of([costs_of(served, options, region=place).usd for place in places], total)
    return [
        region_report(
            region.name,
            served.of_region(place),
            bills[place],
            replicas=served.replicas_of(place),
            gpu_hours=served.gpu_hours(place),
        )
        for place, region in enumerate(sites.job.regions)
    ]
