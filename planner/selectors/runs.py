"""Reading jobs: an owned run is for its owner alone, an anonymous one for whoever knows its name."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from planner.models import Run, User


def find_run(*, uuid: UUID, user: User | AnonymousUser) -> Run | None:
    """The run of that public name, or None where there is none that ``user`` may see."""
    owner = Q(owner__isnull=True)
    if user.is_authenticated:
        owner |= Q(owner=user)
    return Run.objects.filter(owner, uuid=uuid).first()


def runs_of(*, user: User) -> QuerySet[Run]:
    """The runs a person started, newest first."""
    return Run.objects.filter(owner=user)
