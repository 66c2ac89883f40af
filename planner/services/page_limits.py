"""How often one client may have the pages plan and start jobs: counted in the cache that all web processes share.

The API counts its own calls (``planner.api.throttles``), by the same notion of a client.
"""

from __future__ import annotations

import ipaddress
import math
import time

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError
from django.http import HttpRequest
from redis.exceptions import RedisError

from planner.services.tiers import tier_of

WINDOW_S = 60
# One household or office usually holds a whole /64, so the single IPv6 address says little.
_IPV6_CLIENT_PREFIX = 64
_log = structlog.get_logger(__name__)


def seconds_to_wait(request: HttpRequest, kind: str) -> int:
    """Count one call of ``kind`` and return 0; where the client's minute is used up, the seconds to wait, uncounted.

    A cache that can't be reached stops no page: the call is then let through.
    """
    most = most_a_minute(request, kind)
    name = f"page-calls:{kind}:{client_of(request)}"
    now = time.time()
    window, share = int(now // WINDOW_S), now % WINDOW_S / WINDOW_S
    this, last = f"{name}:{window}", f"{name}:{window - 1}"
    try:
        counts = cache.get_many([this, last])
        wait = wait_s(counts.get(last, 0), counts.get(this, 0), share, most)
        if not wait:
            cache.add(this, 0, 2 * WINDOW_S)
            cache.incr(this)
    except ValueError:
        # Evicted between the two calls.
        return 0
    except (DatabaseError, RedisError) as error:
        _log.warning("calls_not_counted", error=str(error))
        return 0
    return wait


def most_a_minute(request: HttpRequest, kind: str) -> int:
    """The limit of the visitor's tier."""
    most: int = settings.PAGE_RATES[tier_of(request.user)][kind]
    return most


def wait_s(last: int, this: int, share: float, most: int) -> int:
    """Seconds until one more call is within ``most`` a minute, given the calls of the last and of this whole minute.

    The calls of the last minute count by what is left of it in a window that ends now: after ``share`` of this
    minute, ``(1 - share) x last``.

    >>> wait_s(0, 9, 0.5, 10), wait_s(0, 10, 0.5, 10), wait_s(10, 5, 0.5, 10), wait_s(60, 0, 0.5, 20)
    (0, 36, 6, 11)
    """
    room = most - 1 - this
    if last * (1.0 - share) <= room:
        return 0
    # Within this minute where its own calls leave room, else in the next, of which this one is then the last.
    rest = 1.0 - share - room / last if room >= 0 and last else 2.0 - share - (most - 1) / max(this, 1)
    # A float that is a hair above a whole second asks for no further one.
    return max(1, math.ceil(rest * WINDOW_S - 1e-6))


def client_of(request: HttpRequest) -> str:
    """Who calls, for counting: the person signed in, else the network."""
    user = request.user
    return f"user-{user.pk}" if user.is_authenticated else client_network(client_address(request))


def client_address(request: HttpRequest) -> str:
    """The address the request came from: only entries of our own proxies are believed, for anyone can send others."""
    remote: str = request.META.get("REMOTE_ADDR", "")
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR")
    if not settings.NUM_PROXIES or not forwarded:
        return remote
    hops = forwarded.split(",")
    return str(hops[-min(settings.NUM_PROXIES, len(hops))]).strip()


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
