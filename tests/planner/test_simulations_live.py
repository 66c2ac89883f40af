"""A simulation in parts on real workers, one killed at 30 % and the broker restarted empty: the same to the bit."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from catalog.services import load_catalog
from planner.models import Run, RunPart, RunStatus
from planner.services.run_kind import in_turn
from planner.services.runs import cancel_run, create_run
from planner.services.simulation_parts import serve_part
from planner.services.simulation_run import run_simulation
from tests.planner.live_processes import (
    LiveProcess,
    start_beat,
    start_worker,
    start_worker_that_never_merges,
    wait_for,
)
from tests.planner.real_servers import restartable_redis

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("live-jobs")]

PATIENCE_S = 240.0
"""The first simulation of an installation waits for the compiler."""
REGIONS = [{"name": name} for name in ("north", "east", "south", "west")]
PARAMS: dict[str, Any] = {
    "question": {
        "model": "Llama 3.1 8B",
        "requests_per_second": 5,
        "accelerators": ["h100-sxm"],
        "ttft_ms": 2000,
        "max_options": 1,
    },
    "traffic": {"requests_per_second": 20, "hours": 1.5},
    "scenario": {"replicas": 2, "node_failure_hours": 3, "repair_s": 600, "autoscaler": "hpa"},
    "regions": REGIONS,
}


CANCELLED: dict[str, Any] = PARAMS | {"traffic": {"requests_per_second": 20, "hours": 24}}
"""Longer than any machine needs to cancel it."""

_wait = partial(wait_for, patience_s=PATIENCE_S)


def _undisturbed() -> dict[str, Any]:
    return run_simulation(PARAMS, lambda share, message: None, in_turn(serve_part, PARAMS))


def test_a_worker_killed_at_30_percent_changes_not_a_bit(tmp_path: Path, processes: list[LiveProcess]) -> None:
    load_catalog()
    processes += [start_worker(tmp_path), start_worker(tmp_path), start_beat(tmp_path)]
    run = create_run(kind="simulation", params=PARAMS)
    _wait(run, lambda run: run.progress >= 0.3)
    processes[0].kill()
    _wait(run, lambda run: run.is_final)
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, None)
    assert run.result == _undisturbed()
    assert not RunPart.objects.exists()


def test_a_worker_killed_while_it_merges_costs_no_part(tmp_path: Path, processes: list[LiveProcess]) -> None:
    load_catalog()
    reached = tmp_path / "reached"
    processes += [start_worker_that_never_merges(tmp_path, reached), start_beat(tmp_path)]
    run = create_run(kind="simulation", params=PARAMS)
    _wait(run, lambda run: reached.exists())
    done = list(RunPart.objects.values_list("pk", "status", "attempts").order_by("pk"))
    assert [row[1:] for row in done] == [(RunStatus.SUCCEEDED, 1)] * len(REGIONS)
    processes[0].kill()
    redone: set[int] = set()

    def is_final(run: Run) -> bool:
        redone.update(RunPart.objects.exclude(status=RunStatus.SUCCEEDED).values_list("pk", flat=True))
        return bool(run.is_final)

    processes.append(start_worker(tmp_path))
    _wait(run, is_final)
    assert (run.status, run.error, run.attempts) == (RunStatus.SUCCEEDED, None, 2)
    assert not redone
    assert run.result == _undisturbed()
    assert not RunPart.objects.exists()


def test_both_workers_killed_cost_time_alone(tmp_path: Path, processes: list[LiveProcess]) -> None:
    load_catalog()
    processes += [start_worker(tmp_path), start_worker(tmp_path), start_beat(tmp_path)]
    run = create_run(kind="simulation", params=PARAMS)
    _wait(run, lambda run: run.progress >= 0.2)
    for process in processes[:2]:
        process.kill()
    processes += [start_worker(tmp_path), start_worker(tmp_path)]
    _wait(run, lambda run: run.is_final)
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, None)
    assert run.result == _undisturbed()


@pytest.mark.servers
def test_a_redis_restarted_mid_run_changes_not_a_bit(tmp_path: Path, processes: list[LiveProcess]) -> None:
    load_catalog()
    with restartable_redis() as server:
        run = create_run(kind="simulation", params=PARAMS)
        processes += [start_worker(tmp_path, broker_url=server.url) for _ in range(2)]
        _wait(run, lambda run: run.progress >= 0.3)
        server.restart()
        _wait(run, lambda run: run.is_final)
    assert (run.status, run.error, run.attempts) == (RunStatus.SUCCEEDED, None, 1)
    assert run.result == _undisturbed()


def test_many_cancels_at_once_are_one(tmp_path: Path, processes: list[LiveProcess]) -> None:
    """Eight at the same instant, of a run on two workers and of one that waits behind it."""
    load_catalog()
    processes += [start_worker(tmp_path), start_worker(tmp_path)]
    run = create_run(kind="simulation", params=CANCELLED)
    _wait(run, lambda run: run.progress >= 0.1)
    waiting = create_run(kind="simulation", params=CANCELLED)
    together = Barrier(8)

    def cancel(place: int) -> str:
        try:
            together.wait()
            return str(cancel_run(run=Run.objects.get(pk=(run, waiting)[place % 2].pk)).status)
        finally:
            connection.close()

    asked_s = time.monotonic()
    with ThreadPoolExecutor(8) as clients:
        told = set(clients.map(cancel, range(8)))
    assert told <= {RunStatus.RUNNING, RunStatus.CANCELLED}
    for each in (run, waiting):
        _wait(each, lambda run: run.is_final)
        assert (each.status, each.result, each.error) == (RunStatus.CANCELLED, None, None)
    assert time.monotonic() - asked_s < 2
    assert cancel_run(run=run).status == RunStatus.CANCELLED
    # Both workers are free for what comes next.
    following = create_run(kind="simulation", params=PARAMS | {"traffic": {"requests_per_second": 5, "hours": 0.1}})
    _wait(following, lambda run: run.is_final)
    assert following.status == RunStatus.SUCCEEDED


def test_a_simulation_on_two_workers_is_cancelled_in_two_seconds(tmp_path: Path, processes: list[LiveProcess]) -> None:
    load_catalog()
    processes += [start_worker(tmp_path), start_worker(tmp_path)]
    run = create_run(kind="simulation", params=CANCELLED)
    _wait(run, lambda run: run.progress >= 0.1)
    asked_s = time.monotonic()
    cancel_run(run=run)
    _wait(run, lambda run: run.is_final)
    assert run.status == RunStatus.CANCELLED
    assert time.monotonic() - asked_s < 2
    assert run.result is None


def test_a_large_fleet_is_cancelled_while_it_comes_up_and_frees_its_worker(
    tmp_path: Path, processes: list[LiveProcess]
) -> None:
    load_catalog()
    processes.append(start_worker(tmp_path))
    small = {"question": PARAMS["question"], "traffic": {"hours": 0.001}}
    _wait(create_run(kind="simulation", params=small), lambda run: run.is_final)
    run = create_run(kind="simulation", params=small | {"scenario": {"replicas": 100_000}})
    _wait(run, lambda run: run.message.startswith("0 requests"))
    asked_s = time.monotonic()
    cancel_run(run=run)
    _wait(run, lambda run: run.is_final)
    assert run.status == RunStatus.CANCELLED
    assert time.monotonic() - asked_s < 2
    after = _wait(create_run(kind="simulation", params=small), lambda run: run.is_final)
    assert (after.status, after.attempts) == (RunStatus.SUCCEEDED, 1)
