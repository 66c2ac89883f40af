"""Keeps the processes of one machine running: restarts what dies, and stops all of it together.

Honcho multiplexes the output and forwards Ctrl-C. What it lacks, and this module adds: a process that
dies is started again (a killed worker must not take the web server with it), children that a dead
process left behind are ended, and nothing outlives the supervisor, however that ended.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

from honcho.manager import Manager
from honcho.printer import Message
from honcho.process import Process

POLL_SECONDS = 0.2
GRACE_SECONDS = 8.0
"""Between asking a process to stop and ending it."""
RESTART_SECONDS = 1.0
SHORT_LIFE_SECONDS = 10.0
MAX_SHORT_LIVES = 5
"""A process that dies this often in a row, each time soon after its start, won't be helped by another start."""


class RestartingProcess(Process):  # type: ignore[misc]
    """A command that is started again when it dies, until ``stopping`` is set."""

    def __init__(self, cmd: str, *, stopping: Event, **kwargs: Any) -> None:
        # exec: the pid that gets the signals is the program's, not a shell's.
        super().__init__(f"exec {cmd}", **kwargs)
        self.stopping = stopping

    def run(self, events: Queue[Message] | None = None, ignore_signals: bool = False) -> None:
        """Run in a process of its own; ``events`` receives output lines, starts and the last stop."""
        self._events = events
        supervisor_pid = os.getppid()
        short_lives = 0
        while True:
            started_s = time.monotonic()
            returncode = self._run_once(supervisor_pid, ignore_signals)
            lived_s = time.monotonic() - started_s
            short_lives = short_lives + 1 if lived_s < SHORT_LIFE_SECONDS else 0
            if self.stopping.is_set() or short_lives >= MAX_SHORT_LIVES:
                break
            self._send_message(f"ended (code {returncode}); starting it again\n")
            if self.stopping.wait(RESTART_SECONDS):
                break
        self._send_message({"returncode": returncode}, type="stop")

    def _run_once(self, supervisor_pid: int, ignore_signals: bool) -> int:
        child: subprocess.Popen[bytes] = self._child_ctor(self.cmd, env=self.env, cwd=self.cwd)
        self._send_message({"pid": child.pid}, type="start")
        if ignore_signals:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # The pipe stays open as long as any descendant lives, so its end doesn't tell that the child ended.
        reader = threading.Thread(target=self._relay, args=(child,), daemon=True)
        reader.start()
        while child.poll() is None:
            if self.stopping.wait(POLL_SECONDS) or os.getppid() != supervisor_pid:
                self.stopping.set()
                _stop(child)
        _signal_group(child.pid, signal.SIGKILL)
        reader.join(timeout=GRACE_SECONDS)
        return int(child.returncode)

    def _relay(self, child: subprocess.Popen[bytes]) -> None:
        if child.stdout is not None:
            for line in child.stdout:
                self._send_message(line)


class Supervisor(Manager):  # type: ignore[misc]
    """Runs commands side by side until a signal comes or one of them can't be kept running."""

    def __init__(self, *, on_start: Callable[[Callable[[str], None]], None] | None = None) -> None:
        super().__init__()
        self.stopping = mp.Event()
        self._process_ctor = self._restarting
        self._on_start = on_start

    def _restarting(self, cmd: str, **kwargs: Any) -> RestartingProcess:
        return RestartingProcess(cmd, stopping=self.stopping, **kwargs)

    def _start(self) -> None:
        super()._start()
        if self._on_start is not None:
            threading.Thread(target=self._on_start, args=(self.say,), daemon=True).start()

    def say(self, line: str) -> None:
        """Print a line of the supervisor's own between those of its processes."""
        self.events.put(Message("line", line + "\n", self._clock.now(), "system", None))

    def _killall(self, force: bool = False) -> None:
        # Each process watches this flag: the polite request, the wait and the end are its own.
        self.stopping.set()


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal_group(child.pid, signal.SIGKILL)
        child.wait()


def _signal_group(pid: int, signum: signal.Signals) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        return
