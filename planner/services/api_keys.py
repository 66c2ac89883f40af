"""API keys of service accounts: made, used, revoked."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from django.utils import timezone
from django.utils.crypto import constant_time_compare, get_random_string

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import ApiKey, Membership, ServiceAccount, User
from planner.selectors.scope import NotFound, Scope, scope_of
from planner.services.organization_inputs import KeyInput
from planner.services.organizations import checked_name, checked_role
from planner.services.tenancy import lock, tenant_write
from planner.services.tiers import require_room

MARK: Final = "takar_"
"""How every key begins: secret scanners find it in code that should not hold it."""
PREFIX_LENGTH: Final = len(MARK) + 8
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
USE_NOTED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key's row and the key itself, which is known only now."""

    row: ApiKey
    key: str


@tenant_write
def create_key(*, scope: Scope, values: KeyInput) -> NewKey:
    """Make a key of the named service account; of a new one where there is none of that name.

    Raises ``InvalidQuestion`` naming every field at fault.
    """
    scope.require("planner.change_keys")
    lock(scope.organization)
    _check(values)
    require_room(scope.organization, "keys")
    prefix = MARK + get_random_string(8, _LETTERS)
    key = f"{prefix}_{secrets.token_urlsafe(32)}"
    row = ApiKey.objects.create(
        organization=scope.organization,
        service_account=_service_account(scope, values),
        name=checked_name(values.name),
        prefix=prefix,
        secret_hash=_hash(key),
        scopes=sorted(values.scopes),
        expires_at=_end_of(values),
        created_by=scope.user,
    )
    return NewKey(row=row, key=key)


@tenant_write
def revoke_key(*, scope: Scope, key: ApiKey) -> ApiKey:
    """End a key at once; a revoked one stays as it is."""
    scope.require("planner.change_keys")
    key = scope.get(ApiKey, key.uuid, lock=True)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
    return key


def scope_of_key(*, key: str) -> Scope | None:
    """The scope that a key opens; None for one that is unknown, revoked, expired or of a removed account."""
    now = timezone.now()
    # PostgreSQL takes no NUL in a text, not even to look for it.
    prefix = key[:PREFIX_LENGTH].replace("\x00", "")
    row = ApiKey.objects.select_related("service_account__user", "organization").filter(prefix=prefix).first()
    # The hash of something is always compared, so that the time taken says nothing about prefixes.
    matches = constant_time_compare(_hash(key), row.secret_hash if row is not None else "")
    if row is None or not matches or row.status(now) != "active":
        return None
    try:
        scope = scope_of(user=row.service_account.user, organization=row.organization.uuid, key=row)
    except NotFound:
        return None
    if row.last_used_at is None or now - row.last_used_at >= USE_NOTED_EVERY:
        ApiKey.objects.filter(pk=row.pk).update(last_used_at=now)
    return scope


def _service_account(scope: Scope, values: KeyInput) -> ServiceAccount:
    name = checked_name(values.service_account, field="service_account")
    found = scope.rows(ServiceAccount).filter(name=name).first()
    if found is not None:
        return found
    require_room(scope.organization, "members")
    user = User(username=f"service-{secrets.token_hex(16)}", first_name=name)
    user.set_unusable_password()
    user.save()
    account = ServiceAccount.objects.create(
        organization=scope.organization, name=name, user=user, created_by=scope.user
    )
    role = checked_role(values.role, service_account=True)
    Membership.objects.create(organization=scope.organization, user=user, role=role)
    return account


def _check(values: KeyInput) -> None:
    faults = []
    if not values.scopes:
        faults.append(FieldError(field="scopes", value=None, message="Needed.", allowed="one or more", code="required"))
    if values.expires_on is not None and values.expires_on < timezone.localdate():
        faults.append(
            FieldError(
                field="expires_on",
                value=values.expires_on.isoformat(),
                message="In the past.",
                allowed=say("{day} or later", day=timezone.localdate().isoformat()),
            )
        )
    if faults:
        raise InvalidQuestion(faults)


def _end_of(values: KeyInput) -> datetime | None:
    """The end of the last day, UTC."""
    if values.expires_on is None:
        return None
    return datetime.combine(values.expires_on, time.min, tzinfo=UTC) + timedelta(days=1)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
