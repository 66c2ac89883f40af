"""Tenant data, one file per aggregate."""

from planner.models.user import User

__all__ = ["User"]
