"""The compiler is for workers and commands: neither the engine's own modules nor the web process load it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENGINE = [f"planner.engine.{path.stem}" for path in sorted((ROOT / "planner" / "engine").glob("*.py"))]
PROGRAMS = {
    "engine": "import sys; import " + ", ".join(name for name in ENGINE if not name.endswith("__init__")),
    "web": "import sys, django; django.setup(); import planner.urls, planner.wsgi",
}


@pytest.mark.parametrize("process", PROGRAMS)
def test_the_compiler_stays_out(process: str) -> None:
    program = PROGRAMS[process] + "; print('numba' in sys.modules, 'planner.engine.units' in sys.modules)"
    environment = {"DJANGO_SETTINGS_MODULE": "planner.settings", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["False", "True"]
