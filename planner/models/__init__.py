"""Tenant data, one file per aggregate."""

from planner.models.idempotency import IdempotencyKey
from planner.models.run import Run, RunStatus
from planner.models.user import User

__all__ = ["IdempotencyKey", "Run", "RunStatus", "User"]
