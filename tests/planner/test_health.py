"""GET /health/."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError
from django.test import Client

from planner import health


@pytest.mark.django_db
def test_answers_200_when_the_database_answers(client: Client) -> None:
    response = client.get("/health/")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "checks": {"database": "ok"}}
    assert "no-store" in response.headers["Cache-Control"]


def test_answers_503_when_the_database_does_not(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreachable:
        @contextmanager
        def cursor(self) -> Iterator[None]:
            raise OperationalError("connection refused")
            yield

    monkeypatch.setattr(health, "connection", Unreachable())
    response = client.get("/health/")
    assert response.status_code == 503
    assert response.json() == {"status": "unavailable", "checks": {"database": "unreachable"}}


@pytest.mark.django_db
def test_refuses_to_be_posted_to(client: Client) -> None:
    assert client.post("/health/").status_code == 405
