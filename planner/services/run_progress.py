"""How a running job or part tells how far it is, keeps its lease, and hears that it should stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from planner.models import Run, RunPart, RunStatus
from planner.services.run_kind import ReportProgress

PROGRESS_INTERVAL_S = 0.25
"""Between two progress writes: a page polls no faster, and SQLite has one writer at a time."""
MESSAGE_LENGTH = 200


class RunStopped(Exception):
    """Raised by a progress report where the work is not wanted any more."""


class RunCancelled(RunStopped):
    """Somebody asked for it to be cancelled."""


class LeaseLost(RunStopped):
    """Another worker has taken the run over, or it has ended."""


class PartLost(RunStopped):
    """Another worker has taken the part over."""


def free() -> Q:
    """Rows of jobs or parts that no worker holds."""
    return Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_expires_at__lt=Now())


def lease() -> timedelta:
    """How long a worker holds a row without renewing."""
    return timedelta(seconds=settings.RUN_LEASE_SECONDS)


@dataclass(slots=True, kw_only=True)
class _Paced:
    """Writes at most about four times a second, outside any transaction, so that they are seen at once."""

    clock: Callable[[], float] = time.monotonic
    _written_s: float = field(default=float("-inf"), init=False)

    def is_due(self) -> bool:
        """Whether it is time to write again."""
        now_s = self.clock()
        if now_s - self._written_s < PROGRESS_INTERVAL_S:
            return False
        self._written_s = now_s
        return True


@dataclass(slots=True, kw_only=True)
class RunProgress(_Paced):
    """The progress report of one claimed run."""

    run_id: int
    lease_token: UUID

    def __call__(self, share_done: float, message: str = "") -> None:
        """Store progress and renew the lease."""
        if not self.is_due():
            return
        held = held_run(self.run_id, self.lease_token)
        share_done = min(max(share_done, 0.0), 1.0)
        if not held.update(progress=share_done, message=message[:MESSAGE_LENGTH], lease_expires_at=Now() + lease()):
            raise LeaseLost
        if held.filter(cancel_requested=True).exists():
            raise RunCancelled


@dataclass(slots=True, kw_only=True)
class PartProgress(_Paced):
    """The progress report of one claimed part."""

    part_id: int
    run_id: int
    lease_token: UUID
    joint: ReportProgress | None = None
    """Told as well where this process also holds the run: it says how far all parts are."""

    def __call__(self, share_done: float, message: str = "") -> None:
        """Store progress, renew the lease, and stop with the run."""
        if not self.is_due():
            return
        share_done = min(max(share_done, 0.0), 1.0)
        held = held_part(self.part_id, self.lease_token)
        if not held.update(progress=share_done, lease_expires_at=Now() + lease()):
            raise PartLost
        if self.joint is not None:
            self.joint(share_done, message)
        elif not Run.objects.filter(pk=self.run_id, status=RunStatus.RUNNING, cancel_requested=False).exists():
            raise RunCancelled


def held_run(run_id: int, lease_token: UUID) -> Any:
    """The run, where this worker still holds it."""
    return Run.objects.filter(pk=run_id, status=RunStatus.RUNNING, lease_token=lease_token)


def held_part(part_id: int, lease_token: UUID) -> Any:
    """The part, where this worker still holds it."""
    return RunPart.objects.filter(pk=part_id, status=RunStatus.RUNNING, lease_token=lease_token)
