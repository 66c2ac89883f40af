"""The audit log of an organization, for its owners: on a page, and as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from auditlog.models import AbstractLogEntry
from defusedcsv import csv
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from frontend import organization_words, words
from frontend.views.guard import organization_page
from planner.models import AuditEntry
from planner.selectors.organizations import audit_entries
from planner.selectors.scope import Scope
from planner.services.audit import note_export

PAGE_SIZE = 50
SHOWN_CHANGES = (AbstractLogEntry.Action.UPDATE, AbstractLogEntry.Action.ACCESS)
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
    changes = [
        (words.plain(part), old, new)
        for name, (before, after) in sorted((entry.changes or {}).items())
        for part, old, new in changed_parts(name, before, after)
    ]
    return {
        "at": entry.timestamp,
        "by": entry.actor_email or words.UNKNOWN,
        "note": (entry.additional_data or {}).get("note", ""),
        "address": entry.remote_addr or "",
        "action": ACTIONS[entry.action],
        "kind": organization_words.kind(entry.content_type.model),
        "subject": entry.object_repr,
        "changes": changes if entry.action in SHOWN_CHANGES else [],
    }


def changed_parts(name: str, before: str | None, after: str | None) -> Iterator[tuple[str, str, str]]:
    """What differs between two values of a field: of documents, the members that do.

    >>> list(changed_parts("terms", '{"a": 1, "b": [{"c": "x"}]}', '{"a": 1, "b": [{"c": "é"}], "d": null}'))
    [('terms.b.0.c', 'x', 'é')]
    >>> list(changed_parts("status", None, "issued"))
    [('status', '', 'issued')]
    """
    old, new = _leaves(name, before), _leaves(name, after)
    for part in dict.fromkeys((*old, *new)):
        if old.get(part, "") != new.get(part, ""):
            yield part, old.get(part, ""), new.get(part, "")


def _leaves(name: str, text: str | None) -> dict[str, str]:
    """The members of a document by their path; any other text is one by itself."""
    document: Any = text
    if text is not None and text[:1] in ("{", "["):
        with suppress(ValueError):
            document = json.loads(text)
    found: dict[str, str] = {}
    branches: list[tuple[str, Any]] = [(name, document)]
    while branches:
        path, value = branches.pop(0)
        if isinstance(value, dict | list):
            inside = value.items() if isinstance(value, dict) else enumerate(value)
            branches[:0] = [(f"{path}.{key}", item) for key, item in inside]
        else:
            found[path] = "" if value in (None, "None") else str(value)
    return found


def _rows(entry: AuditEntry) -> Iterator[list[Any]]:
    line = _line(entry)
    head = [line["at"].isoformat(), line["by"], line["note"], line["address"], entry.get_action_display()]
    for name, (before, after) in sorted((entry.changes or {"": (None, None)}).items()):
        for part, old, new in list(changed_parts(name, before, after)) or [(name, before, after)]:
            yield [*head, entry.content_type.model, entry.object_repr, part, old, new]
