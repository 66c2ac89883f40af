"""What a worker does when one of its processes is killed: it goes on, or ends so that another can start.

The pool of a broker without an event loop (the embedded one) hands out work over one pipe, which its processes read in
turn, under a lock. One that is killed while it works is replaced, and its job is taken up again. One that is killed
while it waits may take the lock with it: then no process of this worker would ever be given work again.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from celery.concurrency.asynpool import AsynPool

logger = structlog.get_logger(__name__)

EXIT_CODE = 75
"""Try again: whatever keeps the worker running starts it anew."""


def watch(task_pool: Any) -> None:
    """End this worker when a waiting process of its pool is killed, where they share one pipe."""
    pool = getattr(task_pool, "_pool", None)
    # With an event loop each process has a pipe of its own; other pools have no processes.
    if pool is None or isinstance(pool, AsynPool) or not hasattr(pool, "on_process_down"):
        return
    pool.on_process_down = partial(_end_if_it_waited, pool)


def _end_if_it_waited(pool: Any, process: Any) -> None:
    exit_code = process.exitcode
    if exit_code is None or exit_code >= 0 or getattr(process, "_controlled_termination", False):
        return
    # One that has ended on purpose lets go first; one that worked had let go before.
    if any(process.pid in job.worker_pids() and not job.ready() for job in list(pool._cache.values())):
        return
    logger.warning("a waiting process of this worker was killed; it starts anew", signal=-exit_code)
    for other in list(pool._pool):
        with suppress(ProcessLookupError):
            os.kill(other.pid, signal.SIGKILL)
    # A farewell would wait for the same lock.
    os._exit(EXIT_CODE)
