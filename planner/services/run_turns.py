"""Whose job is next: callers take turns, so that many jobs of one don't keep everybody else waiting.

A message wakes a worker up, which takes the waiting run whose turn it is: of the caller whose last job was started the
longest ago, the one that waits longest. All who start jobs without an account are one caller. There is a message for
each waiting run, and each takes one, so that all are taken.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.db.models import Max, Min, Q, QuerySet

from planner.models import Run, RunStatus
from planner.services.run_execution import execute_run
from planner.services.run_progress import free

MOST_TRIES: Final = 20
"""Each time another worker has taken the same one first."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def execute_in_turn(*, run_id: int) -> None:
    """See a run through: ``run_id`` where a worker has lost it, else the waiting one whose turn it is."""
    if Run.objects.filter(free(), pk=run_id, status=RunStatus.RUNNING).exists():
        execute_run(run_id=run_id)
        return
    for _ in range(MOST_TRIES):
        chosen = next_in_turn()
        if chosen is None or execute_run(run_id=chosen):
            return


def next_in_turn() -> int | None:
    """The waiting run whose turn it is; None where none waits."""
    oldest = dict(_waiting().order_by().values_list("owner").annotate(first=Min("pk")))
    if len(oldest) < 2:
        return next(iter(oldest.values()), None)
    named = [owner for owner in oldest if owner is not None]
    theirs = Q(owner__in=named) | Q(owner__isnull=True)
    started = dict(Run.objects.filter(theirs).order_by().values_list("owner").annotate(last=Max("started_at")))
    turn: int = min(oldest.items(), key=lambda owned: (started.get(owned[0]) or _NEVER, owned[1]))[1]
    return turn


def _waiting() -> QuerySet[Run]:
    return Run.objects.filter(status=RunStatus.QUEUED, cancel_requested=False, attempts__lt=settings.RUN_MAX_ATTEMPTS)
