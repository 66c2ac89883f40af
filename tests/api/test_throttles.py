"""How often a client may call, and what it is told about it."""

from __future__ import annotations

import pytest
from django.test import Client

from planner.api.throttles import PlanThrottle
from tests.api.conftest import INFERENCE, Post

pytestmark = pytest.mark.usefixtures("planner_answers")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time the throttle sees; three calls a minute are allowed."""
    now = [1000.0]
    monkeypatch.setattr(PlanThrottle, "rate", "3/min", raising=False)
    monkeypatch.setattr(PlanThrottle, "timer", lambda self: now[0])
    return now


def test_every_answer_states_what_is_left(post: Post, clock: list[float]) -> None:
    first = post("inference", INFERENCE)
    clock[0] += 20
    second = post("training", b"")
    told = [
        tuple(response.headers[f"RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset"))
        for response in (first, second)
    ]
    assert (first.status_code, second.status_code) == (200, 400)
    assert told == [("3", "2", "60"), ("3", "1", "40")]


def test_one_call_too_many_is_429_until_the_oldest_leaves_the_window(post: Post, clock: list[float]) -> None:
    for _ in range(3):
        assert post("inference", INFERENCE).status_code == 200
        clock[0] += 10
    refused = post("inference", INFERENCE)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "30"
    assert refused.headers["RateLimit-Remaining"] == "0"
    (error,) = refused.json()["errors"]
    assert (refused.json()["type"], error["code"]) == ("client_error", "throttled")
    assert error["allowed"] == "3 calls in 60 s of one caller"
    clock[0] += 30
    assert post("inference", INFERENCE).status_code == 200


def test_a_forged_forwarded_address_does_not_help(post: Post) -> None:
    statuses = [post("inference", INFERENCE, HTTP_X_FORWARDED_FOR=f"192.0.2.{n}").status_code for n in range(4)]
    assert statuses == [200, 200, 200, 429]


def test_clients_are_counted_apart_and_an_ipv6_network_as_one(post: Post) -> None:
    def calls(*addresses: str) -> list[int]:
        return [post("inference", INFERENCE, REMOTE_ADDR=address).status_code for address in addresses]

    assert calls("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.1", "192.0.2.2") == [200] * 5
    assert calls("192.0.2.1") == [429]
    assert calls("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4", "2001:db8:0:1::1") == [200] * 3 + [
        429,
        200,
    ]


def test_reading_the_document_is_not_counted_as_planning(client: Client, post: Post) -> None:
    for _ in range(3):
        post("inference", INFERENCE)
    assert client.get("/api/schema/").status_code == 200
    assert post("inference", INFERENCE).status_code == 429
