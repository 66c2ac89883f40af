"""The one way to a tenant's rows: a scope says who asks and for which organization, and finds nothing of others.

scope = scope_of(user=request.user, organization=slug)   # raises NotFound for who is no member
book = scope.get(PriceBook, uuid)                        # raises NotFound for another organization's
scope.require("planner.change_price_book")               # raises Forbidden for too low a role
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import Q, QuerySet

from planner.models import ApiKey, Membership, Organization, Role, TenantRow, User
from planner.permissions import PERMISSIONS

Row = TypeVar("Row", bound=TenantRow)


class NotFound(LookupError):
    """There is no such row, or none that may be known of: the two are never told apart."""


class Forbidden(PermissionDenied):
    """A member whose role, or whose key, does not reach that far."""

    def __init__(self, permission: str, needed: str) -> None:
        super().__init__(f"Needs {needed}.")
        self.permission = permission
        self.needed = needed
        """What would do, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Who asks, in which organization; every read and write of tenant data takes one."""

    user: User
    organization: Organization
    role: Role
    key: ApiKey | None = None
    """The API key that the request came with."""

    def rows(self, model: type[Row]) -> QuerySet[Row]:
        """The organization's rows of ``model``."""
        return model._default_manager.filter(organization=self.organization)

    def get(self, model: type[Row], uuid: UUID, *, lock: bool = False) -> Row:
        """The organization's row of that public name, locked until the transaction ends where asked.

        Raises ``NotFound``.
        """
        found = self.rows(model).filter(uuid=uuid)
        row = (found.select_for_update() if lock else found).first()
        if row is None:
            raise NotFound(f"No such {model._meta.verbose_name}.")
        return row

    def get_in(self, model: type[Row], uuid: UUID, **parent: models.Model) -> Row:
        """The organization's row of that public name below ``parent``; raises ``NotFound``."""
        row = self.rows(model).filter(uuid=uuid, **parent).first()
        if row is None:
            raise NotFound(f"No such {model._meta.verbose_name}.")
        return row

    def allows(self, permission: str) -> bool:
        """Whether role and key reach as far as ``permission`` (a name of ``planner.permissions``)."""
        return not self._lacks(permission)

    def require(self, permission: str) -> None:
        """Raise ``Forbidden`` unless role and key reach as far as ``permission``."""
        lacks = self._lacks(permission)
        if lacks:
            raise Forbidden(permission, lacks)

    def _lacks(self, permission: str) -> str:
        grant = PERMISSIONS[permission]
        if not self.role.includes(grant.role):
            return f"the role {grant.role.value}"
        if self.key is not None and grant.key_scope not in self.key.scopes:
            return f"a key with the scope {grant.key_scope}" if grant.key_scope else "a person, not a key"
        return ""


def scope_of(*, user: User | AnonymousUser, organization: str | UUID, key: ApiKey | None = None) -> Scope:
    """The scope of a member in the organization of that slug or public name.

    Raises ``NotFound`` where there is none, or ``user`` is no member of it.
    """
    membership = _memberships(user).filter(_named(organization)).first()
    if membership is None:
        raise NotFound("No such organization.")
    return _scope(membership, key)


def scopes_of(*, user: User | AnonymousUser) -> list[Scope]:
    """One scope for each organization that ``user`` is a member of, by name."""
    return [_scope(membership, None) for membership in _memberships(user).order_by("organization__name", "pk")]


def _memberships(user: User | AnonymousUser) -> QuerySet[Membership]:
    if not user.is_authenticated or not user.is_active:
        return Membership.objects.none()
    return Membership.objects.filter(user=user).select_related("organization", "user")


def _named(organization: str | UUID) -> Q:
    if isinstance(organization, UUID):
        return Q(organization__uuid=organization)
    if "\x00" in organization:
        # No text of PostgreSQL holds one, and it refuses even to look.
        return Q(pk__in=[])
    try:
        return Q(organization__uuid=UUID(organization))
    except ValueError:
        return Q(organization__slug=organization)


def _scope(membership: Membership, key: ApiKey | None) -> Scope:
    return Scope(user=membership.user, organization=membership.organization, role=Role(membership.role), key=key)
