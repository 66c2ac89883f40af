"""What a second worker is worth: the same simulation in parts on one worker, then on two, with a database of their own.

Real worker processes, an embedded database and broker in a folder that goes afterwards: nothing of the site's is
touched. Each worker has done a small run before, so that what it loads once isn't counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from planner.services.compiled_simulator import wait_until_compiled
from planner.services.figure import Figure

WORKERS: Final = 2
REGIONS: Final = 8
"""Parts of the run, alike but for their seed."""
ROUNDS: Final = 2
PATIENCE_S: Final = 300.0
QUESTION: Final[dict[str, Any]] = {
    "model": "meta-llama/Llama-3.1-8B",
    "requests_per_second": 20,
    "max_options": 1,
}
RUN: Final = """
import json, sys, time
import django
django.setup()
from planner.models import Run
from planner.services.runs import create_run
run = create_run(kind="simulation", params=json.loads(sys.argv[1]))
while not run.is_final:
    time.sleep(0.02)
    run.refresh_from_db()
if run.status != "succeeded":
    sys.exit(f"{run.status}: {run.error}")
print((run.finished_at - run.started_at).total_seconds())
"""


def fan_out_figures() -> Iterator[Figure]:
    """How many times faster two workers are than one."""
    wait_until_compiled(lambda share, message: None)
    with tempfile.TemporaryDirectory(prefix="takar-bench-", ignore_cleanup_errors=True) as folder:
        environment = _environment(Path(folder))
        for command in ("migrate", "load_catalog"):
            _manage(environment, command, "--verbosity", "0")
        seconds = {count: _seconds(environment, count) for count in (1, WORKERS)}
    yield Figure(
        name=f"a simulation in {REGIONS} parts, two workers over one ({seconds[1]:.1f} s)",
        value=seconds[1] / seconds[WORKERS],
        unit="x",
        target=1.8,
        larger_is_better=True,
    )


def _environment(folder: Path) -> dict[str, str]:
    outside = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "CELERY_BROKER_URL")}
    own = {"TAKAR_VAR_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "planner.settings", "LOG_LEVEL": "WARNING"}
    return outside | own | {"WORKER_CONCURRENCY": "1", "COMPILE_AHEAD": "false", "PYTHONPATH": str(settings.BASE_DIR)}


def _manage(environment: dict[str, str], *arguments: str) -> None:
    manage = str(settings.BASE_DIR / "manage.py")
    subprocess.run([sys.executable, manage, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)


def _seconds(environment: dict[str, str], workers: int) -> float:
    """The shortest of several runs: what else the machine does only ever adds."""
    with _workers(environment, workers):
        _run(environment, hours=1.0)
        return min(_run(environment, hours=24.0) for _ in range(ROUNDS))


def _run(environment: dict[str, str], *, hours: float) -> float:
    params = {
        "question": QUESTION,
        "scenario": {"replicas": 4},
        "traffic": {"requests_per_second": 25, "hours": hours},
        "regions": [{"name": str(number)} for number in range(REGIONS)],
    }
    command = [sys.executable, "-c", RUN, json.dumps(params)]
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S, cwd=settings.BASE_DIR
    )
    return float(done.stdout.split()[-1])


@contextmanager
def _workers(environment: dict[str, str], count: int) -> Iterator[None]:
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR")
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "planner.celery", "worker", *quiet]
    started = [
        subprocess.Popen(
            command, env=environment, cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(count)
    ]
    try:
        # A worker that is up has its pool; without remote control there is nothing to ask it by.
        time.sleep(3.0 * count)
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
