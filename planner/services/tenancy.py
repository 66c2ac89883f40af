"""What every write to an organization's rows shares: one transaction, and its author in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from django.db import transaction

from planner.models import Organization
from planner.models.audit import acting
from planner.selectors.scope import Scope

P = ParamSpec("P")
Result = TypeVar("Result")


class Conflict(Exception):
    """What is asked contradicts how things stand; ``message`` says why, ``allowed`` what would do."""

    def __init__(self, code: str, message: str, allowed: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.allowed = allowed


def tenant_write(service: Callable[P, Result]) -> Callable[P, Result]:
    """A service that takes ``scope``: runs in a transaction, its changes are logged as the scope's user's."""

    @wraps(service)
    def run(*args: P.args, **kwargs: P.kwargs) -> Result:
        scope = cast(Scope, kwargs["scope"])
        note = f"API key {scope.key.prefix}" if scope.key is not None else ""
        with transaction.atomic(), acting(user=scope.user, note=note):
            return service(*args, **kwargs)

    return run


def lock(organization: Organization) -> None:
    """Let whoever else locks the organization wait until this transaction ends.

    Rows that point at it can still be written: else a writer that holds one of its rows and adds another would wait
    for this transaction, and this one for that row. SQLite writers wait for each other anyhow.
    """
    Organization.objects.select_for_update(no_key=True).get(pk=organization.pk)
