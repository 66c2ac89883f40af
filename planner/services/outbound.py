"""Calling addresses that users name, without becoming their way into the network that this server stands in.

A name is resolved once, every address it has must be a public one, and the connection goes to that very address: a
name that resolves differently a moment later leads nowhere else. Redirects are not followed, no proxy is used, the
whole call has one deadline, and nothing of the answer but its status is kept.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Timer
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from planner.engine.sentences import say

DEADLINE_S: Final = 10.0
MOST_ADDRESSES: Final = 3
LOWEST_FREE_PORT: Final = 1024
HTTPS_PORT: Final = 443
URL_LENGTH: Final = 500
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "100::/64", "2001::/23", "3fff::/20", "5f00::/16"),
    )
)
"""Special purposes by IANA's registries that not every ``ipaddress`` of Python 3.11 knows."""
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(ValueError):
    """The address is none that may be called; ``code`` and the message say why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a call."""

    status: int | None
    """Of the answer; None: there was none."""
    error: str
    """A code; empty where the answer was 2xx."""
    detail: str
    milliseconds: int
    retry_after_s: int | None = None

    @property
    def is_success(self) -> bool:
        return not self.error


def checked_url(url: str) -> SplitResult:
    """The parts of a usable address; raises ``Refused``.

    >>> checked_url("https://erp.example.com/hook?x=1").hostname
    'erp.example.com'
    >>> checked_url("https://user:secret@erp.example.com/")
    Traceback (most recent call last):
    planner.services.outbound.Refused: No user or password in the address.
    """
    if len(url) > URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url:
        raise Refused("url", say("Up to {most:,} printable ASCII characters without spaces.", most=URL_LENGTH))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused("url", str(error)) from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise Refused("url", say("Must begin with https:// and name a host."))
    if parts.username is not None or parts.password is not None:
        raise Refused("url", say("No user or password in the address."))
    if parts.fragment:
        raise Refused("url", say("No fragment in the address."))
    literal = _literal(parts.hostname)
    if literal is not None and not may_be_called(literal):
        raise Refused("address", say("{address} is no public address.", address=literal))
    is_own = settings.WEBHOOK_ALLOWED_NETWORKS and (literal is None or _is_listed(literal))
    if not is_own:
        if parts.scheme != "https":
            raise Refused("url", say("Must begin with https://."))
        if port is not None and port != HTTPS_PORT and port < LOWEST_FREE_PORT:
            raise Refused(
                "url", say("The port must be {https}, or {least} and above.", https=HTTPS_PORT, least=LOWEST_FREE_PORT)
            )
    return parts


def may_be_called(address: IpAddress) -> bool:
    """Whether an address is a public one, or in a network that the operator has listed.

    >>> [may_be_called(ipaddress.ip_address(text)) for text in ("93.184.215.14", "10.0.0.1", "::ffff:127.0.0.1")]
    [True, False, False]
    """
    return _is_listed(address) or _is_public(address)


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
    """Send ``body`` to ``url``; whatever goes wrong is in the outcome, nothing is raised."""
    start = time.monotonic()
    status, error, detail, retry_after = None, "", "", None
    try:
        status, retry_after = _post(checked_url(url), body, headers, start + DEADLINE_S)
        if 300 <= status < 400:
            error, detail = "redirect", "Redirects are not followed."
        elif not 200 <= status < 300:
            error = "status"
    except Refused as refused:
        error, detail = refused.code, str(refused)
    except TimeoutError:
        error = "timeout"
    except ssl.SSLError as fault:
        error, detail = "tls", fault.reason or ""
    except socket.gaierror:
        error = "name"
    except (OSError, http.client.HTTPException, ValueError) as fault:
        late = time.monotonic() - start >= DEADLINE_S
        error, detail = ("timeout", "") if late else ("connection", type(fault).__name__)
    taken_ms = round((time.monotonic() - start) * 1000)
    return Outcome(status=status, error=error, detail=detail[:200], milliseconds=taken_ms, retry_after_s=retry_after)


def _post(parts: SplitResult, body: bytes, headers: Mapping[str, str], deadline: float) -> tuple[int, int | None]:
    host = parts.hostname or ""
    is_tls = parts.scheme == "https"
    connected = _connect(host, parts.port or (443 if is_tls else 80), is_tls, deadline)
    # Every wait on the socket has a limit of its own; an answer in drops would pass them all.
    watch = Timer(max(deadline - time.monotonic(), 0.0), _cut, [connected])
    watch.start()
    try:
        connection = (
            http.client.HTTPSConnection(host, parts.port, context=_tls())
            if is_tls
            else http.client.HTTPConnection(host, parts.port)
        )
        # With a socket already there, the connection looks up nothing.
        connection.sock = connected
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        connection.request("POST", target, body=body, headers={**headers, "Connection": "close"})
        answer = connection.getresponse()
        return answer.status, _seconds(answer.getheader("Retry-After"))
    finally:
        watch.cancel()
        connected.close()


def _connect(host: str, port: int, is_tls: bool, deadline: float) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    for *_, place in found:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        if not may_be_called(address):
            # Which one is not said: that would tell how names resolve inside.
            raise Refused("address", say("{host} leads to an address that is not public.", host=host))
        if not is_tls and not _is_listed(address):
            raise Refused("url", say("Must begin with https://."))
    fault: OSError = TimeoutError()
    for family, kind, protocol, _, place in found[:MOST_ADDRESSES]:
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(max(deadline - time.monotonic(), 0.001))
            connected.connect(place)
            return _tls().wrap_socket(connected, server_hostname=host) if is_tls else connected
        except OSError as error:
            connected.close()
            fault = error
    raise fault


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # The plain one: that of a TLS socket would take its state from under the reading thread.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _literal(host: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_listed(address: IpAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return _is_listed(address.ipv4_mapped)
    return any(
        address in ipaddress.ip_network(listed, strict=False)
        for listed in settings.WEBHOOK_ALLOWED_NETWORKS
        if (":" in listed) == (address.version == 6)
    )


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is not None:
            return _is_public(inside)
        if address.is_site_local:
            return False
    if any(address in network for network in _SPECIAL if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _seconds(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 7 else None
