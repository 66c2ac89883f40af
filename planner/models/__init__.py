"""Tenant data, one file per aggregate."""

from planner.models.api_key import ApiKey
from planner.models.audit import AuditEntry
from planner.models.idempotency import IdempotencyKey
from planner.models.organization import Invitation, Membership, Organization, Role, ServiceAccount, TenantRow, Tier
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
from planner.models.quote import EXPIRED, SHOWN_STATUSES, Quote, QuoteCounter, QuoteStatus
from planner.models.run import Run, RunStatus
from planner.models.run_part import RunPart
from planner.models.scenario import PlanKind, Scenario, ScenarioComment, ScenarioVersion, ShareLink
from planner.models.stored_trace import StoredTrace
from planner.models.user import User
from planner.models.webhook import EVENTS, PING, DeliveryStatus, Webhook, WebhookDelivery

__all__ = [
    "EVENTS",
    "EXPIRED",
    "PING",
    "SHOWN_STATUSES",
    "ApiKey",
    "AuditEntry",
    "Commitment",
    "DeliveryStatus",
    "Discount",
    "ExchangeRate",
    "IdempotencyKey",
    "Invitation",
    "Membership",
    "NegotiatedPrice",
    "Organization",
    "PlanKind",
    "PriceBook",
    "PriceBookFile",
    "PriceUnit",
    "PrivateInstanceType",
    "Quote",
    "QuoteCounter",
    "QuoteStatus",
    "Role",
    "Run",
    "RunPart",
    "RunStatus",
    "Scenario",
    "ScenarioComment",
    "ScenarioVersion",
    "ServiceAccount",
    "ShareLink",
    "StoredTrace",
    "TenantRow",
    "Tier",
    "User",
    "Webhook",
    "WebhookDelivery",
]
