"""Reading jobs: an owned run is for its owner alone, an anonymous one for whoever knows its name.

What a program started with an organization's key is for the people of that organization too.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from planner.models import Run, RunStatus, ServiceAccount, User
from planner.selectors.scope import Scope, scopes_of


def find_run(*, uuid: UUID, user: User | AnonymousUser) -> Run | None:
    """The run of that public name, or None where there is none that ``user`` may see."""
    owner = Q(owner__isnull=True)
    if user.is_authenticated:
        owner |= Q(owner=user) | Q(owner__service_account__organization__in=_organizations(user))
    return Run.objects.filter(owner, uuid=uuid).first()


def find_run_to_cancel(*, uuid: UUID, user: User | AnonymousUser) -> Run | None:
    """The same, where ``user`` may end it: of a key's, who may revoke the key."""
    run = find_run(uuid=uuid, user=user)
    if run is None or run.owner_id is None or run.owner_id == user.pk or not user.is_authenticated:
        return run
    organizations = _organizations(user, permission="planner.change_keys")
    return run if ServiceAccount.objects.filter(user=run.owner_id, organization__in=organizations).exists() else None


def runs_of_keys(scope: Scope) -> QuerySet[Run]:
    """What programs started with the organization's keys, newest first."""
    return Run.objects.filter(owner__service_account__organization=scope.organization).select_related(
        "owner__service_account"
    )


def _organizations(user: User, *, permission: str = "planner.use_prices") -> list[int]:
    """Where ``user``, a person, may do so much; a program sees its own account's runs alone."""
    if ServiceAccount.objects.filter(user=user).exists():
        return []
    return [scope.organization.pk for scope in scopes_of(user=user) if scope.allows(permission)]


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
    return list(found.only("uuid", "kind", "created_at", "params")[:most])
