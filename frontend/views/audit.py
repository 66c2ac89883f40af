"""The audit log of an organization, for its owners: on a page, and as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from auditlog.models import AbstractLogEntry
from defusedcsv import csv
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from frontend import words
from frontend.views.guard import organization_page
from planner.models import AuditEntry
from planner.selectors.organizations import audit_entries
from planner.selectors.scope import Scope
from planner.services.audit import note_export

PAGE_SIZE = 50
MOST_EXPORTED = 50_000
ACTIONS = {
    AbstractLogEntry.Action.CREATE: _("created"),
    AbstractLogEntry.Action.UPDATE: _("changed"),
    AbstractLogEntry.Action.DELETE: _("deleted"),
    AbstractLogEntry.Action.ACCESS: _("exported"),
}


@organization_page("planner.view_audit")
@require_safe
def audit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Changes and exports, the latest first."""
    page = Paginator(audit_entries(scope), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"scope": scope, "tab": "audit", "page": page, "lines": [_line(entry) for entry in page.object_list]}
    return render(request, "frontend/organization/audit.html", context)


@organization_page("planner.view_audit")
@require_safe
def audit_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The latest entries as a table file; noted in the log itself."""
    entries = audit_entries(scope)[:MOST_EXPORTED]
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="takar-audit-{timezone.localdate()}.csv"'
    writer = csv.writer(response)
    writer.writerow(["at", "by", "note", "address", "action", "kind", "subject", "field", "before", "after"])
    for entry in entries.iterator(chunk_size=1000):
        writer.writerows(_rows(entry))
    note_export(scope=scope, subject=scope.organization, what="audit log")
    return response


def _line(entry: AuditEntry) -> dict[str, Any]:
    changes = [(words.plain(name), before, after) for name, (before, after) in sorted((entry.changes or {}).items())]
    return {
        "at": entry.timestamp,
        "by": entry.actor_email or words.UNKNOWN,
        "note": (entry.additional_data or {}).get("note", ""),
        "address": entry.remote_addr or "",
        "action": ACTIONS[entry.action],
        "kind": words.kind(entry.content_type.model),
        "subject": entry.object_repr,
        "changes": changes if entry.action == AbstractLogEntry.Action.UPDATE else [],
    }


def _rows(entry: AuditEntry) -> Iterator[list[Any]]:
    line = _line(entry)
    head = [line["at"].isoformat(), line["by"], line["note"], line["address"], entry.get_action_display()]
    for name, (before, after) in sorted((entry.changes or {"": (None, None)}).items()):
        yield [*head, entry.content_type.model, entry.object_repr, name, before, after]
