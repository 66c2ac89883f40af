"""``manage.py serve`` as a person uses it: one command starts everything, Ctrl-C leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from tests.planner.live_processes import stop_with_parent
from tests.planner.real_servers import free_port

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90.0

pytestmark = [pytest.mark.embedded, pytest.mark.xdist_group("serve")]


class Site:
    """A served site with its data in a folder of its own, by which its processes are known."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.log = folder / "serve.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                self.command(),
                cwd=ROOT,
                env=self.environment(),
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=stop_with_parent,
            )

    def command(self) -> list[str]:
        return [sys.executable, "manage.py", "serve", "--port", str(self.port)]

    def environment(self) -> dict[str, str]:
        outside = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "CELERY_BROKER_URL")}
        return outside | {"TAKAR_VAR_DIR": str(self.folder), "WEB_CONCURRENCY": "1", "WORKER_CONCURRENCY": "1"}

    def status(self) -> int | None:
        """What GET /health/ answers, None while nobody answers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health/")
            return connection.getresponse().status
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()

    def processes(self) -> dict[int, str]:
        """Pid and command line of every process of this site."""
        mark = f"TAKAR_VAR_DIR={self.folder}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def wait(self, what: str, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            if time.monotonic() > deadline:
                pytest.fail(f"never: {what}\n{self.processes()}\n{self.log.read_text()[-4000:]}")
            time.sleep(0.1)

    def end(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    started = Site(tmp_path)
    yield started
    started.end()


def _workers(site: Site) -> set[int]:
    started = re.findall(r"worker started \(pid=(\d+)\)", site.log.read_text())
    return {int(pid) for pid in started} & set(site.processes())


def test_starts_restarts_what_dies_and_stops_without_a_trace(site: Site) -> None:
    site.wait("healthy", lambda: site.status() == 200)
    ready = f"Takar is ready: http://127.0.0.1:{site.port}/"
    site.wait("ready line", lambda: ready in site.log.read_text())
    site.wait("worker", lambda: len(_workers(site)) == 1)
    (worker,) = _workers(site)

    os.kill(worker, signal.SIGKILL)
    site.wait("another worker", lambda: len(_workers(site) - {worker}) == 1)
    assert site.status() == 200

    second = subprocess.run(
        site.command(), cwd=ROOT, env=site.environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert second.returncode == 1
    assert second.stdout == ""
    assert re.fullmatch(
        rf"CommandError: can't listen on 127\.0\.0\.1 port {site.port} \(.*in use\); "
        rf"choose another: make start PORT={site.port + 1}\n",
        second.stderr,
    )

    os.kill(site.process.pid, signal.SIGINT)
    assert site.process.wait(60) == 0
    assert site.processes() == {}
    assert site.status() is None


def test_leaves_nothing_behind_even_when_it_is_killed_itself(site: Site) -> None:
    site.wait("healthy", lambda: site.status() == 200)
    site.process.kill()
    site.wait("all gone", lambda: site.processes() == {})
