"""Progress, results and failures of jobs, and stopping them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.utils import timezone

from planner.models import Run, RunStatus
from planner.services import run_progress
from planner.services.run_execution import claim_run, execute_run, finish_run
from planner.services.run_kinds import ReportProgress
from planner.services.run_progress import LeaseLost, RunCancelled, RunProgress
from planner.services.runs import cancel_run, create_run
from tests.planner.runs.kinds import AddKind, accept, expire

pytestmark = pytest.mark.django_db


class TestProgress:
    def _claimed(self, clock: Callable[[], float] = lambda: 0.0) -> tuple[Run, RunProgress]:
        run = create_run(kind="test", params={})
        token = claim_run(run_id=run.pk)
        assert token is not None
        return run, RunProgress(run_id=run.pk, lease_token=token, clock=clock)

    def test_is_written_four_times_a_second_at_most(self, kind: AddKind) -> None:
        now_s = 0.0
        run, report = self._claimed(lambda: now_s)
        seen = []
        for step in range(21):
            now_s = step * 0.05
            report(step / 20, f"step {step}")
            run.refresh_from_db()
            seen.append(run.message)
        assert sorted(set(seen), key=seen.index) == ["step 0", "step 5", "step 10", "step 15", "step 20"]
        assert run.progress == 1.0

    def test_renews_the_lease(self, kind: AddKind) -> None:
        run, report = self._claimed()
        expire(run)
        report(0.5, "half")
        run.refresh_from_db()
        assert run.lease_expires_at is not None
        assert run.lease_expires_at > timezone.now()

    def test_stays_a_share(self, kind: AddKind) -> None:
        run, report = self._claimed()
        report(7.0, "x" * 1000)
        run.refresh_from_db()
        assert (run.progress, len(run.message)) == (1.0, 200)

    def test_stops_a_worker_whose_run_was_taken_over(self, kind: AddKind) -> None:
        run, report = self._claimed()
        expire(run)
        taken_by = claim_run(run_id=run.pk)
        with pytest.raises(LeaseLost):
            report(0.9, "late")
        assert not finish_run(run_id=run.pk, lease_token=report.lease_token, status=RunStatus.SUCCEEDED, result={})
        run.refresh_from_db()
        assert (run.status, run.lease_token, run.progress) == (RunStatus.RUNNING, taken_by, 0.0)

    def test_stops_a_cancelled_run(self, kind: AddKind) -> None:
        run, report = self._claimed()
        cancel_run(run=run)
        with pytest.raises(RunCancelled):
            report(0.5, "")


class TestExecute:
    def test_stores_the_result(self, kind: AddKind) -> None:
        run = create_run(kind="test", params={"n": 3})
        execute_run(run_id=run.pk)
        run.refresh_from_db()
        assert run.status == RunStatus.SUCCEEDED
        assert run.result == {"catalog_version": "v1", "echo": {"n": 3}}
        assert (run.progress, run.catalog_version, run.attempts) == (1.0, "v1", 1)
        assert (run.lease_token, run.lease_expires_at, run.error) == (None, None, None)
        assert run.started_at is not None
        assert run.finished_at is not None
        assert run.is_final

    def test_does_nothing_twice(self, kind: AddKind) -> None:
        done = []
        kind(lambda params, report: done.append(1) or {})  # type: ignore[func-returns-value]
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        execute_run(run_id=run.pk)
        assert done == [1]

    def test_keeps_what_was_wrong_with_the_question(self, kind: AddKind) -> None:
        kind(lambda params, report: accept({"bad": 1}) or {})  # type: ignore[func-returns-value]
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run.refresh_from_db()
        assert run.status == RunStatus.FAILED
        assert (run.error or {})["errors"] == [
            {"attr": "bad", "code": "invalid", "detail": "Not allowed.", "value": 1, "allowed": None}
        ]

    def test_logs_a_fault_and_shows_none_of_it(self, kind: AddKind, caplog: pytest.LogCaptureFixture) -> None:
        def break_down(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
            raise RuntimeError("secret path /etc/passwd")

        kind(break_down)
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run.refresh_from_db()
        assert run.status == RunStatus.FAILED
        assert (run.error or {})["code"] == "internal_error"
        assert "secret" not in str(run.error)
        assert "secret path" in caplog.text

    def test_stops_at_the_next_report_after_a_cancel(self, kind: AddKind) -> None:
        steps = []

        def work(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
            cancel_run(run=Run.objects.get())
            for step in range(10):
                steps.append(step)
                report(step / 10, "")
            return {}

        kind(work)
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run.refresh_from_db()
        assert (run.status, run.result, steps) == (RunStatus.CANCELLED, None, [0])

    def test_leaves_a_run_that_was_taken_over_alone(self, kind: AddKind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run_progress, "PROGRESS_INTERVAL_S", 0.0)

        def work(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
            run = Run.objects.get()
            expire(run)
            claim_run(run_id=run.pk)
            report(0.5, "")
            raise AssertionError("the report must stop the work")

        kind(work)
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run.refresh_from_db()
        assert (run.status, run.attempts, run.error) == (RunStatus.RUNNING, 2, None)


@pytest.mark.usefixtures("kind")
class TestCancel:
    def test_a_queued_run_at_once(self) -> None:
        run = cancel_run(run=create_run(kind="test", params={}))
        assert run.status == RunStatus.CANCELLED
        assert run.finished_at is not None

    def test_a_running_one_by_asking(self) -> None:
        run = create_run(kind="test", params={})
        claim_run(run_id=run.pk)
        run = cancel_run(run=run)
        assert (run.status, run.cancel_requested) == (RunStatus.RUNNING, True)

    def test_one_whose_worker_is_gone_at_once(self) -> None:
        run = create_run(kind="test", params={})
        claim_run(run_id=run.pk)
        expire(run)
        assert cancel_run(run=run).status == RunStatus.CANCELLED

    def test_a_finished_one_never(self) -> None:
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run = cancel_run(run=run)
        assert (run.status, run.cancel_requested) == (RunStatus.SUCCEEDED, False)
