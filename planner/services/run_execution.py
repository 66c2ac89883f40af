"""What a worker does with a job: claim it, run it while keeping the lease, store how it ended."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from planner.engine.errors import InvalidQuestion
from planner.models import Run, RunPart, RunStatus
from planner.selectors.scope import NotFound
from planner.services.planning import prices_of
from planner.services.run_kinds import RUN_KINDS, SpreadKind
from planner.services.run_parts import (
    INTERNAL_ERROR,
    PartFailed,
    PartSpread,
    claim_part,
    invalid_error,
    scope_of_run,
    work_on,
)
from planner.services.run_progress import LeaseLost, RunCancelled, RunProgress, RunStopped, free, held_run, lease

logger = structlog.get_logger(__name__)


def claim_run(*, run_id: int) -> UUID | None:
    """Take a run that is queued or whose lease has expired; None when it isn't to be had.

    One statement decides, so of any number of workers exactly one gets it. Returns the lease token.
    """
    token = uuid4()
    claimed = Run.objects.filter(
        free(), pk=run_id, cancel_requested=False, attempts__lt=settings.RUN_MAX_ATTEMPTS
    ).update(
        status=RunStatus.RUNNING,
        lease_token=token,
        lease_expires_at=Now() + lease(),
        attempts=F("attempts") + 1,
        started_at=Coalesce(F("started_at"), Now()),
        progress=0.0,
        message="",
    )
    return token if claimed else None


def execute_run(*, run_id: int) -> bool:
    """Claim a run and see it through; does nothing, and says so, when another worker has it."""
    token = claim_run(run_id=run_id)
    if token is None:
        return False
    run = Run.objects.get(pk=run_id)
    log = logger.bind(run_id=run_id, kind=run.kind, attempt=run.attempts)
    log.info("run started")
    try:
        outcome = _outcome(run, RunProgress(run_id=run_id, lease_token=token))
    except LeaseLost:
        log.warning("run lost to another worker")
        return True
    with transaction.atomic():
        if finish_run(run_id=run_id, lease_token=token, **outcome):
            RunPart.objects.filter(run_id=run_id).delete()
    log.info("run ended", status=outcome["status"])
    return True


def help_with_run(*, run_id: int) -> None:
    """Do parts of a job that another worker runs, until none is left or it is stopped."""
    while (part := claim_part(run_id=run_id)) is not None:
        run = Run.objects.get(pk=run_id)
        kind = RUN_KINDS[run.kind]
        if not isinstance(kind, SpreadKind):
            return
        try:
            with prices_of(scope_of_run(run)):
                work_on(part, run, kind.execute_part)
        except (RunStopped, NotFound):
            # A part left behind is taken up by the worker that runs the job.
            return


def finish_run(*, run_id: int, lease_token: UUID, status: RunStatus, **fields: Any) -> bool:
    """Store how a run ended; False when this worker no longer holds it."""
    return bool(
        held_run(run_id, lease_token).update(
            status=status, finished_at=Now(), lease_token=None, lease_expires_at=None, **fields
        )
    )


def _execute(run: Run, report: RunProgress) -> dict[str, Any]:
    kind = RUN_KINDS[run.kind]
    if isinstance(kind, SpreadKind):
        return kind.execute(run.params, report, PartSpread(run=run, execute_part=kind.execute_part))
    return kind.execute(run.params, report)


def _outcome(run: Run, report: RunProgress) -> dict[str, Any]:
    try:
        with prices_of(scope_of_run(run)):
            result = _execute(run, report)
    except RunCancelled:
        return {"status": RunStatus.CANCELLED}
    except (LeaseLost, DatabaseError):
        # Without a database nothing can be stored: the lease expires, and a worker tries again.
        raise
    except PartFailed as failed:
        return {"status": RunStatus.FAILED, "error": failed.error}
    except InvalidQuestion as invalid:
        return {"status": RunStatus.FAILED, "error": invalid_error(invalid)}
    except NotFound:
        detail = "Who started this run is no longer in the organization whose prices it was to use."
        return {"status": RunStatus.FAILED, "error": {"code": "not_a_member", "detail": detail}}
    except Exception:
        logger.exception("run failed", run_id=run.pk, kind=run.kind)
        return {"status": RunStatus.FAILED, "error": INTERNAL_ERROR}
    return {
        "status": RunStatus.SUCCEEDED,
        "progress": 1.0,
        "message": "",
        "result": result,
        "catalog_version": str(result.get("catalog_version", "")),
    }
