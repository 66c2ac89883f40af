"""Running the job ``simulation``: only workers import this module, for it brings in the compiled simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.traffic import in_batches
from planner.engine.simulate.warm_up import warm_up
from planner.services.compiled_simulator import wait_until_compiled
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.plan_json import plain
from planner.services.run_kind import ReportProgress
from planner.services.simulation import TrafficSource, simulate_plan
from planner.services.simulation_job import SimulationJob, read_simulation
from planner.services.stored_traces import open_trace, trace_refused
from planner.services.trace_files import Trace, read_trace_stream
from planner.services.trace_rows import TraceError

BATCH_REQUESTS = 1 << 14
"""Simulated between two progress reports: well under a second even where a fleet is hard to simulate."""
MOST_ROWS = 50_000_000
READ_SHARE = 0.05
"""Of the progress bar: compiling, reading and planning."""


def run_simulation(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
    """Simulate, reporting progress by simulated time; the result is the same in any process.

    How long it took is left out of the result: it would differ between two runs of the same question.
    """
    job = read_simulation(params)
    wait_until_compiled(report)
    report(0.0, "Loading the simulator")
    warm_up()
    source, share_done = _source(job, report)

    def told(requests: int, now_s: float) -> None:
        share = READ_SHARE + (1.0 - READ_SHARE) * min(share_done(requests, now_s), 1.0)
        report(share, f"{requests:,} requests, {now_s / 3600:.2f} h simulated")

    document = simulate_plan(job.question, _Sliced(source), job.scenario, told=told).document
    kept = {name: value for name, value in document.items() if name not in ("wall_s", "simulated_requests_per_wall_s")}
    result: dict[str, Any] = plain(kept | {"traffic": job.traffic, "trace": job.trace})
    return result


def _source(job: SimulationJob, report: ReportProgress) -> tuple[TrafficSource, Callable[[int, float], float]]:
    """The traffic, and the share of it that is done after so many requests and seconds."""
    if job.traffic is not None:
        duration_s = job.traffic.duration_s
        return GeneratedTraffic(question=job.traffic), lambda requests, now_s: now_s / duration_s
    trace = _read_trace(job.trace or "", report)
    return trace, lambda requests, now_s: requests / max(len(trace), 1)


def _read_trace(name: str, report: ReportProgress) -> Trace:
    def told(rows: int) -> None:
        report(0.0, f"Reading the trace: {rows:,} rows")
        if rows > MOST_ROWS:
            raise TraceError("Too many rows.", row=rows, allowed=f"up to {MOST_ROWS:,} requests")

    with open_trace(name) as stream:
        try:
            return read_trace_stream(stream, told=told)  # type: ignore[arg-type]
        except TraceError as error:
            raise trace_refused(error) from error


@dataclass(frozen=True, slots=True)
class _Sliced:
    """A source in small batches, so that progress is told and a cancellation heard between them."""

    source: TrafficSource

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def batches(self) -> Iterator[Traffic]:
        for batch in self.source.batches():
            yield from in_batches(batch, BATCH_REQUESTS)
