"""Parts of a job, done by as many workers as are free.

What a chord would count in the broker is counted in the database: the rows of the parts say what is done, so that a
broker that forgets everything, or a worker that is killed, costs no more than the parts it was doing. The worker
that holds the job does parts too, so that a job ends with one worker as with twenty; messages only call others in.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import structlog
from celery import current_app, group
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError
from django.db.models import Avg, Count, F, Q, QuerySet
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from planner.engine.errors import InvalidQuestion
from planner.models import Run, RunPart, RunStatus
from planner.selectors.scope import Scope, scope_of
from planner.services.error_envelope import envelope
from planner.services.run_kind import ExecutePart, ReportProgress, Task
from planner.services.run_progress import PartLost, PartProgress, RunStopped, free, held_part, lease

logger = structlog.get_logger(__name__)

HELP_RUN_TASK: Final = "planner.help_run"
MOST_HELPERS: Final = 32
"""Messages sent at once; each helper does parts until none is left."""
POLL_S: Final = 0.1
"""Between two looks at parts that others do."""
INTERNAL_ERROR: Final = {
    "code": "internal_error",
    "detail": "An internal error stopped this run; it has been logged.",
}


class PartFailed(Exception):
    """A part can't be done, so its job can't; ``error`` is what the job ends with."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("detail", "")))
        self.error = error


@dataclass(slots=True, kw_only=True)
class PartSpread:
    """Has the parts of one claimed run done: by this process, and by all others that hear of it."""

    run: Run
    execute_part: ExecutePart
    _given: int = field(default=0, init=False)

    def __call__(self, tasks: Sequence[Task], report: ReportProgress) -> list[bytes]:
        """The results of ``tasks`` in order; those of an earlier attempt are used again."""
        parts = self._rows(tasks)
        ask_for_help(run_id=self.run.pk, helpers=min(parts.filter(status=RunStatus.QUEUED).count() - 1, MOST_HELPERS))
        joint = _Joint(parts=parts, report=report)
        while (ended := _ended(parts, len(tasks))) is None:
            part = claim_part(run_id=self.run.pk)
            if part is None:
                joint()
                time.sleep(POLL_S)
            else:
                # Whether the run itself is still this worker's, its next report says.
                with suppress(PartLost):
                    work_on(part, self.run, self.execute_part, joint=joint)
        return ended

    def _rows(self, tasks: Sequence[Task]) -> QuerySet[RunPart]:
        first = self._given
        self._given += len(tasks)
        rows = RunPart.objects.filter(run=self.run)
        wanted = [dict(task) for task in tasks]
        kept = dict(rows.filter(number__gte=first, number__lt=self._given).values_list("number", "task"))
        if any(kept.get(first + place, task) != task for place, task in enumerate(wanted)):
            # Planned anew and differently (another catalog, other prices): what was done answers another question.
            rows.filter(number__gte=first).delete()
            kept = {}
        RunPart.objects.bulk_create(
            RunPart(run=self.run, number=first + place, task=task)
            for place, task in enumerate(wanted)
            if first + place not in kept
        )
        return rows.filter(number__gte=first, number__lt=self._given)


@dataclass(slots=True, kw_only=True)
class _Joint:
    """Tells the share of all parts that is done; a part that was lost doesn't turn it back.

    Of several parts it says how many are done: what one of them is doing would be another's at the next look.
    """

    parts: QuerySet[RunPart]
    report: ReportProgress
    _highest: float = field(default=0.0, init=False)
    _done: int = field(default=0, init=False)
    _message: str = field(default="", init=False)

    def __call__(self, _share_of_part: float = 0.0, message: str = "") -> None:
        found = self.parts.aggregate(
            share=Avg("progress"), count=Count("pk"), done=Count("pk", filter=Q(status=RunStatus.SUCCEEDED))
        )
        self._highest, self._done = max(self._highest, found["share"] or 0.0), max(self._done, found["done"])
        self._message = (
            f"{self._done} of {found['count']} parts done" if found["count"] > 1 else message or self._message
        )
        self.report(self._highest, self._message)


