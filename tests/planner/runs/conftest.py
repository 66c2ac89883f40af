"""What tests of jobs in one process share."""

from __future__ import annotations

import pytest
from celery import current_app

from planner.services.run_kinds import RUN_KINDS, RunKind
from tests.planner.runs.kinds import AddKind, Work, accept


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> AddKind:
    """Gives the kind ``test`` the work it is called with."""

    def add(work: Work) -> None:
        monkeypatch.setitem(RUN_KINDS, "test", RunKind(check=accept, execute=work))

    add(lambda params, report: {"catalog_version": "v1", "echo": params})
    return add


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The run ids that were announced."""
    announced: list[int] = []

    def send_task(name: str, args: list[int]) -> None:
        assert name == "planner.execute_run"
        announced.extend(args)

    monkeypatch.setattr(current_app, "send_task", send_task)
    return announced
