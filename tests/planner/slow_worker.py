"""Included by test workers, and by nothing else: importing it adds the slow kinds of job."""

from planner.services.run_kinds import RUN_KINDS
from tests.planner.slow_kind import SLOW_KIND, SLOW_PARTS

RUN_KINDS["count_slowly"] = SLOW_KIND
RUN_KINDS["count_in_parts"] = SLOW_PARTS
