"""What a worker does with a job: claim it, run it while keeping the lease, store how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from planner.engine.errors import InvalidQuestion
from planner.models import Run, RunStatus
from planner.selectors.scope import NotFound, Scope, scope_of
from planner.services.planning import prices_of
from planner.services.run_kinds import RUN_KINDS

logger = structlog.get_logger(__name__)

PROGRESS_INTERVAL_S = 0.25
"""Between two progress writes: a page polls no faster, and SQLite has one writer at a time."""


class RunStopped(Exception):
    """Raised by a progress report where the work is not wanted any more."""


class RunCancelled(RunStopped):
    """Somebody asked for it to be cancelled."""


class LeaseLost(RunStopped):
    """Another worker has taken the run over, or it has ended."""


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """The progress report of one claimed run.

    Writes go straight to the database, outside any transaction, so that they are seen at once.
    """

    run_id: int
    lease_token: UUID
    clock: Callable[[], float] = time.monotonic
    _written_s: float = field(default=float("-inf"), init=False)

    def __call__(self, share_done: float, message: str = "") -> None:
        """Store progress and renew the lease, at most about four times a second."""
        now_s = self.clock()
        if now_s - self._written_s < PROGRESS_INTERVAL_S:
            return
        self._written_s = now_s
        held = _held(self.run_id, self.lease_token)
        share_done = min(max(share_done, 0.0), 1.0)
        if not held.update(progress=share_done, message=message[:200], lease_expires_at=Now() + _lease()):
            raise LeaseLost
        if held.filter(cancel_requested=True).exists():
            raise RunCancelled


def claim_run(*, run_id: int) -> UUID | None:
    """Take a run that is queued or whose lease has expired; None when it isn't to be had.

    One statement decides, so of any number of workers exactly one gets it. Returns the lease token.
    """
    token = uuid4()
    free = Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_expires_at__lt=Now())
    claimed = Run.objects.filter(
        free, pk=run_id, cancel_requested=False, attempts__lt=settings.RUN_MAX_ATTEMPTS
    ).update(
        status=RunStatus.RUNNING,
        lease_token=token,
        lease_expires_at=Now() + _lease(),
        attempts=F("attempts") + 1,
        started_at=Coalesce(F("started_at"), Now()),
        progress=0.0,
        message="",
    )
    return token if claimed else None


def execute_run(*, run_id: int) -> None:
    """Claim a run and see it through; does nothing when another worker has it."""
    token = claim_run(run_id=run_id)
    if token is None:
        return
    run = Run.objects.get(pk=run_id)
    log = logger.bind(run_id=run_id, kind=run.kind, attempt=run.attempts)
    log.info("run started")
    try:
        outcome = _outcome(run, RunProgress(run_id=run_id, lease_token=token))
    except LeaseLost:
        log.warning("run lost to another worker")
        return
    finish_run(run_id=run_id, lease_token=token, **outcome)
    log.info("run ended", status=outcome["status"])


def finish_run(*, run_id: int, lease_token: UUID, status: RunStatus, **fields: Any) -> bool:
    """Store how a run ended; False when this worker no longer holds it."""
    return bool(
        _held(run_id, lease_token).update(
            status=status, finished_at=Now(), lease_token=None, lease_expires_at=None, **fields
        )
    )


def _outcome(run: Run, report: RunProgress) -> dict[str, Any]:
    try:
        with prices_of(_scope(run)):
            result = RUN_KINDS[run.kind].execute(run.params, report)
    except RunCancelled:
        return {"status": RunStatus.CANCELLED}
    except (LeaseLost, DatabaseError):
        # Without a database nothing can be stored: the lease expires, and a worker tries again.
        raise
    except InvalidQuestion as error:
        faults = [{"attr": fault.field, "code": fault.code, "detail": fault.message} for fault in error.errors]
        return {"status": RunStatus.FAILED, "error": {"code": "invalid", "detail": str(error), "errors": faults}}
    except NotFound:
        detail = "Who started this run is no longer in the organization whose prices it was to use."
        return {"status": RunStatus.FAILED, "error": {"code": "not_a_member", "detail": detail}}
    except Exception:
        logger.exception("run failed", run_id=run.pk, kind=run.kind)
        detail = "An internal error stopped this run; it has been logged."
        return {"status": RunStatus.FAILED, "error": {"code": "internal_error", "detail": detail}}
    return {
        "status": RunStatus.SUCCEEDED,
        "progress": 1.0,
        "message": "",
        "result": result,
        "catalog_version": str(result.get("catalog_version", "")),
    }


def _scope(run: Run) -> Scope | None:
    """Whose prices the run plans with; raises ``NotFound`` where its owner has left them."""
    if run.organization is None:
        return None
    return scope_of(user=run.owner or AnonymousUser(), organization=run.organization.uuid)


def _held(run_id: int, lease_token: UUID) -> Any:
    return Run.objects.filter(pk=run_id, status=RunStatus.RUNNING, lease_token=lease_token)


def _lease() -> timedelta:
    return timedelta(seconds=settings.RUN_LEASE_SECONDS)
