"""The supervisor's rules, with small processes."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest
from honcho.printer import Printer

from planner import supervisor
from planner.supervisor import Supervisor


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setattr(supervisor, "RESTART_SECONDS", 0.05)
    monkeypatch.setattr(supervisor, "POLL_SECONDS", 0.02)
    return io.StringIO()


def _run(output: io.StringIO, **programs: str) -> Supervisor:
    supervised = Supervisor()
    supervised._printer = Printer(output, width=6)
    for name, program in programs.items():
        supervised.add_process(name, f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}")
    supervised.loop()
    return supervised


def test_gives_up_on_a_process_that_never_lives_long_and_stops_the_others(output: io.StringIO, tmp_path: Path) -> None:
    supervised = _run(output, broken="raise SystemExit(3)", fine="import time; time.sleep(60)")
    said = output.getvalue()
    assert supervised.returncode == 3
    assert said.count("ended (code 3); starting it again") == supervisor.MAX_SHORT_LIVES - 1
    assert "fine stopped (rc=-15)" in said


def test_relays_what_its_processes_print(output: io.StringIO) -> None:
    _run(output, talker="print('two\\nlines'); raise SystemExit(1)")
    assert "| two\n" in output.getvalue()
    assert "| lines\n" in output.getvalue()
