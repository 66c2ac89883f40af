"""Jobs that nobody holds are announced again; old ones go; who sees which."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from planner.models import Run, RunStatus, User
from planner.selectors.runs import find_run, runs_of
from planner.services.run_execution import claim_run, execute_run
from planner.services.runs import cancel_run, create_run, delete_old_runs, resend_lost_runs
from tests.planner.runs.kinds import expire

pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("kind")
class TestResend:
    def test_announces_what_no_worker_holds(self, sent: list[int]) -> None:
        lost, held, unsent, fresh, done = (create_run(kind="test", params={}) for _ in range(5))
        for run in (lost, held):
            claim_run(run_id=run.pk)
        expire(lost)
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
            expire(run)
        assert claim_run(run_id=run.pk) is None
        assert resend_lost_runs() == 0
        run.refresh_from_db()
        assert (run.status, (run.error or {})["code"]) == (RunStatus.FAILED, "worker_lost")

    def test_ends_a_cancelled_run_whose_worker_is_gone(self, sent: list[int]) -> None:
        run = create_run(kind="test", params={})
        claim_run(run_id=run.pk)
        cancel_run(run=run)
        expire(run)
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
