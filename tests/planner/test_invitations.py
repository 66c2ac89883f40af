"""Invitations: for one person, once, for a week, until revoked; and what happens when two try at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection
from django.utils import timezone

from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, Invitation, Membership, Role, User
from planner.selectors.scope import Forbidden, NotFound, scope_of
from planner.services.invitations import accept_invitation, invite, revoke_invitation, send_invitation, token_hash
from planner.services.organization_inputs import InvitationInput
from planner.services.organizations import change_role, remove_member
from planner.services.tenancy import Conflict
from tests.planner.organizations import Tenant, tenant_factory, user_factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return tenant_factory("Acme")


@pytest.fixture
def guest() -> User:
    return user_factory("guest")


def invited(acme: Tenant, email: str = "Guest@example.org", role: str = "planner") -> tuple[Invitation, str]:
    made = invite(scope=acme.scope(), values=InvitationInput(email=email, role=role))
    return made.invitation, made.token


def test_the_invited_joins_with_the_role_once(acme: Tenant, guest: User) -> None:
    invitation, token = invited(acme)
    assert accept_invitation(user=guest, token=token).role == Role.PLANNER
    assert scope_of(user=guest, organization=acme.organization.slug).role == Role.PLANNER
    with pytest.raises(Conflict, match="used already"):
        accept_invitation(user=guest, token=token)
    invitation.refresh_from_db()
    assert invitation.status(timezone.now()) == "accepted"
    assert AuditEntry.objects.filter(organization=acme.organization, actor=guest).count() == 2


def test_the_secret_is_stored_as_a_hash_alone(acme: Tenant) -> None:
    invitation, token = invited(acme)
    assert len(token) == 43
    assert invitation.token_hash == token_hash(token)
    stored = str(Invitation.objects.filter(pk=invitation.pk).values().first())
    logged = str(list(AuditEntry.objects.values_list("changes", flat=True)))
    for text in (stored, logged):
        assert token not in text
    assert invitation.token_hash not in logged


def test_somebody_else_cannot_use_it(acme: Tenant) -> None:
    _, token = invited(acme)
    other = user_factory("other")
    with pytest.raises(Conflict, match="another address"):
        accept_invitation(user=other, token=token)
    for wrong in ("", "x", token[:-1], token + "x", "\ud800"):
        with pytest.raises(NotFound, match="No such invitation"):
            accept_invitation(user=other, token=wrong)


def test_it_ends_when_revoked_expired_or_replaced(acme: Tenant, guest: User) -> None:
    first, token = invited(acme)
    second, newer = invited(acme)
    first.refresh_from_db()
    assert first.status(timezone.now()) == "revoked"
    with pytest.raises(Conflict, match="taken back"):
        accept_invitation(user=guest, token=token)
    Invitation.objects.filter(pk=second.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(Conflict, match="expired"):
        accept_invitation(user=guest, token=newer)
    third, newest = invited(acme)
    revoke_invitation(scope=acme.scope(), invitation=third)
    with pytest.raises(Conflict, match="taken back"):
        accept_invitation(user=guest, token=newest)
    assert not Membership.objects.filter(user=guest).exists()


def test_an_accepted_one_is_not_revoked(acme: Tenant, guest: User) -> None:
    invitation, token = invited(acme)
    accept_invitation(user=guest, token=token)
    with pytest.raises(Conflict, match="accepted already"):
        revoke_invitation(scope=acme.scope(), invitation=invitation)


@pytest.mark.parametrize("email", ["", "nobody", "a@b", "a b@example.org", "a@example.org\nBcc: c@example.org"])
def test_what_is_no_address_is_refused(acme: Tenant, email: str) -> None:
    with pytest.raises(InvalidQuestion, match="Not an email address"):
        invited(acme, email)


def test_members_are_not_invited_and_only_owners_invite(acme: Tenant) -> None:
    with pytest.raises(Conflict, match="member already"):
        invited(acme, acme.people[Role.VIEWER].email.upper())
    for role in (Role.VIEWER, Role.PLANNER, Role.BUYER):
        with pytest.raises(Forbidden):
            invite(scope=acme.scope(role), values=InvitationInput(email="x@example.org", role="owner"))


def test_the_message_has_the_link_and_a_dead_mail_server_is_no_error(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    invitation, _ = invited(acme)
    assert send_invitation(scope=acme.scope(), invitation=invitation, link="https://takar.test/invitations/x/")
    (message,) = mail.outbox
    assert message.to == ["guest@example.org"]
    assert "https://takar.test/invitations/x/" in message.body
    assert "Acme" in message.subject

    def dead(self: EmailBackend, messages: object) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr(EmailBackend, "send_messages", dead)
    assert not send_invitation(scope=acme.scope(), invitation=invitation, link="https://takar.test/")


def together(*tasks: Callable[[], object]) -> list[str]:
    """What each task came to, all started at the same moment in threads of their own."""
    outcomes: list[str] = []
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> None:
        start.wait()
        try:
            task()
            outcomes.append("done")
        except Conflict as conflict:
            outcomes.append(conflict.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


@pytest.mark.django_db(transaction=True)
def test_accepting_at_the_same_moment_makes_one_membership() -> None:
    acme, guest = tenant_factory("Acme"), user_factory("guest")
    _, token = invited(acme)
    outcomes = together(*[lambda: accept_invitation(user=guest, token=token)] * 4)
    assert outcomes == ["done", *["invitation_accepted"] * 3]
    assert Membership.objects.filter(user=guest).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_owners_leaving_at_the_same_moment_leave_one() -> None:
    acme = tenant_factory("Acme")
    first, second = (Membership.objects.get(user=acme.people[role]) for role in (Role.OWNER, Role.BUYER))
    change_role(scope=acme.scope(), membership=second, role="owner")
    scopes = {membership: acme.scope(role) for membership, role in ((first, Role.OWNER), (second, Role.BUYER))}
    outcomes = together(
        *(lambda m=membership, s=scope: remove_member(scope=s, membership=m) for membership, scope in scopes.items())
    )
    assert outcomes == ["done", "last_owner"]
    assert Membership.objects.filter(organization=acme.organization, role=Role.OWNER).count() == 1
