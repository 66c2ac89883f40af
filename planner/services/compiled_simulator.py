"""The simulator's compiled code: made once for an installation, in a process of its own, that all workers wait for.

Compiling takes a core some 30 s to 2 minutes. A worker that waits for another process can tell so, renew its lease
and hear a cancellation meanwhile; and one that has just started has the code made before anybody asks for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

from planner.services.run_kind import ReportProgress

COMPILING: Final = "Compiling the simulator, once for this installation: about a minute"
POLL_S: Final = 0.2
NICENESS: Final = 10
"""Of a compilation that nobody waits for yet."""


def is_compiled() -> bool:
    """Whether the code made from today's sources is there."""
    return _mark().exists()


def wait_until_compiled(report: ReportProgress) -> None:
    """Return once the code is there, telling ``report`` meanwhile; what that raises ends the wait alone."""
    if is_compiled():
        return
    process = _start_compiler(0)
    while process.poll() is None:
        report(0.0, COMPILING)
        time.sleep(POLL_S)


def compile_ahead() -> None:
    """Have the code made in the background where it isn't there; returns at once."""
    if settings.COMPILE_AHEAD and not is_compiled():
        _start_compiler(NICENESS)


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Of any number of processes one compiles at a time; those that waited find it done."""
    folder = _mark().parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_compiled() -> None:
    """Note that all of the code is there."""
    _mark().touch()


def _mark() -> Path:
    """Named after the dates of the sources too: the compiler takes a file with another date for changed."""
    digest = hashlib.sha256()
    for source in sorted((settings.BASE_DIR / "planner" / "engine" / "simulate").glob("*.py")):
        facts = source.stat()
        digest.update(f"{source} {facts.st_mtime_ns} {facts.st_size}\n".encode())
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"complete-{digest.hexdigest()[:16]}"


def _start_compiler(niceness: int) -> subprocess.Popen[bytes]:
    """A compilation in a process that goes on when nobody waits for it any more."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "compile_simulator", "--niceness", str(niceness)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    threading.Thread(target=process.wait, daemon=True).start()
    return process
