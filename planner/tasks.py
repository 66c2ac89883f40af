"""Celery entry points: each calls one service."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery import shared_task
from celery.signals import worker_ready

from planner.pool_watch import watch
from planner.services.compiled_simulator import compile_ahead
from planner.services.run_execution import help_with_run
from planner.services.run_parts import HELP_RUN_TASK
from planner.services.run_turns import execute_in_turn
from planner.services.runs import EXECUTE_RUN_TASK, delete_old_runs, resend_lost_runs
from planner.services.webhook_delivery import delete_old_deliveries, deliver, resend_due_deliveries
from planner.services.webhooks import DELIVER_TASK


@shared_task(name=EXECUTE_RUN_TASK)
def execute_run_task(run_id: int) -> None:
    """Run one job: this one, or the one whose turn it is."""
    execute_in_turn(run_id=run_id)


@shared_task(name=HELP_RUN_TASK)
def help_run_task(run_id: int) -> None:
    """Do parts of a job that another worker runs."""
    help_with_run(run_id=run_id)


@shared_task(name="planner.resend_lost_runs")
def resend_lost_runs_task() -> None:
    """Every few seconds: announce the runs that no worker holds."""
    resend_lost_runs()


@shared_task(name="planner.delete_old_runs")
def delete_old_runs_task() -> None:
    """Daily: delete anonymous runs whose time is over."""
    delete_old_runs()


@shared_task(name=DELIVER_TASK)
def deliver_webhook_task(delivery_id: int) -> None:
    """Make one attempt to deliver."""
    deliver(delivery_id=delivery_id)


@shared_task(name="planner.resend_due_webhooks")
def resend_due_webhooks_task() -> None:
    """Every few seconds: announce the deliveries whose time has come."""
    resend_due_deliveries()


@shared_task(name="planner.delete_old_deliveries")
def delete_old_deliveries_task() -> None:
    """Daily: drop the log of deliveries that ended long ago."""
    delete_old_deliveries()


@worker_ready.connect
def prepare_worker(sender: Any = None, **_: Any) -> None:
    """A worker that starts has the simulator compiled, and asks for everything that waits: messages may be lost."""
    watch(getattr(sender, "pool", None))
    compile_ahead()
    resend_lost_runs(queued_for=timedelta(0))
    resend_due_deliveries()
