"""Kinds of job for tests: they count, slowly enough to be watched, cancelled and killed; one of them in parts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from planner.services.run_kind import Spread, SpreadKind, Task
from planner.services.run_kinds import ReportProgress, RunKind


def _count(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
    steps = params["steps"]
    for step in range(steps):
        report(step / steps, f"step {step} of {steps}")
        time.sleep(params["pause_s"])
    return {"steps": steps, "pid": os.getpid()}


def _count_part(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
    done = _count(params, report)
    return json.dumps(done | {"part": task["part"]}).encode()


def _count_in_parts(params: Mapping[str, Any], report: ReportProgress, spread: Spread) -> dict[str, Any]:
    parts = [json.loads(part) for part in spread([{"part": n} for n in range(params["parts"])], report)]
    return {"parts": [part["part"] for part in parts], "pids": sorted({part["pid"] for part in parts})}


SLOW_KIND = RunKind(check=lambda params, owner: None, execute=_count)
SLOW_PARTS = SpreadKind(check=lambda params, owner: None, execute=_count_in_parts, execute_part=_count_part)
