"""The web server's own log of requests."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from planner.logs import masked


class AccessLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """One line a request; the secrets in addresses are taken out."""

    def atoms(self, *args: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().atoms(*args)
        return {name: masked(value) if isinstance(value, str) else value for name, value in found.items()}
