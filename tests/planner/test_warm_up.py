"""What the web server loads before it forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from catalog import selectors
from catalog.services import LoadReport
from planner.warm_up import warm_up

ROOT = Path(__file__).resolve().parents[2]


def test_reads_the_catalog(catalog: LoadReport, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr("planner.warm_up.catalog_snapshot", lambda: read.append(selectors.catalog_snapshot()))
    monkeypatch.setattr("planner.warm_up.connections", type("Kept", (), {"close_all": staticmethod(lambda: None)}))
    warm_up()
    assert [snapshot.version for snapshot in read] == [catalog.version]


@pytest.mark.embedded
def test_a_site_without_a_catalog_starts_all_the_same_and_shares_no_connection(tmp_path: Path) -> None:
    environment = os.environ | {"TAKAR_VAR_DIR": str(tmp_path), "DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3"}
    program = (
        "from planner.wsgi import application; from django.db import connection;"
        "print(type(application).__name__, connection.connection)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "WSGIHandler None\n"
