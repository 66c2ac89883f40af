"""Reading jobs: an owned run is for its owner alone, an anonymous one for whoever knows its name."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from planner.models import Run, RunStatus, User


def find_run(*, uuid: UUID, user: User | AnonymousUser) -> Run | None:
    """The run of that public name, or None where there is none that ``user`` may see."""
    owner = Q(owner__isnull=True)
    if user.is_authenticated:
        owner |= Q(owner=user)
    return Run.objects.filter(owner, uuid=uuid).first()


def runs_of(*, user: User) -> QuerySet[Run]:
    """The runs a person started, newest first."""
    return Run.objects.filter(owner=user)


def finished_runs_of(*, user: User | AnonymousUser, kinds: Sequence[str], but: Run, most: int) -> list[Run]:
    """The newest runs of these kinds that a person started and that have a result, without their results.

    Nobody's for who isn't signed in: an anonymous run is for whoever knows its name.
    """
    if not user.is_authenticated:
        return []
    found = runs_of(user=user).filter(kind__in=kinds, status=RunStatus.SUCCEEDED).exclude(pk=but.pk)
    return list(found.only("uuid", "kind", "created_at")[:most])
