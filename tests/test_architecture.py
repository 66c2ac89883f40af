"""The engine stays a library: no framework comes in with it; and what documentation shows is run."""

from __future__ import annotations

import subprocess
import sys
import tomllib
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


def test_every_doctest_is_run() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    run = [ROOT / path for path in settings["testpaths"]]
    shown = [
        path
        for package in ("planner", "catalog", "frontend")
        for path in (ROOT / package).rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    ]
    assert len(shown) > 100
    assert [str(path.relative_to(ROOT)) for path in shown if not any(path.is_relative_to(each) for each in run)] == []
