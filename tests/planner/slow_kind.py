"""A kind of job for tests: counts, slowly enough to be watched, cancelled and killed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from planner.services.run_kinds import ReportProgress, RunKind


def _count(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
    steps = params["steps"]
    for step in range(steps):
        report(step / steps, f"step {step} of {steps}")
        time.sleep(params["pause_s"])
    return {"steps": steps, "pid": os.getpid()}


SLOW_KIND = RunKind(check=lambda params: None, execute=_count)
