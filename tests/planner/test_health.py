"""GET /health/."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import OperationalError, ProgrammingError
from django.test import Client, override_settings
from django.utils import timezone
from redis.exceptions import RedisError

from catalog.models import CatalogVersion
from planner import health

DATABASE_CACHE = "django.core.cache.backends.db.DatabaseCache"
SECRET = "correct-horse-battery-staple"


@pytest.mark.django_db
def test_answers_200_when_the_database_holds_a_catalog(client: Client) -> None:
    CatalogVersion.objects.create(version="2026-11-01.abc", loaded_at=timezone.now())
    response = client.get("/health/")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "checks": {"database": "ok", "catalog": "2026-11-01.abc", "cache": "ok"}}
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


@pytest.fixture
def cache_in_the_database() -> Iterator[None]:
    """A cache table that isn't there."""
    with override_settings(CACHES={"default": {"BACKEND": DATABASE_CACHE, "LOCATION": "no_cache"}}):
        yield


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("cache_in_the_database")
def test_answers_503_without_a_cache_and_so_do_sign_up_and_api(client: Client) -> None:
    CatalogVersion.objects.create(version="2026-11-01.abc", loaded_at=timezone.now())
    client.raise_request_exception = False
    response = client.get("/health/")
    assert response.status_code == 503
    assert response.json()["checks"]["cache"] == "unreachable"
    signed_up = client.post("/accounts/signup/", {"email": "a@example.com", "password1": SECRET, "password2": SECRET})
    assert signed_up.status_code == 503
    assert "try again in a moment" in signed_up.content.decode()
    assert signed_up["Retry-After"] == "10"
    assert client.get("/api/schema/").status_code == 503


@pytest.mark.django_db
@pytest.mark.usefixtures("cache_in_the_database")
def test_whatever_migrates_makes_the_cache_table(client: Client) -> None:
    CatalogVersion.objects.create(version="2026-11-01.abc", loaded_at=timezone.now())
    call_command("migrate", verbosity=0)
    assert client.get("/health/").json()["checks"]["cache"] == "ok"
    signed_up = client.post("/accounts/signup/", {"email": "a@example.com", "password1": SECRET, "password2": SECRET})
    assert signed_up.status_code == 302


FAULTS = [
    RedisError("refused"),
    OperationalError("locked"),
    ProgrammingError("no table"),
    OSError(errno.ENOSPC, "full"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_that_reaches_nothing_answers_503_and_a_fault_of_the_code_500(
    client: Client, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    client.raise_request_exception = False
    for raised, status in ((fault, 503), (ValueError("a fault"), 500)):
        monkeypatch.setattr(health, "catalog_version", Mock(side_effect=raised))
        monkeypatch.setattr(health, "DatabaseError", ())
        assert client.get("/health/").status_code == status


@pytest.mark.django_db
def test_refuses_to_be_posted_to(client: Client) -> None:
    assert client.post("/health/").status_code == 405
