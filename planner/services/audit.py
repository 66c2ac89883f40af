"""Noting in the audit log what changes no row: an export, a download."""

from __future__ import annotations

from typing import Any

from auditlog.models import AbstractLogEntry

from planner.models import AuditEntry, Organization, TenantRow
from planner.models.audit import acting
from planner.selectors.scope import Scope


def note_export(*, scope: Scope, subject: Organization | TenantRow, what: str, **details: Any) -> None:
    """Log that the scope's user took ``what`` out of the system: a file's kind, and how much of it."""
    note = f"API key {scope.key.prefix}" if scope.key is not None else ""
    with acting(user=scope.user, note=note):
        AuditEntry.objects.log_create(
            subject,
            force_log=True,
            action=AbstractLogEntry.Action.ACCESS,
            changes={"export": [None, what], **{name: [None, str(value)] for name, value in details.items()}},
        )
