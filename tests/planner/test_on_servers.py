"""The same tests once more, on a real PostgreSQL and a real Redis."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from celery import current_app
from django.db import connection

from tests.planner.real_servers import postgresql, redis_server

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("tests/planner", "tests/catalog", "tests/api", "tests/isolation/test_nul.py")
# These ask how requests are read, thousands of times: nothing that a database could change.
LEFT_OUT = ("--ignore=tests/api/test_fuzz.py", "--ignore=tests/api/test_schemathesis.py")
TIMEOUT_S = 900


@pytest.mark.servers
@pytest.mark.xdist_group("servers")
def test_what_uses_the_database_passes_on_postgresql_and_redis() -> None:
    chosen = "not servers and not browser and not embedded"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, *SUITES, *LEFT_OUT]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with postgresql() as database_url, redis_server() as broker_url:
        environment |= {"DATABASE_URL": database_url, "CELERY_BROKER_URL": broker_url}
        environment["EXPECTED_BACKEND"] = "postgresql redis"
        returncode, output = _run(command, environment)
    assert returncode == 0, output[-8000:]
    assert re.search(r"\d{2,} passed", output.splitlines()[-1])


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            # Asked, not killed: it has workers of its own to end.
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(30)
    return process.returncode, output


@pytest.mark.django_db
def test_this_run_uses_the_database_and_broker_it_is_pointed_at() -> None:
    broker = urlsplit(current_app.conf.broker_url).scheme
    assert f"{connection.vendor} {broker}" == os.environ.get("EXPECTED_BACKEND", "sqlite filesystem")
