"""Waiting for the simulator to be compiled: told, cancelled, and never done twice at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from planner.management.commands import compile_simulator
from planner.services import compiled_simulator
from planner.services.compiled_simulator import COMPILING, compile_ahead, compiling_alone, is_compiled, set_compiled
from planner.services.run_progress import RunCancelled


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    return tmp_path


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"]) as process:
        monkeypatch.setattr(compiled_simulator, "_start_compiler", lambda niceness: process)
        yield process


@pytest.mark.usefixtures("compiler")
def test_a_job_says_that_it_waits_for_the_compiler() -> None:
    told: list[tuple[float, str]] = []
    compiled_simulator.wait_until_compiled(lambda *report: told.append(report))
    assert set(told) == {(0.0, COMPILING)}
    assert len(told) >= 2


def test_a_cancellation_ends_the_wait_and_not_the_compiler(compiler: subprocess.Popen[bytes]) -> None:
    def report(share: float, message: str) -> None:
        raise RunCancelled

    with pytest.raises(RunCancelled):
        compiled_simulator.wait_until_compiled(report)
    assert compiler.poll() is None


def test_nobody_waits_for_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with compiling_alone():
        set_compiled()
    assert is_compiled()
    monkeypatch.setattr(compiled_simulator, "_start_compiler", None)
    compiled_simulator.wait_until_compiled(lambda *report: pytest.fail("told"))
    compile_ahead()


def test_sources_of_another_date_are_compiled_again(settings: Any, tmp_path: Path) -> None:
    engine = tmp_path / "planner" / "engine" / "simulate"
    engine.mkdir(parents=True)
    (engine / "kernel.py").write_text("a = 1\n", encoding="utf-8")
    settings.BASE_DIR = tmp_path
    with compiling_alone():
        set_compiled()
    assert is_compiled()
    os.utime(engine / "kernel.py", (1, 1))
    assert not is_compiled()


def test_the_command_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(compile_simulator, "warm_up", lambda: done.append("serving"))
    monkeypatch.setattr(compile_simulator, "_compile_what_only_failures_call", lambda: done.append("failing"))
    for _ in range(2):
        call_command("compile_simulator")
    assert done == ["serving", "failing"]
    assert is_compiled()


def test_a_worker_that_starts_has_it_compiled_behind_its_back(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    started: list[int] = []
    monkeypatch.setattr(compiled_simulator, "_start_compiler", started.append)
    settings.COMPILE_AHEAD = False
    compile_ahead()
    assert started == []
    settings.COMPILE_AHEAD = True
    compile_ahead()
    assert started == [compiled_simulator.NICENESS]
