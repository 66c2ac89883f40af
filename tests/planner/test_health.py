"""GET /health/."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from catalog.models import CatalogVersion
from planner import health


@pytest.mark.django_db
def test_answers_200_when_the_database_holds_a_catalog(client: Client) -> None:
    CatalogVersion.objects.create(version="2026-11-01.abc", loaded_at=timezone.now())
    response = client.get("/health/")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "checks": {"database": "ok", "catalog": "2026-11-01.abc"}}
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.django_db
def test_answers_503_while_no_catalog_is_loaded(client: Client) -> None:
    response = client.get("/health/")
    assert response.status_code == 503
    assert response.json() == {"status": "unavailable", "checks": {"database": "ok", "catalog": "not loaded"}}


def test_answers_503_when_the_database_does_not(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise OperationalError("connection refused")

    monkeypatch.setattr(health, "catalog_version", refuse)
    response = client.get("/health/")
    assert response.status_code == 503
    assert response.json() == {"status": "unavailable", "checks": {"database": "unreachable", "catalog": "unknown"}}


@pytest.mark.django_db
def test_refuses_to_be_posted_to(client: Client) -> None:
    assert client.post("/health/").status_code == 405
