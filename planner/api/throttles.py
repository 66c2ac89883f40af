"""How often one client may call: by key, person or address, stated in ``RateLimit-*`` headers on every answer."""

from __future__ import annotations

import ipaddress
import math
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from planner.api.auth import caller
from planner.selectors.scope import Scope
from planner.services.tiers import tier_of

# One household or office usually holds a whole /64, so the single IPv6 address says little.
_IPV6_CLIENT_PREFIX = 64


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
        ident = caller(request) or client_network(self.get_ident(request))
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


def client_network(address: str) -> str:
    """What one client is taken to be: its IPv4 address, or the /64 its IPv6 address lies in.

    >>> client_network("192.0.2.7"), client_network("::ffff:192.0.2.7"), client_network("2001:db8::1:2")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_CLIENT_PREFIX), strict=False))
