"""Reading quotes: lists by status, and one."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from django.db.models import Q, QuerySet

from planner.models import EXPIRED, Quote, QuoteStatus, ShareLink
from planner.selectors.scope import Scope


def quotes(scope: Scope) -> QuerySet[Quote]:
    """The organization's quotes, the newest first."""
    scope.require("planner.view_quote")
    return scope.rows(Quote).select_related("created_by", "scenario_version__scenario")


def quote(scope: Scope, uuid: UUID) -> Quote:
    """One quote; raises ``NotFound``."""
    scope.require("planner.view_quote")
    return scope.get(Quote, uuid)


def links_to(scope: Scope, found: Quote) -> QuerySet[ShareLink]:
    """Links that were made to a quote; only for who may make them."""
    scope.require("planner.change_quote")
    return found.links.select_related("created_by")


def with_status(status: str, today: date) -> Q:
    """Keeps the quotes that people see with this status on that day."""
    late = Q(status=QuoteStatus.ISSUED, valid_until__lt=today)
    if status == EXPIRED:
        return late
    return Q(status=status) & ~late if status == QuoteStatus.ISSUED else Q(status=status)
