"""How often one client may call: by key, person or address, stated in ``RateLimit-*`` headers on every answer."""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from planner.api.auth import caller
from planner.selectors.scope import Scope
from planner.services.page_limits import client_address, client_network
from planner.services.tiers import tier_of


class ClientThrottle(SimpleRateThrottle):
    """A sliding window of calls of one caller; scope and tier name the rate in the settings."""

    num_requests: int | None
    duration: int | None
    tier: str = ""
    """The caller's; empty until the call is counted."""

    def allow_request(self, request: Request, view: Any) -> bool:
        self.tier = caller_tier(request)
        if getattr(type(self), "rate", None) is None:
            self.num_requests, self.duration = settings.API_RATES[self.tier][str(self.scope)], 60
        return bool(super().allow_request(request, view))

    def get_cache_key(self, request: Request, view: Any) -> str:
        ident = caller(request) or client_network(client_address(request))
        return self.cache_format % {"scope": self.scope, "ident": ident}

    def wait(self) -> int | None:
        """Whole seconds until the oldest call leaves the window: a client that waits this long gets through."""
        history: list[float] = getattr(self, "history", [])
        if not history or self.duration is None:
            return None
        return max(1, math.ceil(history[-1] + self.duration - self.timer()))

    def described(self) -> str:
        return f"{self.num_requests} calls in {self.duration} s of one caller"

    def headers(self) -> dict[str, str]:
        """``RateLimit-Limit``, ``-Remaining`` and ``-Reset`` (seconds until the next call leaves the window)."""
        if self.num_requests is None:
            return {}
        remaining = max(0, self.num_requests - len(getattr(self, "history", [])))
        return {
            **({"Takar-Tier": self.tier} if self.tier else {}),
            "RateLimit-Limit": str(self.num_requests),
            "RateLimit-Remaining": str(remaining),
            "RateLimit-Reset": str(self.wait() or 0),
        }


class PlanThrottle(ClientThrottle):
    """Plans: each computes for some hundred milliseconds."""

    scope = "plan"


class ReadThrottle(ClientThrottle):
    """Catalog pages and other cheap reads."""

    scope = "read"


class RunThrottle(ClientThrottle):
    """Jobs started: each keeps a worker busy."""

    scope = "run"


def caller_tier(request: Request) -> str:
    """The tier of the key's organization, or of the person."""
    if isinstance(request.auth, Scope):
        return request.auth.organization.tier
    return tier_of(request.user)
