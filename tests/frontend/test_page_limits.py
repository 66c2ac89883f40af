"""How often one client may have the pages plan, and what it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError
from django.test import Client, override_settings

from planner.models import Role
from planner.services.page_limits import wait_s
from tests.frontend.conftest import QUESTION
from tests.planner.organizations import tenant_factory

pytestmark = pytest.mark.usefixtures("catalog", "planner_answers")
RATES = {
    "anonymous": {"page_plan": 3, "page_run": 1},
    "free": {"page_plan": 5, "page_run": 2},
    "team": {"page_plan": 9, "page_run": 4},
}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time that is counted by; it starts with a minute."""
    now = [60_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    cache.clear()
    with override_settings(PAGE_RATES=RATES):
        yield now
    cache.clear()


def test_one_plan_too_many_is_a_page_that_says_how_long_to_wait(client: Client, clock: list[float]) -> None:
    paths = [f"/?{QUESTION}", f"/answers/inference/?{QUESTION}", f"/plans/inference.csv?{QUESTION}"]
    assert [client.get(path).status_code for path in paths] == [200, 200, 200]
    refused = client.get(f"/training/?{QUESTION}")
    assert (refused.status_code, refused["Retry-After"]) == (429, "80")
    text = refused.content.decode()
    assert (
        "More than 3 plans were asked for within a minute from here. Nothing is lost: try again in 80 s."
        in " ".join(text.split())
    )
    assert "/training/?model=Llama+3.1+70B" in text
    # A refused call is not counted, so that who waits as told gets through.
    clock[0] += 80
    assert client.get(paths[0]).status_code == 200


def test_a_fragment_is_answered_with_one(client: Client) -> None:
    for _ in range(3):
        client.get(f"/answers/inference/?{QUESTION}")
    refused = client.get(f"/answers/inference/?{QUESTION}", headers={"hx-request": "true"})
    assert refused.status_code == 429
    assert refused.content.decode().startswith('<section class="panel problem" role="alert">')


def test_it_says_so_in_indonesian(client: Client) -> None:
    for _ in range(3):
        client.get(f"/?{QUESTION}")
    refused = client.get(f"/?{QUESTION}", headers={"accept-language": "id"})
    assert "Lebih dari 3 rencana diminta dari sini dalam satu menit." in refused.content.decode()


def test_jobs_are_counted_apart(client: Client) -> None:
    statuses = [client.post("/runs/sweeps/", {"question": "model=none"}).status_code for _ in range(2)]
    assert statuses == [400, 429]
    assert client.post("/simulations/new/", {"question": QUESTION}).status_code == 429
    assert client.get(f"/simulations/new/?{QUESTION}").status_code == 200
    assert client.get(f"/?{QUESTION}").status_code == 200


def test_networks_and_people_are_counted_apart_and_no_forged_address_helps(client: Client) -> None:
    def plans(times: int, **sent: Any) -> list[int]:
        return [client.get(f"/?{QUESTION}", **sent).status_code for _ in range(times)]

    assert plans(4, REMOTE_ADDR="192.0.2.1") == [200, 200, 200, 429]
    assert plans(1, REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR="192.0.2.9") == [429]
    assert plans(1, REMOTE_ADDR="192.0.2.2") == [200]
    client.force_login(tenant_factory().people[Role.VIEWER])
    assert plans(6, REMOTE_ADDR="192.0.2.1") == [200] * 5 + [429]


@override_settings(NUM_PROXIES=1)
def test_behind_a_proxy_the_client_it_saw_is_counted(client: Client) -> None:
    def plan(forwarded: str) -> int:
        return client.get(f"/?{QUESTION}", HTTP_X_FORWARDED_FOR=forwarded).status_code

    assert [plan(f"203.0.113.{n}, 192.0.2.1") for n in range(4)] == [200, 200, 200, 429]
    assert plan("192.0.2.1, 192.0.2.2") == 200


def test_a_cache_that_is_away_stops_no_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise DatabaseError("no such table")

    monkeypatch.setattr(type(cache._connections[cache._alias]), "get_many", away)  # type: ignore[attr-defined]
    assert [client.get(f"/?{QUESTION}").status_code for _ in range(5)] == [200] * 5


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.99])
@pytest.mark.parametrize(("last", "this"), [(0, 10), (30, 0), (10, 9), (25, 25), (3, 12)])
def test_who_waits_as_told_gets_through_and_hardly_later_than_needed(last: int, this: int, share: float) -> None:
    def after(seconds: float) -> int:
        at = share + seconds / 60
        return wait_s(last, this, at, 10) if at < 1 else wait_s(this, 0, at - 1, 10)

    wait = wait_s(last, this, share, 10)
    assert after(wait + 1e-6) == 0
    assert wait <= 1 or after(wait - 1.001) > 0
