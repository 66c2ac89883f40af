"""Tenant data, one file per aggregate."""

from planner.models.api_key import ApiKey
from planner.models.audit import AuditEntry
from planner.models.idempotency import IdempotencyKey
from planner.models.organization import Invitation, Membership, Organization, Role, ServiceAccount, TenantRow
from planner.models.run import Run, RunStatus
from planner.models.user import User

__all__ = [
    "ApiKey",
    "AuditEntry",
    "IdempotencyKey",
    "Invitation",
    "Membership",
    "Organization",
    "Role",
    "Run",
    "RunStatus",
    "ServiceAccount",
    "TenantRow",
    "User",
]
