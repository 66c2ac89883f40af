"""Founding organizations, and who is in them with which role."""

from __future__ import annotations

import unicodedata

from auditlog.context import disable_auditlog
from django.conf import settings
from django.db import transaction
from django.utils.crypto import get_random_string
from django.utils.text import slugify

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import Membership, Organization, Role, User
from planner.models.audit import acting
from planner.permissions import SERVICE_ACCOUNT_ROLES
from planner.selectors.scope import Scope
from planner.services.tenancy import Conflict, lock, tenant_write

MOST_OWNED = 20
"""Organizations one person may found."""
NAME_LENGTH = 100
_HIDDEN = ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")
"""Control, surrogate, private use, unassigned, line and paragraph separators."""
_TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
"""Embeddings, overrides and isolates of the reading direction."""
_SLUG_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def create_organization(*, user: User, name: str) -> Organization:
    """Found an organization, with ``user`` as its owner.

    Raises ``InvalidQuestion`` for an empty or too long name, ``Conflict`` for too many organizations.
    """
    name = checked_name(name)
    with transaction.atomic(), acting(user=user):
        User.objects.select_for_update().get(pk=user.pk)
        if Membership.objects.filter(user=user, role=Role.OWNER).count() >= MOST_OWNED:
            raise Conflict(
                "too_many",
                say("You own {most} organizations already.", most=MOST_OWNED),
                say("fewer organizations"),
            )
        suffix = get_random_string(8, _SLUG_LETTERS)
        organization = Organization.objects.create(
            name=name, slug=f"{slugify(name)[:50]}-{suffix}".lstrip("-"), tier=settings.DEFAULT_TIER
        )
        Membership.objects.create(organization=organization, user=user, role=Role.OWNER)
    return organization


@tenant_write
def rename_organization(*, scope: Scope, name: str) -> Organization:
    """Give the organization another name; its address stays."""
    scope.require("planner.change_organization")
    organization = Organization.objects.select_for_update(no_key=True).get(pk=scope.organization.pk)
    organization.name = checked_name(name)
    organization.save(update_fields=["name"])
    return organization


@tenant_write
def change_role(*, scope: Scope, membership: Membership, role: str) -> Membership:
    """Give a member another role; raises ``Conflict`` where that leaves no owner."""
    scope.require("planner.change_members")
    lock(scope.organization)
    membership = scope.get(Membership, membership.uuid, lock=True)
    wanted = checked_role(role, service_account=hasattr(membership.user, "service_account"))
    if membership.role == Role.OWNER and wanted != Role.OWNER:
        _keep_an_owner(scope, membership)
    membership.role = wanted
    membership.save(update_fields=["role"])
    return membership


@tenant_write
def remove_member(*, scope: Scope, membership: Membership) -> None:
    """Take a member out; everybody may take out themselves. Raises ``Conflict`` for the last owner.

    A service account goes with its membership, and its keys with it.
    """
    lock(scope.organization)
    membership = scope.get(Membership, membership.uuid, lock=True)
    if membership.user_id != scope.user.pk or scope.key is not None:
        scope.require("planner.change_members")
    if membership.role == Role.OWNER:
        _keep_an_owner(scope, membership)
    account = getattr(membership.user, "service_account", None)
    membership.delete()
    if account is not None:
        account.user.delete()


def delete_organization(*, organization: Organization) -> None:
    """Delete an organization with all that it owns, its audit log and the users of its service accounts too.

    For operators: members can't, because quotes have to stay.
    """
    with transaction.atomic(), disable_auditlog():
        programs = User.objects.filter(service_account__organization=organization)
        # What is deleted would be noted in a log that is deleted itself.
        found = list(programs.values_list("pk", flat=True))
        organization.delete()
        User.objects.filter(pk__in=found).delete()


def checked_name(name: object, *, field: str = "name", longest: int = NAME_LENGTH) -> str:
    """``name`` without space around it; raises ``InvalidQuestion`` where that is no name."""
    text = " ".join(name.split()) if isinstance(name, str) else ""
    if not text or len(text) > longest or not is_showable(text):
        raise InvalidQuestion(
            [
                FieldError(
                    field=field,
                    value=name,
                    message="Not a usable name.",
                    allowed=say("1 to {longest} characters", longest=longest),
                )
            ]
        )
    return text


def is_showable(text: str) -> bool:
    """Whether ``text`` shows what it holds: no control characters, nothing that turns the reading direction around.

    Joiners stay: Persian and emoji need them.

    >>> is_showable("مؤسسة Acme"), is_showable(chr(0x202E)), is_showable(chr(0))
    (True, False, False)
    """
    return not any(letter in _TURNING or unicodedata.category(letter) in _HIDDEN for letter in text)


def checked_role(role: object, *, service_account: bool = False) -> Role:
    """The role of that name; raises ``InvalidQuestion`` for one that isn't given out."""
    choices = SERVICE_ACCOUNT_ROLES if service_account else tuple(Role)
    if role not in [choice.value for choice in choices]:
        allowed = ", ".join(choice.value for choice in choices)
        raise InvalidQuestion([FieldError(field="role", value=role, message="Not a known choice.", allowed=allowed)])
    return Role(role)


def _keep_an_owner(scope: Scope, leaving: Membership) -> None:
    if not scope.rows(Membership).filter(role=Role.OWNER).exclude(pk=leaving.pk).exists():
        raise Conflict("last_owner", "An organization needs an owner.", "make another member owner first")
