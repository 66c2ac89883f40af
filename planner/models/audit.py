"""The audit log: who changed or exported what, in which organization, when and from where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from auditlog.models import AbstractLogEntry, LogEntryManager
from django.db import models

from planner.models.organization import Organization


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """Who is at work, as far as is known."""

    user: models.Model | None = None
    address: str | None = None
    note: str = ""
    """Which API key, or which job."""


_ACTING: ContextVar[Acting | None] = ContextVar("acting", default=None)


@contextmanager
def acting(**known: Any) -> Iterator[None]:
    """Entries made inside name this ``user``, ``address`` and ``note``; what isn't given stays as it was."""
    token = _ACTING.set(replace(_ACTING.get() or Acting(), **known))
    try:
        yield
    finally:
        _ACTING.reset(token)


class AuditEntryManager(LogEntryManager):  # type: ignore[misc]  # auditlog has no types
    """Notes whose row it is and who is at work, whatever makes the entry."""

    def log_create(self, instance: models.Model, force_log: bool = False, **values: Any) -> AuditEntry | None:
        who = _ACTING.get() or Acting()
        is_organization = isinstance(instance, Organization)
        values.setdefault("organization_id", instance.pk if is_organization else vars(instance)["organization_id"])
        values.setdefault("actor", who.user)
        values.setdefault("actor_email", _known_as(who.user))
        values.setdefault("remote_addr", who.address)
        values.setdefault("additional_data", {"note": who.note} if who.note else None)
        entry: AuditEntry | None = super().log_create(instance, force_log, **values)
        return entry


class AuditEntry(AbstractLogEntry):  # type: ignore[misc]
    """One change or one export; written once, never changed."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")

    objects = AuditEntryManager()

    class Meta(AbstractLogEntry.Meta):  # type: ignore[misc]
        abstract = False
        ordering = ["-timestamp", "-id"]
        indexes = [models.Index(fields=["organization", "-timestamp"], name="audit_organization_time")]


def _known_as(user: models.Model | None) -> str | None:
    """What remains readable of an author who is deleted: an address, or a service account's name."""
    return getattr(user, "email", "") or getattr(user, "first_name", "") or None
