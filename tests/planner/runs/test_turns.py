"""Callers take turns: one's many jobs don't keep the others' waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planner.models import Run, RunStatus
from planner.services import run_turns
from planner.services.run_execution import claim_run
from planner.services.run_kinds import ReportProgress
from planner.services.run_turns import execute_in_turn, next_in_turn
from planner.services.runs import cancel_run, create_run
from planner.tasks import execute_run_task
from tests.planner.organizations import user_factory
from tests.planner.runs.kinds import AddKind, expire

pytestmark = pytest.mark.django_db


@pytest.fixture
def done(kind: AddKind) -> list[str]:
    """The names of the runs that were worked on, in that order."""
    names: list[str] = []

    def work(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
        names.append(params["name"])
        return {}

    kind(work)
    return names


def test_each_caller_has_one_job_after_another(done: list[str], sent: list[int]) -> None:
    ana, budi = user_factory("ana"), user_factory("budi")
    callers = [None] * 5 + [ana, ana, budi]
    for name, owner in zip(("x1", "x2", "x3", "x4", "x5", "a1", "a2", "b1"), callers, strict=True):
        create_run(kind="test", params={"name": name}, owner=owner)
    messages = [run.pk for run in Run.objects.order_by("pk")]
    for run_id in messages:
        execute_run_task(run_id)
    assert done == ["x1", "a1", "b1", "x2", "a2", "x3", "x4", "x5"]
    assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.SUCCEEDED}
    for run_id in messages:
        execute_run_task(run_id)
    assert len(done) == 8


def test_a_message_about_a_run_that_waits_no_more_takes_another(done: list[str]) -> None:
    cancelled = create_run(kind="test", params={"name": "cancelled"})
    create_run(kind="test", params={"name": "waits"})
    cancel_run(run=cancelled)
    execute_in_turn(run_id=cancelled.pk)
    execute_in_turn(run_id=cancelled.pk)
    assert done == ["waits"]


def test_a_lost_run_is_taken_up_by_the_message_about_it(done: list[str]) -> None:
    lost = create_run(kind="test", params={"name": "lost"})
    create_run(kind="test", params={"name": "waits"})
    claim_run(run_id=lost.pk)
    expire(lost)
    execute_in_turn(run_id=lost.pk)
    assert done == ["lost"]


def test_where_another_worker_was_first_the_next_in_turn_is_taken(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (create_run(kind="test", params={"name": name}) for name in ("first", "second"))

    def beaten() -> int | None:
        chosen = next_in_turn()
        if chosen == first.pk:
            claim_run(run_id=first.pk)
        return chosen

    monkeypatch.setattr(run_turns, "next_in_turn", beaten)
    execute_in_turn(run_id=second.pk)
    assert done == ["second"]


def test_nothing_waits_is_nobodys_turn(db: None) -> None:
    assert next_in_turn() is None
