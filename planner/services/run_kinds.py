"""Every kind of job, by name."""

from planner.services.capacity_job import CAPACITY_SEARCH
from planner.services.plan_sweep import PLAN_SWEEP
from planner.services.run_kind import ReportProgress, RunKind, SpreadKind
from planner.services.simulation_job import SIMULATION

__all__ = ["RUN_KINDS", "ReportProgress", "RunKind", "SpreadKind"]

RUN_KINDS: dict[str, RunKind | SpreadKind] = {
    "capacity_search": CAPACITY_SEARCH,
    "plan_sweep": PLAN_SWEEP,
    "simulation": SIMULATION,
}
