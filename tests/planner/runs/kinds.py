"""A kind of job that tests give its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import Run, User
from planner.services.run_kinds import ReportProgress

Work = Callable[[Mapping[str, Any], ReportProgress], dict[str, Any]]
AddKind = Callable[[Work], None]


def expire(run: Run) -> None:
    """The lease of the run has run out."""
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def accept(params: Mapping[str, Any], owner: User | None = None) -> None:
    if "bad" in params:
        raise InvalidQuestion([FieldError(field="bad", value=params["bad"], message="Not allowed.")])
