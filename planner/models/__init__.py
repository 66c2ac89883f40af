"""Tenant data, one file per aggregate."""

from planner.models.api_key import ApiKey
from planner.models.audit import AuditEntry
from planner.models.idempotency import IdempotencyKey
from planner.models.organization import Invitation, Membership, Organization, Role, ServiceAccount, TenantRow
from planner.models.pricebook import (
    Commitment,
    Discount,
    ExchangeRate,
    NegotiatedPrice,
    PriceBook,
    PriceBookFile,
    PriceUnit,
    PrivateInstanceType,
)
from planner.models.run import Run, RunStatus
from planner.models.user import User

__all__ = [
    "ApiKey",
    "AuditEntry",
    "Commitment",
    "Discount",
    "ExchangeRate",
    "IdempotencyKey",
    "Invitation",
    "Membership",
    "NegotiatedPrice",
    "Organization",
    "PriceBook",
    "PriceBookFile",
    "PriceUnit",
    "PrivateInstanceType",
    "Role",
    "Run",
    "RunStatus",
    "ServiceAccount",
    "TenantRow",
    "User",
]
