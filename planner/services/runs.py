"""Starting, cancelling and rescuing jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import Run, RunPart, RunStatus, User
from planner.selectors.scope import Scope
from planner.services.planning import prices_of
from planner.services.run_kinds import RUN_KINDS
from planner.services.run_parts import resend_lost_parts, worker_lost_error
from planner.services.stored_traces import delete_trace, traces_older_than

logger = structlog.get_logger(__name__)

EXECUTE_RUN_TASK = "planner.execute_run"
RESEND_AFTER = timedelta(seconds=60)
"""A queued run whose message is older than this is announced again: the message may be lost."""
MOST_RESENT = 500
UNUSED_TRACE_AGE = timedelta(days=1)
"""A trace is sent before the run that serves it."""


def create_run(*, kind: str, params: Mapping[str, Any], owner: User | None = None, scope: Scope | None = None) -> Run:
    """Store a job and announce it to the workers once the transaction is committed; it plans with the scope's prices.

    Raises ``InvalidQuestion`` for an unknown kind or for parameters that can't be run.
    """
    run_kind = RUN_KINDS.get(kind)
    if run_kind is None:
        known = ", ".join(sorted(RUN_KINDS))
        raise InvalidQuestion(
            [FieldError(field="kind", value=kind, message="Unknown kind.", allowed=known, code="unknown_kind")]
        )
    if scope is not None:
        scope.require("planner.use_prices")
    with prices_of(scope):
        run_kind.check(params, owner)
    organization = scope.organization if scope is not None else None
    run = Run.objects.create(kind=kind, params=dict(params), owner=owner, organization=organization)
    transaction.on_commit(partial(announce_run, run_id=run.pk))
    return run


def announce_run(*, run_id: int) -> None:
    """Tell the workers that a run waits for them.

    A broker that can't be reached loses nothing: the row is announced again by ``resend_lost_runs``.
    """
    try:
        current_app.send_task(EXECUTE_RUN_TASK, args=[run_id])
    except (OperationalError, OSError) as error:
        logger.warning("run not announced", run_id=run_id, error=str(error))
        return
    Run.objects.filter(pk=run_id).update(sent_at=Now())


def cancel_run(*, run: Run) -> Run:
    """Cancel a job: at once while no worker has it, else at its next progress report; a final one stays as it is."""
    ownerless = Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_expires_at__lt=Now())
    Run.objects.filter(ownerless, pk=run.pk).update(
        status=RunStatus.CANCELLED, cancel_requested=True, finished_at=Now(), lease_token=None
    )
    Run.objects.filter(pk=run.pk, status=RunStatus.RUNNING).update(cancel_requested=True)
    run.refresh_from_db()
    return run


def resend_lost_runs(*, queued_for: timedelta = RESEND_AFTER) -> int:
    """Announce again what no worker holds; returns how many.

    That is every run whose lease has expired, and every queued one last announced ``queued_for`` ago or earlier.
    An announcement too many is harmless: the row can be claimed once only.
    """
    _close_expired_runs()
    unheard = Q(sent_at__isnull=True) | Q(sent_at__lt=Now() - queued_for)
    waiting = Q(status=RunStatus.QUEUED) & unheard
    lost = Q(status=RunStatus.RUNNING, lease_expires_at__lt=Now())
    run_ids = list(Run.objects.filter(waiting | lost).order_by("created_at").values_list("pk", flat=True)[:MOST_RESENT])
    for run_id in run_ids:
        announce_run(run_id=run_id)
    resend_lost_parts()
    return len(run_ids)


def _close_expired_runs() -> None:
    """End the runs that must not be tried again."""
    expired = Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now())
    expired.filter(cancel_requested=True).update(status=RunStatus.CANCELLED, finished_at=Now(), lease_token=None)
    expired.filter(attempts__gte=settings.RUN_MAX_ATTEMPTS).update(
        status=RunStatus.FAILED,
        finished_at=Now(),
        lease_token=None,
        error=worker_lost_error(),
    )


def delete_old_runs() -> int:
    """Delete anonymous runs whose time is over, with their traces; returns how many rows went.

    Traces that were uploaded and never simulated go too, a day later.
    """
    limit = timedelta(days=settings.ANONYMOUS_RUN_DAYS)
    old = Run.objects.filter(owner__isnull=True, created_at__lt=Now() - limit)
    traces = _traces(old)
    deleted, _by_model = old.delete()
    # Of runs that ended while no worker held them; a worker that ends a run deletes its parts itself.
    RunPart.objects.exclude(run__status__in=(RunStatus.QUEUED, RunStatus.RUNNING)).delete()
    unused = (traces | set(traces_older_than(UNUSED_TRACE_AGE))) - _traces(Run.objects.all())
    for trace in unused:
        delete_trace(trace)
    return deleted


def _traces(runs: QuerySet[Run]) -> set[str]:
    """The uploaded traces that runs serve."""
    found: set[str] = set()
    for trace, regions in runs.values_list("params__trace", "params__regions").iterator():
        own = regions if isinstance(regions, list) else ()
        found |= {each for each in (trace, *(region.get("trace") for region in own)) if isinstance(each, str)}
    return found
