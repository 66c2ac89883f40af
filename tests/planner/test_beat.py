"""One scheduler a data folder: a second one waits, and takes over when the first has gone, however it went."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.planner.live_processes import ROOT, stop_with_parent

PATIENCE_S = 60.0

pytestmark = [pytest.mark.embedded, pytest.mark.xdist_group("serve")]


@pytest.fixture
def schedulers(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "CELERY_BROKER_URL")
    }
    started = []
    for name in ("first", "second"):
        with (tmp_path / f"{name}.log").open("wb") as output:
            started.append(
                subprocess.Popen(
                    [sys.executable, "manage.py", "beat"],
                    cwd=ROOT,
                    env=environment | {"TAKAR_VAR_DIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
                    stdout=output,
                    stderr=output,
                    preexec_fn=stop_with_parent,
                )
            )
        _wait(lambda: any(map(_schedules, started)))
    yield started
    for process in started:
        process.kill()
        process.wait(10)


def _schedules(process: subprocess.Popen[bytes]) -> bool:
    return b"celery" in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def _wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_second_scheduler_waits_for_the_first_to_end(
    schedulers: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    first, second = schedulers
    _wait(lambda: b"waiting to take over" in (tmp_path / "second.log").read_bytes())
    assert [_schedules(first), _schedules(second)] == [True, False]
    first.kill()
    first.wait(10)
    _wait(lambda: _schedules(second))
    assert second.poll() is None
