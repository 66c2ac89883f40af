"""Included by test workers, and by nothing else: importing it adds the slow kind of job."""

from planner.services.run_kinds import RUN_KINDS
from tests.planner.slow_kind import SLOW_KIND

RUN_KINDS["count_slowly"] = SLOW_KIND
