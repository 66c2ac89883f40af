"""What tests of the planner's services share."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from planner.models import PriceBook, Role
from planner.services.price_book_inputs import PriceBookInput
from planner.services.price_books import create_price_book
from tests.planner.live_processes import LiveProcess
from tests.planner.organizations import Tenant


@pytest.fixture
def processes() -> Iterator[list[LiveProcess]]:
    """Processes that the test starts; whatever is still there is killed after it."""
    started: list[LiveProcess] = []
    yield started
    for process in started:
        process.kill()


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The deliveries that workers were told of."""
    told: list[int] = []
    monkeypatch.setattr("planner.services.webhooks.current_app.send_task", lambda name, args: told.append(args[0]))
    return told


@pytest.fixture
def book(acme: Tenant) -> PriceBook:
    return create_price_book(scope=acme.scope(Role.BUYER), values=PriceBookInput(name="Contract"))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """What names resolve to, one answer a look-up, the last one again and again; looked up in nothing else."""
    known: dict[str, list[list[str]]] = {}

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(-2, "Name or service not known")
        found = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in found]
        return [(family, socket.SOCK_STREAM, 6, "", (each, port)) for family, each in zip(families, found, strict=True)]

    monkeypatch.setattr("planner.services.outbound.socket.getaddrinfo", resolve)
    return known
