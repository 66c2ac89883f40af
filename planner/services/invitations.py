"""Inviting people by email: a link that is good for one person, once, for a week."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import Invitation, Membership, User
from planner.models.audit import acting
from planner.selectors.invitations import find_invitation
from planner.selectors.scope import NotFound, Scope
from planner.services.organization_inputs import InvitationInput
from planner.services.organizations import checked_role
from planner.services.tenancy import Conflict, lock, tenant_write
from planner.services.tiers import require_room

logger = structlog.get_logger(__name__)

GOOD_FOR: Final = timedelta(days=7)
MOST_A_DAY: Final = 100
"""Messages that one organization may cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """An invitation and the secret of its link, which is known only now."""

    invitation: Invitation
    token: str


@tenant_write
def invite(*, scope: Scope, values: InvitationInput) -> Invited:
    """Invite the owner of an address; an open invitation of the same address is replaced.

    Raises ``InvalidQuestion`` for an address that is none, ``Conflict`` for a member's.
    """
    scope.require("planner.change_members")
    lock(scope.organization)
    email = _checked_email(values.email)
    role = checked_role(values.role)
    if scope.rows(Membership).filter(user__email__iexact=email).exists():
        raise Conflict("already_member", say("{email} is a member already.", email=email), say("another address"))
    open_ones = scope.rows(Invitation).filter(accepted_at=None, revoked_at=None)
    for older in open_ones.filter(email=email):
        older.revoked_at = timezone.now()
        older.save(update_fields=["revoked_at"])
    require_room(scope.organization, "members")
    since = timezone.now() - timedelta(days=1)
    if scope.rows(Invitation).filter(created_at__gt=since).count() >= MOST_A_DAY:
        raise Conflict(
            "too_many",
            say("{most} invitations were made within a day.", most=MOST_A_DAY),
            say("wait until tomorrow"),
        )
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        organization=scope.organization,
        email=email,
        role=role,
        token_hash=token_hash(token),
        expires_at=timezone.now() + GOOD_FOR,
        invited_by=scope.user,
    )
    return Invited(invitation=invitation, token=token)


def send_invitation(*, scope: Scope, invitation: Invitation, link: str) -> bool:
    """Mail the link, in the language of who invites; False where the mail server would not take it."""
    words = {"organization": scope.organization.name, "who": scope.user.email, "link": link}
    subject = _("Join %(organization)s on Takar") % words
    body = _(
        "%(who)s invites you to join %(organization)s on Takar.\n\n%(link)s\n\n"
        "The link is good for 7 days, once, for this address."
    )
    message = EmailMessage(subject=" ".join(subject.split()), body=body % words, to=[invitation.email])
    try:
        message.send()
    except OSError as error:
        logger.warning("invitation not mailed", invitation=str(invitation.uuid), error=str(error))
        return False
    return True


@tenant_write
def revoke_invitation(*, scope: Scope, invitation: Invitation) -> Invitation:
    """Make the link useless; raises ``Conflict`` once it was accepted."""
    scope.require("planner.change_members")
    invitation = scope.get(Invitation, invitation.uuid, lock=True)
    if invitation.accepted_at is not None:
        raise Conflict("already_accepted", "The invitation was accepted already.", say("remove the member"))
    if invitation.revoked_at is None:
        invitation.revoked_at = timezone.now()
        invitation.save(update_fields=["revoked_at"])
    return invitation


def accept_invitation(*, user: User, token: str) -> Membership:
    """Become a member; of any number of attempts exactly one succeeds.

    Raises ``NotFound`` for a link that is none, ``Conflict`` for one that was used, revoked or has expired, for an
    account of another address, and for a member.
    """
    with transaction.atomic(), acting(user=user):
        found = find_invitation(token_hash(token))
        if found is None:
            raise NotFound("No such invitation.")
        lock(found.organization)
        invitation = Invitation.objects.select_for_update().get(pk=found.pk)
        _check_open(invitation)
        if not is_addressed_to(invitation, user):
            raise Conflict("other_address", "The invitation is for another address.", "sign in with that address")
        if Membership.objects.filter(organization=invitation.organization, user=user).exists():
            raise Conflict("already_member", "You are a member already.")
        invitation.accepted_at = timezone.now()
        invitation.accepted_by = user
        invitation.save(update_fields=["accepted_at", "accepted_by"])
        return Membership.objects.create(organization=invitation.organization, user=user, role=invitation.role)


def is_addressed_to(invitation: Invitation, user: User) -> bool:
    """Whether the invited address is one of the user's."""
    if invitation.email == user.email.lower():
        return True
    return bool(EmailAddress.objects.filter(user=user, email__iexact=invitation.email, verified=True).exists())


def token_hash(token: str) -> str:
    """What is stored of a link's secret."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _check_open(invitation: Invitation) -> None:
    words = {
        "accepted": "The invitation was used already.",
        "revoked": "The invitation was taken back.",
        "expired": "The invitation has expired.",
    }
    status = invitation.status(timezone.now())
    if status != "open":
        raise Conflict(f"invitation_{status}", words[status], "ask for a new invitation")


def _checked_email(given: str) -> str:
    email = given.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise InvalidQuestion(
            [FieldError(field="email", value=given, message="Not an email address.", allowed="such as ani@example.org")]
        ) from None
    return email
