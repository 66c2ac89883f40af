"""Organizations with a member of each role, for tests of tenant data."""

from __future__ import annotations

from dataclasses import dataclass

from planner.models import Membership, Organization, Role, User
from planner.selectors.scope import Scope, scope_of
from planner.services.organizations import create_organization

PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organization and its people, by role."""

    organization: Organization
    people: dict[Role, User]

    def scope(self, role: Role = Role.OWNER) -> Scope:
        return scope_of(user=self.people[role], organization=self.organization.slug)


def user_factory(name: str) -> User:
    return User.objects.create_user(username=name, email=f"{name}@example.org", password=PASSWORD)


def tenant_factory(name: str = "Acme") -> Tenant:
    """An organization with one member of each role, named ``<role>-<name>@example.org``."""
    people = {role: user_factory(f"{role.value}-{name.lower()}") for role in Role}
    organization = create_organization(user=people[Role.OWNER], name=name)
    for role, user in people.items():
        if role != Role.OWNER:
            Membership.objects.create(organization=organization, user=user, role=role)
    return Tenant(organization=organization, people=people)
