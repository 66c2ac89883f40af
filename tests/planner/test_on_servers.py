"""The same tests once more, on a real PostgreSQL and a real Redis."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from celery import current_app
from django.db import connection

from tests.planner.real_servers import postgresql, redis_server

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("tests/planner", "tests/catalog", "tests/api")
TIMEOUT_S = 400


@pytest.mark.servers
@pytest.mark.xdist_group("servers")
def test_what_uses_the_database_passes_on_postgresql_and_redis() -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    chosen = "not servers and not browser and not embedded"
    with postgresql() as database_url, redis_server() as broker_url:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, *SUITES],
            cwd=ROOT,
            env=outside
            | {"DATABASE_URL": database_url, "CELERY_BROKER_URL": broker_url, "EXPECTED_BACKEND": "postgresql redis"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert re.search(r"\d{2,} passed", ran.stdout.splitlines()[-1])


@pytest.mark.django_db
def test_this_run_uses_the_database_and_broker_it_is_pointed_at() -> None:
    broker = urlsplit(current_app.conf.broker_url).scheme
    assert f"{connection.vendor} {broker}" == os.environ.get("EXPECTED_BACKEND", "sqlite filesystem")
