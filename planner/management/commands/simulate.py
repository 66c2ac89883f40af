"""``manage.py simulate TRACE --plan FILE.json --out OUT.json [--requests OUT.csv]``: a trace on a planned cluster."""

from __future__ import annotations

import csv
import math
import sys
import time
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_like import traffic_like
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.capacity_job import MEMBERS as SEARCHED
from planner.services.capacity_job import CapacityJob
from planner.services.capacity_question import MOST_REPLICAS, CapacityQuestion
from planner.services.capacity_run import search_regions
from planner.services.error_envelope import envelope
from planner.services.fleet_limits import never_met
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.json_input import MAX_BODY_BYTES, read_object, read_question
from planner.services.plan_json import encode, plain
from planner.services.request_times import RequestTimes
from planner.services.run_kind import ReportProgress, Task, in_turn
from planner.services.served import Served, pack
from planner.services.simulated_job import job_report
from planner.services.simulation import PlannedCluster, planned_cluster
from planner.services.simulation_job import MEMBERS, SimulationJob, read_simulation
from planner.services.simulation_parts import serve_task, sites_of
from planner.services.simulation_run import run_document
from planner.services.smallest_fleet import smallest_fleet
from planner.services.trace_columns import TraceError
from planner.services.trace_files import Trace, read_trace

EXIT_BAD_INPUT = 2
REQUEST_COLUMNS = ("request_id", "arrival_s", "scheduled_s", "first_token_s", "last_token_s", "replica")


class Command(BaseCommand):
    help = "Replays a request trace on the cluster of a plan, in this process."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "trace", metavar="TRACE", nargs="?", help="CSV (own, Azure or BurstGPT form) or Mooncake JSON lines; .gz"
        )
        parser.add_argument("--generate", metavar="FILE.json", help="generated traffic instead of a trace")
        parser.add_argument("--plan", required=True, metavar="FILE.json", help="the question of `plan inference`")
        parser.add_argument("--out", required=True, metavar="OUT.json", help="where the result goes; - prints it")
        parser.add_argument("--requests", metavar="OUT.csv", help="also write one row a request")
        parser.add_argument("--scenario", metavar="FILE.json", help="how to simulate: policy, option, limits ...")
        parser.add_argument("--smallest", action="store_true", help="search the fewest replicas that hold the limits")
        parser.add_argument("--option", help="which of the plan's options: its id or place (default the first)")
        parser.add_argument("--replicas", type=int, help="instead of the plan's number")
        parser.add_argument("--seed", type=int, help="of everything random")

    def handle(self, *args: Any, trace: str | None, plan: str, out: str, requests: str | None, **options: Any) -> None:
        """Exit 0 and a summary line; 2 and the error envelope on standard error for bad input."""
        try:
            question = _question(_read(plan, "plan"))
            regions = _regions(options)
            if regions is not None:
                document = _simulate_regions(question, regions, trace, requests, options)
                _write(Path(out), encode(plain(document), indent=1) + "\n", "out")
                self._sum_up(document)
                return
            source = _source(trace, options["generate"], question)
            settings = _settings(options)
            cluster = planned_cluster(question, settings.option)
            serve = smallest_fleet if options["smallest"] else PlannedCluster.run
            simulation = serve(cluster, source, settings, keep_requests=requests is not None)
            document = simulation.document | _job(cluster, source, simulation.document)
            _write(Path(out), encode(plain(document), indent=1) + "\n", "out")
            if requests is not None and simulation.requests is not None:
                _write_requests(Path(requests), source, simulation.requests)
        except InvalidQuestion as invalid:
            self.stderr.write(encode(envelope(invalid.errors), indent=2), self.style.NOTICE)
            sys.exit(EXIT_BAD_INPUT)
        self._sum_up(document)

    def _sum_up(self, document: Mapping[str, Any]) -> None:
        # On standard error: standard output may be the result itself.
        self.stderr.write(
            "{requests:,} requests, {duration_s:,.0f} s simulated in {wall_s:.3f} s: "
            "{simulated_requests_per_wall_s:,.0f} simulated requests a wall second.".format(**document),
            self.style.NOTICE,
        )


def _question(data: bytes) -> dict[str, Any]:
    """The question, given as such or inside the plan it led to."""
    asked = read_object(data).get("question")
    if not isinstance(asked, dict):
        return read_question(InferenceQuestion, data)
    parse_question(InferenceQuestion, asked)
    return asked


def _settings(options: Mapping[str, Any]) -> SimulationQuestion:
    given: dict[str, Any] = {}
    if options["scenario"]:
        given = read_question(SimulationQuestion, _read(options["scenario"], "scenario"))
    given |= {name: options[name] for name in ("option", "replicas", "seed") if options[name] is not None}
    return parse_question(SimulationQuestion, given)


