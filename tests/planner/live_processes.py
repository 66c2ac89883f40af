"""Real workers and schedulers on the database and broker of the running test."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from celery import current_app
from django.db import connection

from planner.models import Run

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def stop_with_parent() -> None:
    """In a child that is about to start its program: be asked to stop when the test run ends, however it ends."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def environment(**more: str) -> dict[str, str]:
    """The environment in which another process sees what this test sees."""
    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{facts['NAME']}"
    else:
        url = f"postgres://{facts['USER']}@{facts['HOST']}:{facts['PORT']}/{facts['NAME']}"
    found = os.environ | {"DATABASE_URL": url, "RUN_LEASE_SECONDS": "2", "RUN_RESEND_SECONDS": "0.5"}
    found["COMPILE_AHEAD"] = "false"
    options = current_app.conf.broker_transport_options
    if "data_folder_in" in options:
        found["TAKAR_VAR_DIR"] = str(Path(options["data_folder_in"]).parent)
    return found | more


class LiveProcess:
    """A Celery process in a session of its own, so that it can be killed with all its children."""

    def __init__(self, *arguments: str, log: Path, broker_url: str = "", **more: str) -> None:
        self.log = log
        elsewhere = more | ({"CELERY_BROKER_URL": broker_url} if broker_url else {})
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "celery", "--quiet", "-A", "planner.celery", *arguments],
                cwd=ROOT,
                env=environment(**elsewhere),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=stop_with_parent,
            )

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    def children(self) -> list[int]:
        """The processes it has started and that still run."""
        found = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in found.read_text().split()] if found.exists() else []

    def kill(self) -> None:
        """SIGKILL, for all of it, at once: nobody gets to say goodbye."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self._process.wait(10)


def start_worker(folder: Path, *, processes: int = 1, broker_url: str = "") -> LiveProcess:
    """A worker that also knows the slow kinds of job; on the test's own broker unless another one is given."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    include = ("-I", "tests.planner.slow_worker", "--concurrency", str(processes))
    return LiveProcess("worker", *include, *quiet, log=folder / "worker.log", broker_url=broker_url)


def start_worker_that_never_merges(folder: Path, reached: Path) -> LiveProcess:
    """A worker that has a simulation's parts done and stops before it puts them together; ``reached`` is made then."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--concurrency", "1")
    include = ("-I", "tests.planner.slow_merge_worker")
    return LiveProcess("worker", *include, *quiet, log=folder / "merge.log", SLOW_MERGE_REACHED=str(reached))


def start_beat(folder: Path) -> LiveProcess:
    """A scheduler that looks for lost runs twice a second."""
    return LiveProcess("beat", "--pidfile=", "--schedule", str(folder / "beat-schedule"), log=folder / "beat.log")


def wait_for(
    run: Run, reached: Callable[[Run], bool], *, patience_s: float, seen: list[tuple[str, float]] | None = None
) -> Run:
    """The run once it has ``reached`` what is waited for; its states on the way are added to ``seen``."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        run.refresh_from_db()
        if seen is not None:
            seen.append((run.status, run.progress))
        if reached(run):
            return run
        time.sleep(0.02)
    pytest.fail(f"run is still {run.status} at {run.progress}, attempts {run.attempts}, error {run.error}")
