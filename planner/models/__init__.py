"""Tenant data, one file per aggregate."""

from planner.models.run import Run, RunStatus
from planner.models.user import User

__all__ = ["Run", "RunStatus", "User"]
