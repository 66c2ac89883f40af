"""What a kind of job has to offer: a function that checks its parameters, and one that does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import import_string

ReportProgress = Callable[[float, str], None]
"""``report(share_done, message)``: stores the progress, keeps the job's lease alive, and raises
``RunCancelled`` or ``LeaseLost`` when the work should stop. To be called every few seconds at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind:
    """One kind of job."""

    check: Callable[[Mapping[str, Any]], None]
    """Raises ``InvalidQuestion`` for parameters that can't be run, before anything is stored."""
    execute: Callable[[Mapping[str, Any], ReportProgress], dict[str, Any]]
    """Does the work and returns the result as plain JSON values. It may be run again from the start after
    a worker was lost, so it must have no effect but its result."""


def in_worker(path: str) -> Callable[[Mapping[str, Any], ReportProgress], dict[str, Any]]:
    """The function at ``path``, imported when a worker first runs it: what it needs stays out of the web process."""

    def execute(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
        result: dict[str, Any] = import_string(path)(params, report)
        return result

    return execute
