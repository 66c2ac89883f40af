"""What organizations, invitations and keys are written with: the fields of form and API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from planner.engine.field_spec import choice, choices, day, text
from planner.models import Role
from planner.permissions import KEY_SCOPES, SERVICE_ACCOUNT_ROLES


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationInput:
    """An organization."""

    name: str = text("Name", "Your colleagues see it, and quotes carry it.", required=True, max_length=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleInput:
    """A member's role."""

    role: str = choice(
        "Role", Role.VIEWER.value, tuple(Role.values), "Each may do all that the ones before it may.", "advanced"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationInput(RoleInput):
    """An invitation to join."""

    email: str = text("Email address", "The link in the message is good for 7 days, once.", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInput:
    """The secret of an invitation's link."""

    token: str = text("Token", "The last part of the link.", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInput:
    """An API key."""

    name: str = text("Name", "Where it is used.", required=True, max_length=100)
    service_account: str = text(
        "Service account", "A program's own user; a new name makes a new one.", required=True, max_length=100
    )
    role: str = choice(
        "Role",
        SERVICE_ACCOUNT_ROLES[0].value,
        tuple(role.value for role in SERVICE_ACCOUNT_ROLES),
        "Of a new service account; one that is there keeps its own.",
        "advanced",
    )
    scopes: tuple[str, ...] = choices("Scopes", ("plans",), KEY_SCOPES, "What the key may do.", "advanced")
    expires_on: date | None = day("Expires on", "Last day; empty: never.")
