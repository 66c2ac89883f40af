"""A scope finds its own organization's rows and no other's; roles reach as far as the table says."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth.models import AnonymousUser

from planner.models import ApiKey, AuditEntry, Membership, Organization, Role, ServiceAccount
from planner.permissions import KEY_SCOPES, PERMISSIONS, SERVICE_ACCOUNT_ROLES
from planner.selectors.scope import Forbidden, NotFound, Scope, scope_of, scopes_of
from planner.services.organizations import change_role, create_organization, remove_member, rename_organization
from planner.services.tenancy import Conflict
from tests.planner.organizations import Tenant, tenant_factory, user_factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return tenant_factory("Acme")


@pytest.fixture
def other() -> Tenant:
    return tenant_factory("Other")


def test_a_member_of_another_organization_finds_none_by_slug_or_by_public_name(acme: Tenant, other: Tenant) -> None:
    stranger = other.people[Role.OWNER]
    for name in (acme.organization.slug, str(acme.organization.uuid), acme.organization.uuid, "no-such", uuid.uuid4()):
        for user in (stranger, AnonymousUser()):
            with pytest.raises(NotFound, match="No such organization"):
                scope_of(user=user, organization=name)


def test_an_inactive_member_finds_none(acme: Tenant) -> None:
    user = acme.people[Role.OWNER]
    user.is_active = False
    with pytest.raises(NotFound):
        scope_of(user=user, organization=acme.organization.slug)


def test_rows_of_another_organization_are_not_found(acme: Tenant, other: Tenant) -> None:
    theirs = Membership.objects.filter(organization=other.organization).first()
    assert theirs is not None
    with pytest.raises(NotFound, match="No such membership"):
        acme.scope().get(Membership, theirs.uuid)
    assert other.scope().get(Membership, theirs.uuid) == theirs
    assert {row.organization_id for row in acme.scope().rows(Membership)} == {acme.organization.pk}


def test_scopes_of_lists_the_organizations_of_a_person(acme: Tenant, other: Tenant) -> None:
    person = acme.people[Role.BUYER]
    Membership.objects.create(organization=other.organization, user=person, role=Role.VIEWER)
    assert [(scope.organization.name, scope.role) for scope in scopes_of(user=person)] == [
        ("Acme", Role.BUYER),
        ("Other", Role.VIEWER),
    ]
    assert scopes_of(user=AnonymousUser()) == []


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_object_permissions_and_scopes_agree(acme: Tenant, other: Tenant, permission: str) -> None:
    row = Membership.objects.filter(organization=acme.organization).first()
    for role, user in acme.people.items():
        allowed = role.includes(PERMISSIONS[permission].role)
        assert user.has_perm(permission, acme.organization) is allowed
        assert user.has_perm(permission, row) is allowed
        assert user.has_perm(permission, other.organization) is False
        assert user.has_perm(permission) is False
        assert acme.scope(role).allows(permission) is allowed


def test_a_key_reaches_no_further_than_its_scopes_and_its_role(acme: Tenant) -> None:
    key = ApiKey(scopes=["price_books:read", "price_books:write"])
    buyer, viewer = (
        Scope(user=acme.people[role], organization=acme.organization, role=role, key=key)
        for role in (Role.BUYER, Role.VIEWER)
    )
    assert buyer.allows("planner.change_price_book")
    assert not buyer.allows("planner.view_quote")
    assert not viewer.allows("planner.change_price_book")
    every = Scope(
        user=acme.people[Role.OWNER],
        organization=acme.organization,
        role=Role.OWNER,
        key=ApiKey(scopes=list(KEY_SCOPES)),
    )
    for permission in ("planner.change_members", "planner.change_keys", "planner.view_keys", "planner.view_audit"):
        with pytest.raises(Forbidden, match="a person, not a key"):
            every.require(permission)


def test_only_owners_change_names_and_roles(acme: Tenant) -> None:
    someone = Membership.objects.get(user=acme.people[Role.VIEWER])
    for role in (Role.VIEWER, Role.PLANNER, Role.BUYER):
        scope = acme.scope(role)
        with pytest.raises(Forbidden):
            rename_organization(scope=scope, name="Mine")
        with pytest.raises(Forbidden):
            change_role(scope=scope, membership=someone, role="owner")
    rename_organization(scope=acme.scope(), name="  Acme   Corp ")
    assert Organization.objects.get(pk=acme.organization.pk).name == "Acme Corp"
    assert change_role(scope=acme.scope(), membership=someone, role="planner").role == Role.PLANNER


def test_the_last_owner_stays(acme: Tenant) -> None:
    owner = Membership.objects.get(user=acme.people[Role.OWNER])
    with pytest.raises(Conflict, match="needs an owner"):
        remove_member(scope=acme.scope(), membership=owner)
    with pytest.raises(Conflict, match="needs an owner"):
        change_role(scope=acme.scope(), membership=owner, role="viewer")
    second = Membership.objects.get(user=acme.people[Role.BUYER])
    change_role(scope=acme.scope(), membership=second, role="owner")
    remove_member(scope=acme.scope(), membership=owner)
    assert not Membership.objects.filter(pk=owner.pk).exists()


def test_everybody_may_leave_but_remove_nobody_else(acme: Tenant) -> None:
    viewer, planner = (Membership.objects.get(user=acme.people[role]) for role in (Role.VIEWER, Role.PLANNER))
    with pytest.raises(Forbidden):
        remove_member(scope=acme.scope(Role.VIEWER), membership=planner)
    remove_member(scope=acme.scope(Role.VIEWER), membership=viewer)
    assert not Membership.objects.filter(pk=viewer.pk).exists()


def test_a_service_account_is_never_an_owner_and_goes_with_its_membership(acme: Tenant) -> None:
    robot = user_factory("robot")
    ServiceAccount.objects.create(organization=acme.organization, name="ERP", user=robot)
    membership = Membership.objects.create(organization=acme.organization, user=robot, role=Role.VIEWER)
    assert Role.OWNER not in SERVICE_ACCOUNT_ROLES
    with pytest.raises(Exception, match="Not a known choice"):
        change_role(scope=acme.scope(), membership=membership, role="owner")
    remove_member(scope=acme.scope(), membership=membership)
    assert not ServiceAccount.objects.filter(name="ERP").exists()


def test_changes_are_logged_with_their_author(acme: Tenant, other: Tenant) -> None:
    rename_organization(scope=acme.scope(), name="Acme Corp")
    entry = AuditEntry.objects.filter(organization=acme.organization).first()
    assert entry is not None
    assert entry.actor == acme.people[Role.OWNER]
    assert entry.changes == {"name": ["Acme", "Acme Corp"]}
    assert not AuditEntry.objects.filter(organization=other.organization, changes__has_key="name", action=1).exists()


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\x00b", "a\u202eb"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(Exception, match="Not a usable name"):
        create_organization(user=user_factory("someone"), name=name)


@pytest.mark.parametrize("name", ["مؤسسة Acme 🚀", "مي\u200cكن", "👩\u200d💻 Ltd", "<b>Acme</b>", "株式会社"])
def test_a_name_of_any_script_is_taken_as_it_is(name: str) -> None:
    organization = create_organization(user=user_factory("someone"), name=name)
    assert organization.name == name
    assert organization.slug.isascii()
