"""Jobs in real worker processes, on whichever database and broker this test run is pointed at."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from celery import current_app

from catalog.services import load_catalog
from planner.models import Run, RunPart, RunStatus
from planner.pool_watch import EXIT_CODE
from planner.services.run_kinds import RUN_KINDS
from planner.services.runs import announce_run, cancel_run, create_run
from tests.planner.live_processes import LiveProcess, start_beat, start_worker, wait_for
from tests.planner.real_servers import restartable_redis
from tests.planner.slow_kind import SLOW_KIND, SLOW_PARTS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("live-jobs")]

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _slow_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUN_KINDS, "count_slowly", SLOW_KIND)
    monkeypatch.setitem(RUN_KINDS, "count_in_parts", SLOW_PARTS)


_wait = partial(wait_for, patience_s=PATIENCE_S)


@pytest.mark.usefixtures("worker")
class TestOneWorker:
    @pytest.fixture(scope="class")
    @classmethod
    def worker(cls, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        started = start_worker(tmp_path_factory.mktemp("worker"))
        yield
        started.kill()

    def test_runs_a_job_and_shows_its_progress(self) -> None:
        seen: list[tuple[str, float]] = []
        run = create_run(kind="count_slowly", params={"steps": 16, "pause_s": 0.1})
        _wait(run, lambda run: run.is_final, seen=seen)
        assert (run.status, run.progress, run.attempts) == (RunStatus.SUCCEEDED, 1.0, 1)
        assert (run.result or {})["steps"] == 16
        shares = [share for _status, share in seen]
        assert shares == sorted(shares)
        assert len({share for share in shares if 0 < share < 1}) >= 3
        assert [status for n, (status, _) in enumerate(seen) if n == 0 or status != seen[n - 1][0]] == [
            "queued",
            "running",
            "succeeded",
        ]

    def test_stops_a_cancelled_job(self) -> None:
        run = create_run(kind="count_slowly", params={"steps": 1000, "pause_s": 0.1})
        _wait(run, lambda run: run.progress > 0)
        asked_s = time.monotonic()
        cancel_run(run=run)
        _wait(run, lambda run: run.is_final)
        assert run.status == RunStatus.CANCELLED
        assert run.result is None
        assert time.monotonic() - asked_s < 5

    def test_sweeps_the_real_catalog(self) -> None:
        version = load_catalog().version
        question = {
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "requests_per_second": 2,
            "ttft_ms": 2000,
            "tpot_ms": 60,
        }
        run = create_run(kind="plan_sweep", params={"question": question, "points": 3})
        _wait(run, lambda run: run.is_final)
        assert (run.status, run.error, run.catalog_version) == (RunStatus.SUCCEEDED, None, version)
        points = (run.result or {})["points"]
        assert [point["load_factor"] for point in points] == [0.25, 1.41421, 8.0]
        assert all(point["best"]["gpus_used"] >= 1 for point in points)


def test_a_killed_workers_run_is_finished_by_another(tmp_path: Path, processes: list[LiveProcess]) -> None:
    first = start_worker(tmp_path)
    processes += [first, start_beat(tmp_path)]
    run = create_run(kind="count_slowly", params={"steps": 20, "pause_s": 0.1})
    _wait(run, lambda run: run.progress >= 0.25)
    lost_token = run.lease_token
    first.kill()
    processes.append(start_worker(tmp_path))
    _wait(run, lambda run: run.attempts == 2)
    assert run.lease_token != lost_token
    _wait(run, lambda run: run.is_final)
    assert (run.status, run.attempts, run.progress) == (RunStatus.SUCCEEDED, 2, 1.0)


def test_no_run_is_done_twice_by_workers_that_are_told_of_it_three_times(
    tmp_path: Path, processes: list[LiveProcess]
) -> None:
    processes += [start_worker(tmp_path, processes=2), start_worker(tmp_path, processes=2)]
    runs = [create_run(kind="count_slowly", params={"steps": 2, "pause_s": 0.05}) for _ in range(12)]
    for run in runs * 2:
        announce_run(run_id=run.pk)
    for run in runs:
        _wait(run, lambda run: run.is_final)
        assert (run.status, run.attempts) == (RunStatus.SUCCEEDED, 1)
    assert Run.objects.filter(attempts__gt=1).count() == 0


def test_jobs_go_on_after_a_waiting_process_of_a_worker_is_killed(tmp_path: Path, processes: list[LiveProcess]) -> None:
    """As the system does where memory runs out. On one pipe the dead process keeps the lock, so the worker ends."""
    worker = start_worker(tmp_path, processes=2)
    processes += [worker, start_beat(tmp_path)]
    _wait(create_run(kind="count_slowly", params={"steps": 1, "pause_s": 0.01}), lambda run: run.is_final)
    time.sleep(0.5)
    for pid in worker.children():
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while current_app.conf.broker_url.startswith("filesystem:") and worker.exit_code is None:
        assert time.monotonic() < deadline, "the worker waits for a lock that nobody holds"
        time.sleep(0.05)
    if worker.exit_code is not None:
        assert worker.exit_code == EXIT_CODE
        assert worker.children() == []
        processes.append(start_worker(tmp_path))
    run = create_run(kind="count_slowly", params={"steps": 1, "pause_s": 0.01})
    _wait(run, lambda run: run.is_final)
    assert run.status == RunStatus.SUCCEEDED


def test_a_killed_process_that_worked_leaves_its_worker_as_it_is(tmp_path: Path, processes: list[LiveProcess]) -> None:
    worker = start_worker(tmp_path, processes=1)
    processes += [worker, start_beat(tmp_path)]
    run = create_run(kind="count_slowly", params={"steps": 20, "pause_s": 0.1})
    _wait(run, lambda run: run.progress >= 0.1)
    (busy,) = worker.children()
    os.kill(busy, signal.SIGKILL)
    _wait(run, lambda run: run.is_final)
    assert (run.status, run.attempts) == (RunStatus.SUCCEEDED, 2)
    assert worker.exit_code is None


PARTS = {"parts": 6, "steps": 40, "pause_s": 0.1}
"""Longer than one worker may start after the other."""


def _held_by_two(run: Run) -> bool:
    return RunPart.objects.filter(run=run, status=RunStatus.RUNNING).count() == 2


def test_parts_are_shared_by_two_workers_and_one_may_be_killed(tmp_path: Path, processes: list[LiveProcess]) -> None:
    workers = [start_worker(tmp_path), start_worker(tmp_path)]
    processes += [*workers, start_beat(tmp_path)]
    run = create_run(kind="count_in_parts", params=PARTS)
    _wait(run, _held_by_two)
    workers[0].kill()
    _wait(run, lambda run: run.is_final)
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, None)
    assert (run.result or {})["parts"] == list(range(6))
    assert run.attempts <= 2
    assert not RunPart.objects.exists()


def test_a_cancelled_fan_out_frees_both_workers_in_two_seconds(tmp_path: Path, processes: list[LiveProcess]) -> None:
    # A call for help expires; one that starts late hears the next.
    processes += [start_worker(tmp_path), start_worker(tmp_path), start_beat(tmp_path)]
    run = create_run(kind="count_in_parts", params={"parts": 8, "steps": 400, "pause_s": 0.1})
    _wait(run, _held_by_two)
    asked_s = time.monotonic()
    cancel_run(run=run)
    _wait(run, lambda run: run.is_final)
    assert (run.status, time.monotonic() - asked_s < 2) == (RunStatus.CANCELLED, True)
    others = [create_run(kind="count_slowly", params={"steps": 20, "pause_s": 0.1}) for _ in range(2)]
    for other in others:
        _wait(other, lambda run: run.status == RunStatus.RUNNING)
    assert time.monotonic() - asked_s < 5
    assert {other.status for other in others} == {RunStatus.RUNNING}


@pytest.mark.servers
def test_a_redis_that_restarts_empty_costs_a_fan_out_nothing(tmp_path: Path, processes: list[LiveProcess]) -> None:
    with restartable_redis() as server:
        run = create_run(kind="count_in_parts", params=PARTS)
        processes += [start_worker(tmp_path, broker_url=server.url) for _ in range(2)]
        _wait(run, lambda run: run.progress >= 0.3)
        server.restart()
        _wait(run, lambda run: run.is_final)
        assert (run.status, run.attempts) == (RunStatus.SUCCEEDED, 1)
        assert (run.result or {})["parts"] == list(range(6))
        assert len((run.result or {})["pids"]) == 2
        later = create_run(kind="count_slowly", params={"steps": 1, "pause_s": 0.1})
        processes.append(start_worker(tmp_path, broker_url=server.url))
        assert _wait(later, lambda run: run.is_final).status == RunStatus.SUCCEEDED
