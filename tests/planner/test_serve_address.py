"""A mistyped address of ``manage.py serve`` is refused in words, before anything is prepared or started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ({"PORT": "abc"}, "'abc' is not a port: a whole number from 1 to 65535"),
        ({"PORT": "80000"}, "'80000' is not a port"),
        ({"PORT": "0"}, "'0' is not a port"),
        ({"PORT": "-1"}, "'-1' is not a port"),
        ({"HOST": "no-such-host.invalid"}, "HOST is an address of this machine"),
        ({"HOST": "192.0.2.1"}, "HOST is an address of this machine"),
    ],
)
def test_a_mistyped_address_is_refused_in_words(tmp_path: Path, address: dict[str, str], message: str) -> None:
    environment = os.environ | {"TAKAR_VAR_DIR": str(tmp_path / "var")} | address
    command = [sys.executable, "manage.py", "serve"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode in (1, 2)
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "var" / "db.sqlite3").exists()
