"""What a kind of job has to offer: a function that checks its parameters, and one that does the work.

Work that falls into independent parts is spread over all workers: see ``run_parts``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import import_string

from planner.models import User

Check = Callable[[Mapping[str, Any], User | None], None]
"""Raises ``InvalidQuestion`` for parameters that can't be run, or not by this owner (None: somebody without an
account), before anything is stored."""
ReportProgress = Callable[[float, str], None]
"""``report(share_done, message)``: stores the progress, keeps the job's lease alive, and raises
``RunCancelled`` or ``LeaseLost`` when the work should stop. To be called every few seconds at least."""
Task = Mapping[str, Any]
"""One part of a job, in JSON values: what its kind's ``execute_part`` is given beside the job's parameters."""
Spread = Callable[[Sequence[Task], ReportProgress], list[bytes]]
"""``spread(tasks, report)``: has the parts done by as many workers as are free; their results in the order of the
tasks. The report is given the share of all of them that is done."""
ExecutePart = Callable[[Mapping[str, Any], Task, ReportProgress], bytes]
"""Does one part. May be done twice, like a job, and must give the same bytes in any process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind:
    """One kind of job."""

    check: Check
    execute: Callable[[Mapping[str, Any], ReportProgress], dict[str, Any]]
    """Does the work and returns the result as plain JSON values. It may be run again from the start after
    a worker was lost, so it must have no effect but its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadKind:
    """One kind of job that falls into parts."""

    check: Check
    execute: Callable[[Mapping[str, Any], ReportProgress, Spread], dict[str, Any]]
    """The same, with what has parts done. Must ask for the same parts whenever it is run; those done before its
    worker was lost are kept."""
    execute_part: ExecutePart


def in_worker(path: str) -> Callable[..., dict[str, Any]]:
    """The function at ``path``, imported when a worker first runs it: what it needs stays out of the web process."""

    def execute(*args: Any) -> dict[str, Any]:
        result: dict[str, Any] = import_string(path)(*args)
        return result

    return execute


def part_in_worker(path: str) -> ExecutePart:
    """The same for a kind's parts."""

    def execute_part(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        result: bytes = import_string(path)(params, task, report)
        return result

    return execute_part


def in_turn(execute_part: ExecutePart, params: Mapping[str, Any]) -> Spread:
    """All parts in this process, one after another: for commands, and where there is one part only."""

    def spread(tasks: Sequence[Task], report: ReportProgress) -> list[bytes]:
        def told(done: int) -> ReportProgress:
            return lambda share, message: report((done + share) / len(tasks), message)

        return [execute_part(params, task, told(done)) for done, task in enumerate(tasks)]

    return spread