def claim_part(*, run_id: int) -> RunPart | None:
    """Take the next part of a running job that nobody holds; None where there is none."""
    open_parts = RunPart.objects.filter(
        free(), run_id=run_id, run__status=RunStatus.RUNNING, run__cancel_requested=False
    ).filter(attempts__lt=settings.RUN_MAX_ATTEMPTS)
    while (part_id := open_parts.order_by("number").values_list("pk", flat=True).first()) is not None:
        token = uuid4()
        if RunPart.objects.filter(free(), pk=part_id).update(
            status=RunStatus.RUNNING,
            lease_token=token,
            lease_expires_at=Now() + lease(),
            attempts=F("attempts") + 1,
            progress=0.0,
        ):
            return RunPart.objects.filter(pk=part_id, lease_token=token).first()
    return None


def work_on(part: RunPart, run: Run, execute_part: ExecutePart, *, joint: ReportProgress | None = None) -> None:
    """Do a claimed part and store its result, or why there is none; what stops the job is raised."""
    token = part.lease_token
    if token is None:
        return
    report = PartProgress(part_id=part.pk, run_id=run.pk, lease_token=token, joint=joint)
    try:
        ended: dict[str, Any] = {"status": RunStatus.SUCCEEDED, "progress": 1.0}
        ended["result"] = execute_part(run.params, part.task, report)
    except (RunStopped, DatabaseError):
        raise
    except InvalidQuestion as invalid:
        ended = {"status": RunStatus.FAILED, "error": invalid_error(invalid)}
    except Exception:
        logger.exception("part failed", run_id=run.pk, part=part.number, kind=run.kind)
        ended = {"status": RunStatus.FAILED, "error": INTERNAL_ERROR}
    held_part(part.pk, token).update(lease_token=None, lease_expires_at=None, **ended)


def _ended(parts: QuerySet[RunPart], count: int) -> list[bytes] | None:
    """All results once all parts are done; None while some aren't; raises ``PartFailed``."""
    lost = parts.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now(), attempts__gte=settings.RUN_MAX_ATTEMPTS)
    # Asked first: an update that changes nothing still waits for the one writer of an embedded database.
    if lost.exists():
        lost.update(status=RunStatus.FAILED, lease_token=None, error=worker_lost_error())
    failed = parts.filter(status=RunStatus.FAILED).order_by("number").first()
    if failed is not None:
        raise PartFailed(failed.error or INTERNAL_ERROR)
    if parts.filter(status=RunStatus.SUCCEEDED).count() < count:
        return None
    return [bytes(result or b"") for result in parts.order_by("number").values_list("result", flat=True)]


def ask_for_help(*, run_id: int, helpers: int) -> None:
    """Call in other workers; a broker that can't be reached costs speed, not the result."""
    if helpers < 1:
        return
    message = current_app.signature(HELP_RUN_TASK, args=[run_id], immutable=True)
    try:
        group([message] * helpers).apply_async(expires=10 * settings.RUN_RESEND_SECONDS)
    except (OperationalError, OSError) as error:
        logger.warning("no help asked for", run_id=run_id, error=str(error))


def resend_lost_parts() -> int:
    """Ask for help with running jobs that have parts nobody holds; returns how many jobs."""
    waiting = RunPart.objects.filter(free(), run__status=RunStatus.RUNNING, run__cancel_requested=False)
    run_ids = list(waiting.order_by().values_list("run_id", flat=True).distinct())
    for run_id in run_ids:
        ask_for_help(run_id=run_id, helpers=1)
    return len(run_ids)


def scope_of_run(run: Run) -> Scope | None:
    """Whose prices the run plans with; raises ``NotFound`` where its owner has left them."""
    if run.organization is None:
        return None
    return scope_of(user=run.owner or AnonymousUser(), organization=run.organization.uuid)


def invalid_error(invalid: InvalidQuestion) -> dict[str, Any]:
    """What a job ends with whose question turned out to be wrong."""
    return {"code": "invalid", "detail": str(invalid), "errors": envelope(invalid.errors)["errors"]}


def worker_lost_error() -> dict[str, Any]:
    """What a job ends with that stopped every worker that tried it."""
    detail = f"{settings.RUN_MAX_ATTEMPTS} workers in a row stopped during this run."
    return {"code": "worker_lost", "detail": detail}
