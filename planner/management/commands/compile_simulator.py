"""Compile the simulator for this installation; what is compiled already is left alone."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from planner.engine.simulate.run import Run
from planner.engine.simulate.setup import IDLE_STEP, ContinuousReplica, Fleet, Pool
from planner.engine.simulate.warm_up import warm_up
from planner.services.compiled_simulator import compiling_alone, is_compiled, set_compiled


class Command(BaseCommand):
    """Makes the compiled code that workers and commands load."""

    help = "Compile the simulator, once for an installation (30 s to 2 min of one core)."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--niceness", type=int, default=0, help="how far to give way to other processes")

    def handle(self, *args: Any, niceness: int, **options: Any) -> None:
        os.nice(niceness)
        with compiling_alone():
            if is_compiled():
                return
            warm_up()
            _compile_what_only_failures_call()
            set_compiled()


def _compile_what_only_failures_call() -> None:
    kind = ContinuousReplica(coefficients=IDLE_STEP._replace(step_s=0.001), kv_blocks=64)
    run = Run(Fleet(pools=[Pool(kind=kind, replicas=1)]))
    run.bring_up(0, 0.0)
    run.take_down(0, 1.0)
