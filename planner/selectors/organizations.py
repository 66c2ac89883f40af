"""Lists of an organization's members, invitations, keys and audit entries, each in a stable order."""

from __future__ import annotations

from django.db.models import QuerySet

from planner.models import ApiKey, AuditEntry, Invitation, Membership
from planner.selectors.scope import Scope


def members(scope: Scope) -> QuerySet[Membership]:
    """Members, service accounts among them, in the order they joined."""
    return scope.rows(Membership).select_related("user__service_account", "organization").order_by("created_at", "pk")


def invitations(scope: Scope) -> QuerySet[Invitation]:
    """Invitations, the latest first."""
    return scope.rows(Invitation).select_related("invited_by", "accepted_by", "organization")


def api_keys(scope: Scope) -> QuerySet[ApiKey]:
    """Keys, the latest first."""
    return scope.rows(ApiKey).select_related("service_account__user", "created_by", "organization")


def audit_entries(scope: Scope) -> QuerySet[AuditEntry]:
    """Changes and exports, the latest first."""
    entries: QuerySet[AuditEntry] = AuditEntry.objects.filter(organization=scope.organization)
    return entries.select_related("content_type", "actor").order_by("-timestamp", "-id")