def _regions(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The scenario where it has several regions."""
    if not options["scenario"]:
        return None
    scenario = read_object(_read(options["scenario"], "scenario"))
    return scenario if "regions" in scenario else None


def _simulate_regions(
    question: Mapping[str, Any],
    scenario: Mapping[str, Any],
    trace: str | None,
    requests: str | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Several regions: each its scenario and its traffic or trace, a file beside the scenario's."""
    for name, given in (("trace", trace), ("requests", requests)):
        if given is not None:
            allowed = "in each region" if name == "trace" else "a scenario without regions"
            raise InvalidQuestion(
                [FieldError(field=name, value=given, message="Given beside regions.", allowed=allowed)]
            )
    folder = Path(options["scenario"]).parent
    common = {name: value for name, value in scenario.items() if name != "regions"}
    common |= {name: options[name] for name in ("option", "replicas", "seed") if options[name] is not None}
    params: dict[str, Any] = {"question": question, "scenario": common, "regions": scenario["regions"]}
    if options["generate"]:
        params["traffic"] = read_object(_read(options["generate"], "generate"))
    start_s = time.perf_counter()
    members = SEARCHED if options["smallest"] else MEMBERS
    job = read_simulation(params, members, has=lambda name: (folder / name).is_file())
    if options["smallest"]:
        return _smallest_regions(job, folder, start_s)
    sites = sites_of(job)
    tasks = sites.tasks()
    parts = [_serve(job, task, folder) for task in tasks]
    return run_document(sites, parts, wall_s=time.perf_counter() - start_s)


def _smallest_regions(job: SimulationJob, folder: Path, start_s: float) -> dict[str, Any]:
    def execute_part(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        return pack(_serve(job, task, folder))

    asked = CapacityJob(simulation=job, search=CapacityQuestion(most_replicas=MOST_REPLICAS, parallel=1))
    found = search_regions(asked, lambda share, message: None, in_turn(execute_part, {}))
    if found["search"]["replicas"] is None:
        raise InvalidQuestion([never_met(found["search"]["percentile"], MOST_REPLICAS)])
    wall_s = time.perf_counter() - start_s
    return found | {"wall_s": wall_s, "simulated_requests_per_wall_s": found["requests"] / wall_s}


def _serve(job: SimulationJob, task: Task, folder: Path) -> Served:
    return serve_task(job, task, lambda share, message: None, opened=lambda name: (folder / name).open("rb"))


def _job(cluster: PlannedCluster, source: Trace | GeneratedTraffic, document: Mapping[str, Any]) -> dict[str, Any]:
    """How the plan's offline job went, where it is what was served."""
    if isinstance(source, Trace):
        return {}
    done = job_report(cluster.question, source.question, document["duration_s"], document["cost_usd"])
    return {} if done is None else {"job": done}


def _source(trace: str | None, generate: str | None, question: Mapping[str, Any]) -> Trace | GeneratedTraffic:
    if trace is None and generate is None and question.get("offline_requests"):
        like = traffic_like(parse_question(InferenceQuestion, question), {})
        return GeneratedTraffic(question=parse_question(TrafficQuestion, like))
    if (trace is None) == (generate is None):
        fault = FieldError(
            field="trace",
            value=trace,
            message="Give a trace or --generate, one of them.",
            allowed="TRACE or --generate",
        )
        raise InvalidQuestion([fault])
    if generate is not None:
        asked = read_question(TrafficQuestion, _read(generate, "generate"))
        return GeneratedTraffic(question=parse_question(TrafficQuestion, asked))
    try:
        return read_trace(Path(trace or ""))
    except TraceError as error:
        fault = FieldError(
            field="trace", value=error.value, message=str(error), allowed=error.allowed, code="invalid_trace"
        )
        raise InvalidQuestion([fault]) from error


def _read(file: str, field: str) -> bytes:
    try:
        with Path(file).open("rb") as stream:
            return stream.read(MAX_BODY_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unusable_file(field, file, "read", error) from error


def _write(path: Path, text: str, field: str) -> None:
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unusable_file(field, str(path), "write", error) from error


def _unusable_file(field: str, file: str, verb: str, error: Exception) -> InvalidQuestion:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    fault = FieldError(
        field=field, value=file, message=f"Can't {verb} the file: {reason}.", allowed=f"a file to {verb}"
    )
    return InvalidQuestion([fault])


def _write_requests(path: Path, source: Trace | GeneratedTraffic, times: RequestTimes) -> None:
    """One row a request, in order, in the trace's own time and ids."""
    names: Iterable[object] = count()
    origin_s = 0.0
    if isinstance(source, Trace):
        origin_s = source.origin_s
        names = names if source.columns.names is None else source.columns.names
    columns = (times.arrival_s, times.scheduled_s, times.first_token_s, times.last_token_s)
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(REQUEST_COLUMNS)
            for name, replica, *reached in zip(names, times.replica, *columns, strict=False):
                shown = (_time(seconds + origin_s) for seconds in reached)
                writer.writerow((name, *shown, replica if replica >= 0 else ""))
    except OSError as error:
        raise _unusable_file("requests", str(path), "write", error) from error


def _time(seconds: float) -> str:
    return "" if math.isnan(seconds) else f"{seconds:.6f}"
