"""Jobs in parts, one process: what is kept when a worker is lost, what stops, what a part's fault does to its job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import Run, RunPart, RunStatus
from planner.services import run_parts
from planner.services.run_execution import claim_run, execute_run, help_with_run
from planner.services.run_kind import ExecutePart, Spread, SpreadKind, Task, in_turn
from planner.services.run_kinds import RUN_KINDS, ReportProgress
from planner.services.run_parts import PartSpread, claim_part, resend_lost_parts
from planner.services.run_progress import PROGRESS_INTERVAL_S, PartLost, PartProgress, RunCancelled
from planner.services.runs import cancel_run, create_run, delete_old_runs

pytestmark = pytest.mark.django_db

AddKind = Callable[[ExecutePart], None]
TASKS = [{"n": n} for n in range(4)]


@pytest.fixture(autouse=True)
def helped(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Calls for help: run and number of helpers."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(run_parts, "ask_for_help", lambda *, run_id, helpers: asked.append((run_id, helpers)))
    return asked


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> AddKind:
    """Gives the kind ``test`` the work of a part; a job has the tasks its parameters list."""

    def work(params: Mapping[str, Any], report: ReportProgress, spread: Spread) -> dict[str, Any]:
        first = spread(params.get("tasks", TASKS), lambda share, message: report(share / 2, message))
        second = spread([{"n": 9}], lambda share, message: report(0.5 + share / 2, message))
        return {"parts": [part.decode() for part in first + second]}

    def add(execute_part: ExecutePart) -> None:
        monkeypatch.setitem(
            RUN_KINDS, "test", SpreadKind(check=lambda params, owner: None, execute=work, execute_part=execute_part)
        )

    add(_named)
    return add


def _named(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
    return f"part {task['n']}".encode()


def _run(params: Mapping[str, Any] | None = None) -> Run:
    return create_run(kind="test", params=params or {})


def _claimed(**params: Any) -> Run:
    run = _run(params)
    claim_run(run_id=run.pk)
    run.refresh_from_db()
    return run


def _spread(run: Run, tasks: Sequence[Task] = TASKS) -> list[bytes]:
    return PartSpread(run=run, execute_part=_named)(tasks, lambda share, message: None)


def test_one_worker_does_all_parts_and_leaves_none_behind(kind: AddKind, helped: list[tuple[int, int]]) -> None:
    run = _run()
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, None)
    assert run.result == {"parts": ["part 0", "part 1", "part 2", "part 3", "part 9"]}
    assert not RunPart.objects.exists()
    assert helped == [(run.pk, 3), (run.pk, 0)]


def test_parts_done_before_a_worker_was_lost_are_used_again(kind: AddKind) -> None:
    run = _claimed()
    _spread(run)
    RunPart.objects.filter(run=run, number=2).update(status=RunStatus.QUEUED, result=None)
    RunPart.objects.filter(run=run, number=0).update(result=b"kept")
    done: list[int] = []

    def note(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        done.append(task["n"])
        return b"anew"

    again = PartSpread(run=run, execute_part=note)
    assert again(TASKS, lambda share, message: None) == [b"kept", b"part 1", b"anew", b"part 3"]
    assert done == [2]


def test_parts_of_another_plan_are_done_anew(kind: AddKind) -> None:
    run = _claimed()
    _spread(run)
    assert _spread(run, [{"n": 0}, {"n": 7}]) == [b"part 0", b"part 7"]
    assert RunPart.objects.filter(run=run).count() == 2


def test_the_results_are_the_same_in_one_process_without_a_database() -> None:
    shares: list[float] = []

    def half(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        report(0.5, "half")
        return _named(params, task, report)

    spread = in_turn(half, {})
    assert spread(TASKS, lambda share, message: shares.append(share)) == [b"part %d" % n for n in range(4)]
    assert shares == [0.125, 0.375, 0.625, 0.875]


def test_a_part_is_had_once_and_again_after_its_lease(kind: AddKind) -> None:
    run = _claimed()
    RunPart.objects.create(run=run, number=0, task={})
    first = claim_part(run_id=run.pk)
    assert first is not None
    assert claim_part(run_id=run.pk) is None
    RunPart.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    second = claim_part(run_id=run.pk)
    assert second is not None
    assert (second.pk, second.attempts) == (first.pk, 2)
    assert second.lease_token != first.lease_token


@pytest.mark.parametrize("state", [{"status": RunStatus.CANCELLED}, {"cancel_requested": True}])
def test_no_part_of_a_stopped_run_is_had(kind: AddKind, state: dict[str, Any]) -> None:
    run = _claimed()
    RunPart.objects.create(run=run, number=0, task={})
    Run.objects.filter(pk=run.pk).update(**state)
    assert claim_part(run_id=run.pk) is None


def test_a_helper_stops_with_the_run(kind: AddKind) -> None:
    run = _claimed()
    stopped: list[bool] = []

    def cancelled_meanwhile(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        cancel_run(run=run)
        try:
            report(0.5, "")
        except RunCancelled:
            stopped.append(True)
            raise
        return b""

    kind(cancelled_meanwhile)
    for n in range(2):
        RunPart.objects.create(run=run, number=n, task={"n": n})
    help_with_run(run_id=run.pk)
    assert stopped == [True]
    assert RunPart.objects.filter(result=None).count() == 2


def test_a_helper_does_what_is_left(kind: AddKind) -> None:
    run = _claimed()
    for n in range(3):
        RunPart.objects.create(run=run, number=n, task={"n": n})
    help_with_run(run_id=run.pk)
    assert [bytes(part.result or b"") for part in RunPart.objects.filter(run=run)] == [b"part 0", b"part 1", b"part 2"]


def test_a_part_that_was_taken_over_can_write_nothing(kind: AddKind) -> None:
    run = _claimed()
    RunPart.objects.create(run=run, number=0, task={})
    part = claim_part(run_id=run.pk)
    assert part is not None
    assert part.lease_token is not None
    times = iter([0.0, PROGRESS_INTERVAL_S + 0.01])
    report = PartProgress(part_id=part.pk, run_id=run.pk, lease_token=part.lease_token, clock=lambda: next(times))
    report(0.3)
    RunPart.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    claim_part(run_id=run.pk)
    with pytest.raises(PartLost):
        report(0.6)
    part.refresh_from_db()
    assert part.progress == 0.0


def test_a_fault_in_a_part_is_the_jobs(kind: AddKind) -> None:
    def refuse(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        if task["n"] == 2:
            raise InvalidQuestion([FieldError(field="trace", value=None, message="Row 7 is wrong.")])
        return b""

    kind(refuse)
    run = _run()
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED
    assert run.error is not None
    assert run.error["errors"][0]["attr"] == "trace"
    assert not RunPart.objects.exists()


def test_a_part_that_three_workers_did_not_survive_ends_the_run(kind: AddKind) -> None:
    run = _claimed()
    over = timezone.now() - timedelta(seconds=1)
    RunPart.objects.create(
        run=run, number=0, task={"n": 0}, status=RunStatus.RUNNING, lease_expires_at=over, attempts=3
    )
    Run.objects.filter(pk=run.pk).update(lease_expires_at=over)
    kind(_named)
    Run.objects.filter(pk=run.pk).update(params={"tasks": [{"n": 0}]})
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.status, (run.error or {}).get("code")) == (RunStatus.FAILED, "worker_lost")


def test_helpers_are_called_again_for_parts_nobody_holds(kind: AddKind, helped: list[tuple[int, int]]) -> None:
    run = _claimed()
    assert resend_lost_parts() == 0
    for n in range(3):
        RunPart.objects.create(run=run, number=n, task={"n": n})
    assert resend_lost_parts() == 1
    assert helped == [(run.pk, 1)]
    help_with_run(run_id=run.pk)
    assert resend_lost_parts() == 0


def test_parts_of_runs_that_ended_unheld_go_with_the_daily_round(kind: AddKind) -> None:
    ended, running = _claimed(), _claimed()
    for run in (ended, running):
        RunPart.objects.create(run=run, number=0, task={})
    Run.objects.filter(pk=ended.pk).update(status=RunStatus.CANCELLED)
    delete_old_runs()
    assert list(RunPart.objects.values_list("run_id", flat=True)) == [running.pk]


def test_progress_never_goes_back_when_a_part_is_lost(kind: AddKind) -> None:
    run = _claimed()
    told: list[float] = []
    messages: list[str] = []

    def watched(params: Mapping[str, Any], task: Task, report: ReportProgress) -> bytes:
        report(0.5, "half a part")
        RunPart.objects.filter(number=0).update(progress=0.0)
        return b""

    def hear(share: float, message: str) -> None:
        told.append(share)
        messages.append(message)

    PartSpread(run=run, execute_part=watched)(TASKS, hear)
    assert told == sorted(told)
    assert messages == [f"{done} of 4 parts done" for done in range(4)]
    assert told[0] == pytest.approx(0.125)
