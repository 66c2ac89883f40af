"""Who may do what: one table, from which the object permissions and the scopes of keys are made.

``user.has_perm("planner.change_price_book", price_book)`` asks the role that the user has in the organization of
the object (or in the organization given as the object). Code that serves a request asks ``Scope.require``, which
looks at the API key's scopes too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rules.permissions import set_perm
from rules.predicates import predicate

from planner.models import Membership, Organization, Role, TenantRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a permission needs: a role at least, and a key's scope; no key has a permission whose scope is empty."""

    role: Role
    key_scope: str = ""


PERMISSIONS: dict[str, Grant] = {
    "planner.view_organization": Grant(role=Role.VIEWER, key_scope="organization:read"),
    "planner.change_organization": Grant(role=Role.OWNER),
    "planner.view_members": Grant(role=Role.VIEWER, key_scope="organization:read"),
    "planner.change_members": Grant(role=Role.OWNER),
    "planner.view_keys": Grant(role=Role.OWNER),
    "planner.change_keys": Grant(role=Role.OWNER),
    "planner.view_audit": Grant(role=Role.OWNER),
    "planner.use_prices": Grant(role=Role.VIEWER, key_scope="plans"),
    "planner.view_price_book": Grant(role=Role.VIEWER, key_scope="price_books:read"),
    "planner.change_price_book": Grant(role=Role.BUYER, key_scope="price_books:write"),
    "planner.view_scenario": Grant(role=Role.VIEWER, key_scope="scenarios:read"),
    "planner.comment_scenario": Grant(role=Role.VIEWER, key_scope="scenarios:write"),
    "planner.change_scenario": Grant(role=Role.PLANNER, key_scope="scenarios:write"),
    "planner.view_quote": Grant(role=Role.VIEWER, key_scope="quotes:read"),
    "planner.change_quote": Grant(role=Role.BUYER, key_scope="quotes:write"),
    "planner.view_webhook": Grant(role=Role.BUYER, key_scope="webhooks:read"),
    "planner.change_webhook": Grant(role=Role.BUYER, key_scope="webhooks:write"),
}
"""``use_prices``: plan with the organization's own prices."""

KEY_SCOPES: tuple[str, ...] = tuple(sorted({grant.key_scope for grant in PERMISSIONS.values() if grant.key_scope}))
SERVICE_ACCOUNT_ROLES: tuple[Role, ...] = (Role.VIEWER, Role.PLANNER, Role.BUYER)
"""A program never manages people and keys."""


def role_in(user: Any, organization: Organization) -> Role | None:
    """The user's role in the organization; None for who is no member."""
    if not getattr(user, "is_authenticated", False) or not user.is_active:
        return None
    role = Membership.objects.filter(user=user, organization=organization).values_list("role", flat=True).first()
    return Role(role) if role is not None else None


def _at_least(wanted: Role) -> Any:
    """A predicate: the user's role in the object's organization includes ``wanted``."""

    def holds(user: Any, target: Organization | TenantRow | None = None) -> bool:
        if target is None:
            return False
        organization = target if isinstance(target, Organization) else target.organization
        role = role_in(user, organization)
        return role is not None and role.includes(wanted)

    return predicate(holds, name=f"is_{wanted.value}")  # type: ignore[no-untyped-call]


_IS = {role: _at_least(role) for role in Role}
for _name, _grant in PERMISSIONS.items():
    set_perm(_name, _IS[_grant.role])  # type: ignore[no-untyped-call]
