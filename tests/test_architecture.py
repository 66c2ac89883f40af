"""The engine stays a library: no framework comes in with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = {"django", "celery", "kombu", "redis", "rest_framework", "plotly"}


def test_importing_the_engine_imports_no_framework() -> None:
    modules = ", ".join(
        f"planner.engine.{path.stem}"
        for path in sorted((ROOT / "planner" / "engine").glob("*.py"))
        if path.stem != "__init__"
    )
    program = f"import sys, planner.engine, {modules}; print(*sorted(sys.modules), sep='\\n')"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "planner.engine.units" in loaded
    assert loaded.isdisjoint(FRAMEWORKS)


def test_the_package_above_the_engine_is_empty() -> None:
    assert (ROOT / "planner" / "__init__.py").read_text(encoding="utf-8") == ""
