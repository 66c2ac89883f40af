"""Starting, claiming, cancelling and rescuing jobs, one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import Run, RunStatus, User
from planner.selectors.runs import find_run, runs_of
from planner.services import run_progress
from planner.services.run_execution import claim_run, execute_run, finish_run
from planner.services.run_kinds import RUN_KINDS, ReportProgress, RunKind
from planner.services.run_progress import LeaseLost, RunCancelled, RunProgress
from planner.services.runs import cancel_run, create_run, delete_old_runs, resend_lost_runs

pytestmark = pytest.mark.django_db

Work = Callable[[Mapping[str, Any], ReportProgress], dict[str, Any]]
AddKind = Callable[[Work], None]


def _accept(params: Mapping[str, Any], owner: User | None = None) -> None:
    if "bad" in params:
        raise InvalidQuestion([FieldError(field="bad", value=params["bad"], message="Not allowed.")])


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> AddKind:
    """Gives the kind ``test`` the work it is called with."""

    def add(work: Work) -> None:
        monkeypatch.setitem(RUN_KINDS, "test", RunKind(check=_accept, execute=work))

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


def _expire(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.usefixtures("kind")
class TestCreate:
    def test_announces_the_run_after_the_commit(self, sent: list[int], django_capture_on_commit_callbacks: Any) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            run = create_run(kind="test", params={"n": 1})
            assert sent == []
        assert sent == [run.pk]
        run.refresh_from_db()
        assert (run.status, run.progress, run.params) == (RunStatus.QUEUED, 0.0, {"n": 1})
        assert run.sent_at is not None

    def test_names_an_unknown_kind_and_those_there_are(self) -> None:
        with pytest.raises(InvalidQuestion) as caught:
            create_run(kind="nonsense", params={})
        (fault,) = caught.value.errors
        assert (fault.field, fault.value) == ("kind", "nonsense")
        assert "test" in fault.allowed.split(", ")

    def test_stores_nothing_that_cannot_be_run(self) -> None:
        with pytest.raises(InvalidQuestion, match=r"bad: Not allowed\."):
            create_run(kind="test", params={"bad": 1})
        assert not Run.objects.exists()

    def test_survives_a_broker_that_is_away(
        self, monkeypatch: pytest.MonkeyPatch, sent: list[int], django_capture_on_commit_callbacks: Any
    ) -> None:
        def refuse(name: str, args: list[int]) -> None:
            raise OperationalError("connection refused")

        with monkeypatch.context() as away:
            away.setattr(current_app, "send_task", refuse)
            with django_capture_on_commit_callbacks(execute=True):
                run = create_run(kind="test", params={})
        run.refresh_from_db()
        assert (run.status, run.sent_at) == (RunStatus.QUEUED, None)
        assert resend_lost_runs() == 1
        assert sent == [run.pk]


@pytest.mark.usefixtures("kind")
class TestClaim:
    def test_is_had_once(self) -> None:
        run = create_run(kind="test", params={})
        assert claim_run(run_id=run.pk) is not None
        assert claim_run(run_id=run.pk) is None
        run.refresh_from_db()
        assert (run.status, run.attempts) == (RunStatus.RUNNING, 1)
        assert run.lease_expires_at is not None
        assert timedelta(seconds=25) < run.lease_expires_at - timezone.now() <= timedelta(seconds=30)

    def test_is_had_again_after_the_lease(self) -> None:
        run = create_run(kind="test", params={})
        first = claim_run(run_id=run.pk)
        _expire(run)
        second = claim_run(run_id=run.pk)
        assert second not in (None, first)
        run.refresh_from_db()
        assert (run.attempts, run.lease_token) == (2, second)

    def test_is_refused_for_a_cancelled_run(self) -> None:
        run = create_run(kind="test", params={})
        cancel_run(run=run)
        assert claim_run(run_id=run.pk) is None

    def test_of_a_run_that_is_not_there(self) -> None:
        assert claim_run(run_id=123_456) is None

    def test_a_running_row_has_a_lease(self) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            Run.objects.create(kind="test", status=RunStatus.RUNNING)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("kind")
def test_of_many_claims_at_once_exactly_one_wins() -> None:
    run_ids = [create_run(kind="test", params={}).pk for _ in range(10)]

    def claim_all(_: int) -> list[bool]:
        try:
            return [claim_run(run_id=run_id) is not None for run_id in run_ids]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(claim_all, range(8)))
    assert [sum(won) for won in zip(*outcomes, strict=True)] == [1] * len(run_ids)
    assert set(Run.objects.values_list("attempts", flat=True)) == {1}


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
        _expire(run)
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
        _expire(run)
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
        kind(lambda params, report: _accept({"bad": 1}) or {})  # type: ignore[func-returns-value]
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run.refresh_from_db()
        assert run.status == RunStatus.FAILED
        assert (run.error or {})["errors"] == [{"attr": "bad", "code": "invalid", "detail": "Not allowed."}]

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
            _expire(run)
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
        _expire(run)
        assert cancel_run(run=run).status == RunStatus.CANCELLED

    def test_a_finished_one_never(self) -> None:
        run = create_run(kind="test", params={})
        execute_run(run_id=run.pk)
        run = cancel_run(run=run)
        assert (run.status, run.cancel_requested) == (RunStatus.SUCCEEDED, False)


@pytest.mark.usefixtures("kind")
class TestResend:
    def test_announces_what_no_worker_holds(self, sent: list[int]) -> None:
        lost, held, unsent, fresh, done = (create_run(kind="test", params={}) for _ in range(5))
        for run in (lost, held):
            claim_run(run_id=run.pk)
        _expire(lost)
        Run.objects.filter(pk=fresh.pk).update(sent_at=timezone.now())
        execute_run(run_id=done.pk)
        assert resend_lost_runs() == 2
        assert sorted(sent) == sorted([lost.pk, unsent.pk])

    def test_a_starting_worker_asks_for_every_queued_run(self, sent: list[int]) -> None:
        fresh = create_run(kind="test", params={})
        Run.objects.filter(pk=fresh.pk).update(sent_at=timezone.now() - timedelta(seconds=1))
        assert resend_lost_runs() == 0
        assert resend_lost_runs(queued_for=timedelta(0)) == 1

    def test_gives_up_on_a_run_that_ends_its_workers(self, sent: list[int]) -> None:
        run = create_run(kind="test", params={})
        for _ in range(3):
            assert claim_run(run_id=run.pk) is not None
            _expire(run)
        assert claim_run(run_id=run.pk) is None
        assert resend_lost_runs() == 0
        run.refresh_from_db()
        assert (run.status, (run.error or {})["code"]) == (RunStatus.FAILED, "worker_lost")

    def test_ends_a_cancelled_run_whose_worker_is_gone(self, sent: list[int]) -> None:
        run = create_run(kind="test", params={})
        claim_run(run_id=run.pk)
        cancel_run(run=run)
        _expire(run)
        assert resend_lost_runs() == 0
        run.refresh_from_db()
        assert run.status == RunStatus.CANCELLED


@pytest.mark.usefixtures("kind")
def test_old_anonymous_runs_are_deleted_and_no_others() -> None:
    owner = User.objects.create_user("ann")
    old, owned, young = (create_run(kind="test", params={}, owner=who) for who in (None, owner, None))
    Run.objects.filter(pk__in=[old.pk, owned.pk]).update(created_at=timezone.now() - timedelta(days=31))
    assert delete_old_runs() == 1
    assert set(Run.objects.all()) == {owned, young}


@pytest.mark.usefixtures("kind")
def test_a_run_is_seen_by_its_owner_or_by_name_where_it_has_none() -> None:
    ann, bob = User.objects.create_user("ann"), User.objects.create_user("bob")
    owned = create_run(kind="test", params={}, owner=ann)
    anonymous = create_run(kind="test", params={})
    for user, sees_owned in ((ann, True), (bob, False), (AnonymousUser(), False)):
        assert find_run(uuid=owned.uuid, user=user) == (owned if sees_owned else None)
        assert find_run(uuid=anonymous.uuid, user=user) == anonymous
    assert find_run(uuid=uuid4(), user=ann) is None
    assert list(runs_of(user=ann)) == [owned]
