"""Starting jobs and claiming them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from planner.engine.errors import InvalidQuestion
from planner.models import Run, RunStatus
from planner.services.run_execution import claim_run
from planner.services.runs import cancel_run, create_run, resend_lost_runs
from tests.planner.runs.kinds import expire

pytestmark = pytest.mark.django_db


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
        expire(run)
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
