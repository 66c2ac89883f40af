"""API keys: shown once, hashed, scoped, expiring, revocable; their use is noted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from planner.accounts import display_name
from planner.engine.errors import InvalidQuestion
from planner.models import ApiKey, AuditEntry, Membership, Role, ServiceAccount, User
from planner.selectors.scope import Forbidden
from planner.services.api_keys import NewKey, create_key, revoke_key, scope_of_key
from planner.services.organization_inputs import KeyInput
from planner.services.organizations import remove_member
from tests.planner.organizations import Tenant, tenant_factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return tenant_factory("Acme")


def made(acme: Tenant, **values: object) -> NewKey:
    given = {"name": "nightly", "service_account": "ERP", "role": "buyer", "scopes": ("plans",)} | values
    return create_key(scope=acme.scope(), values=KeyInput(**given))  # type: ignore[arg-type]


def test_a_key_opens_its_organization_with_role_and_scopes(acme: Tenant) -> None:
    new = made(acme)
    scope = scope_of_key(key=new.key)
    assert scope is not None
    assert (scope.organization, scope.role, scope.key) == (acme.organization, Role.BUYER, new.row)
    assert scope.allows("planner.use_prices")
    assert not scope.allows("planner.view_price_book")
    assert not scope.user.has_usable_password()
    assert display_name(scope.user) == "ERP"


def test_only_its_hash_is_kept(acme: Tenant) -> None:
    new = made(acme)
    assert new.key.startswith(new.row.prefix)
    assert len(new.key.rsplit("_", 1)[0]) >= 14
    secret = new.key.removeprefix(new.row.prefix)
    stored = str(ApiKey.objects.filter(pk=new.row.pk).values().first())
    logged = str(list(AuditEntry.objects.values_list("changes", flat=True)))
    assert secret not in stored
    assert secret not in logged
    assert new.row.secret_hash not in logged


def test_what_is_no_key_opens_nothing(acme: Tenant) -> None:
    key = made(acme).key
    for wrong in ("", "takar_", key[:-1], key + "x", key.swapcase(), key[:14], "\x00", "takar_" + "é" * 50):
        assert scope_of_key(key=wrong) is None


def test_a_key_ends_by_expiry_revocation_and_removal(acme: Tenant) -> None:
    today = timezone.localdate()
    new = made(acme, expires_on=today)
    assert scope_of_key(key=new.key) is not None
    ApiKey.objects.filter(pk=new.row.pk).update(expires_at=timezone.now())
    assert scope_of_key(key=new.key) is None
    second = made(acme)
    revoke_key(scope=acme.scope(), key=second.row)
    assert scope_of_key(key=second.key) is None
    third = made(acme)
    account = ServiceAccount.objects.get(name="ERP")
    account.user.is_active = False
    account.user.save()
    assert scope_of_key(key=third.key) is None
    remove_member(scope=acme.scope(), membership=Membership.objects.get(user=account.user))
    assert scope_of_key(key=third.key) is None
    assert not ApiKey.objects.exists()
    assert not User.objects.filter(pk=account.user_id).exists()


def test_use_is_noted_to_the_minute(acme: Tenant) -> None:
    new = made(acme)
    scope_of_key(key=new.key)
    first = ApiKey.objects.get().last_used_at
    scope_of_key(key=new.key)
    assert ApiKey.objects.get().last_used_at == first
    earlier = timezone.now() - timedelta(minutes=2)
    ApiKey.objects.update(last_used_at=earlier)
    scope_of_key(key=new.key)
    used = ApiKey.objects.get().last_used_at
    assert used is not None
    assert used > earlier


def test_a_second_key_of_an_account_keeps_its_role(acme: Tenant) -> None:
    made(acme)
    made(acme, role="viewer")
    assert ServiceAccount.objects.count() == 1
    assert Membership.objects.get(user__service_account__name="ERP").role == Role.BUYER


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"scopes": ()}, "scopes"),
        ({"expires_on": timezone.localdate() - timedelta(days=1)}, "expires_on"),
        ({"name": " "}, "name"),
        ({"service_account": "\x00"}, "service_account"),
        ({"role": "owner"}, "role"),
    ],
)
def test_a_key_that_would_be_of_no_use_is_refused(acme: Tenant, given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidQuestion) as invalid:
        made(acme, **given)
    assert [error.field for error in invalid.value.errors] == [field]
    assert not ApiKey.objects.exists()


def test_only_owners_make_and_revoke_keys(acme: Tenant) -> None:
    new = made(acme)
    for role in (Role.VIEWER, Role.PLANNER, Role.BUYER):
        with pytest.raises(Forbidden):
            create_key(scope=acme.scope(role), values=KeyInput(name="x", service_account="x"))
        with pytest.raises(Forbidden):
            revoke_key(scope=acme.scope(role), key=new.row)
