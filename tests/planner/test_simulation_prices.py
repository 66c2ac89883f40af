"""Simulations and capacity searches with an organization's own prices and nodes, which may change meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from planner.models import PriceBook, Role, Run, RunStatus
from planner.selectors.scope import Scope
from planner.services import kept_plans
from planner.services.json_input import read_form
from planner.services.planning import plan_inference, prices_of
from planner.services.price_book_inputs import DiscountInput, PriceBookInput, PrivateInstanceTypeInput
from planner.services.price_books import add_entry, create_price_book, remove_entry, use_price_book
from planner.services.run_execution import execute_run
from planner.services.run_kind import Task
from planner.services.runs import create_run
from planner.services.served import pack
from planner.services.simulation_job import read_simulation
from planner.services.simulation_parts import serve_task, sites_of
from tests.planner.organizations import Tenant, tenant_factory

QUESTION: dict[str, Any] = {
    "model": "Llama 3.1 8B",
    "requests_per_second": 2,
    "ttft_ms": 2000,
    "tpot_ms": 100,
    "accelerators": ["h100-sxm"],
    "max_options": 1,
}
PARAMS: dict[str, Any] = {"question": QUESTION, "traffic": {"hours": 0.02}}
CELLAR = {"provider": "Our cellar", "name": "node", "accelerator": "h100-sxm", "region": "Jakarta", "country": "ID"}
OWN = CELLAR | {"amount": "0.50", "currency": "USD", "gpu_count": 1}


@pytest.fixture(autouse=True)
def no_kept_plans() -> Iterator[None]:
    kept_plans._kept.clear()
    yield
    kept_plans._kept.clear()


@pytest.fixture
def book(acme: Tenant) -> PriceBook:
    made: PriceBook = create_price_book(scope=acme.scope(), values=PriceBookInput(name="Contract"))
    return made


def discount(scope: Scope, book: PriceBook, percent: str) -> None:
    add_entry(scope=scope, book=book, values=DiscountInput(percent=Decimal(percent)))


def result_of(acme: Tenant, kind: str = "simulation", **more: Any) -> dict[str, Any]:
    run = create_run(kind=kind, params=PARAMS | more, owner=acme.people[Role.BUYER], scope=acme.scope(Role.BUYER))
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, None)
    assert run.result is not None
    return dict(run.result)


@pytest.mark.parametrize("kind", ["simulation", "capacity_search"])
def test_a_run_is_billed_at_the_books_prices_until_the_book_is_retired(
    kind: str, acme: Tenant, book: PriceBook
) -> None:
    discount(acme.scope(), book, "10")
    search = {"search": {"most_replicas": 4}} if kind == "capacity_search" else {}
    less = result_of(acme, kind, **search)
    use_price_book(scope=acme.scope(), book=None)
    listed = result_of(acme, kind, **search)
    assert float(less["cost_usd"]) == pytest.approx(0.9 * float(listed["cost_usd"]), abs=0.011)
    assert less["ttft_ms"] == listed["ttft_ms"]
    assert less["catalog_version"].startswith(f"{listed['catalog_version']}+{book.uuid}")


@pytest.mark.parametrize("kind", ["simulation", "capacity_search"])
def test_a_node_of_the_organizations_own_is_simulated(kind: str, acme: Tenant, book: PriceBook) -> None:
    add_entry(scope=acme.scope(), book=book, values=read_form(PrivateInstanceTypeInput, OWN))
    result = result_of(acme, kind)
    assert result["option"].startswith("Our cellar")
    assert float(result["cost_usd"]) == pytest.approx(0.5 * result["gpu_hours"], abs=0.011)


def tasks_of(acme: Tenant) -> tuple[Any, list[Task]]:
    """A job cut into parts by one worker."""
    job = read_simulation(PARAMS)
    with prices_of(acme.scope()):
        tasks = sites_of(job).tasks()
    return job, list(tasks)


def served_elsewhere(acme: Tenant, job: Any, task: Task) -> bytes:
    """The part in another process, which has planned nothing yet."""
    kept_plans._kept.clear()
    with prices_of(acme.scope()):
        return pack(serve_task(job, task, lambda share, message: None))


def test_a_book_changed_while_a_job_runs_changes_none_of_its_parts(acme: Tenant, book: PriceBook) -> None:
    job, (task,) = tasks_of(acme)
    before = served_elsewhere(acme, job, task)
    # Another provider is cheapest from now on: the option that is simulated stands further down.
    add_entry(scope=acme.scope(), book=book, values=read_form(PrivateInstanceTypeInput, OWN))
    assert served_elsewhere(acme, job, task) == before
    use_price_book(scope=acme.scope(), book=None)
    assert served_elsewhere(acme, job, task) == before


def test_a_node_withdrawn_while_a_job_runs_ends_it_and_says_so(acme: Tenant, book: PriceBook) -> None:
    own = add_entry(scope=acme.scope(), book=book, values=read_form(PrivateInstanceTypeInput, OWN))
    job, (task,) = tasks_of(acme)
    remove_entry(scope=acme.scope(), entry=own)
    with pytest.raises(Exception, match="prices have changed while this ran"):
        served_elsewhere(acme, job, task)
    result = result_of(acme)
    assert not result["option"].startswith("Our cellar")


def test_a_node_that_became_another_one_while_a_job_runs_ends_it(acme: Tenant, book: PriceBook) -> None:
    own = add_entry(scope=acme.scope(), book=book, values=read_form(PrivateInstanceTypeInput, OWN))
    job, (task,) = tasks_of(acme)
    remove_entry(scope=acme.scope(), entry=own)
    add_entry(scope=acme.scope(), book=book, values=read_form(PrivateInstanceTypeInput, OWN | {"gpu_count": 2}))
    with pytest.raises(Exception, match="prices have changed while this ran"):
        served_elsewhere(acme, job, task)


def test_every_run_stays_its_owners_where_two_organizations_ask_alike(acme: Tenant, book: PriceBook) -> None:
    discount(acme.scope(), book, "50")
    other = tenant_factory("Beta")
    costs = [float(result_of(tenant)["cost_usd"]) for tenant in (acme, other)]
    assert costs[0] == pytest.approx(costs[1] / 2, abs=0.011)
    assert Run.objects.filter(status=RunStatus.SUCCEEDED).count() == 2


def test_a_runs_hour_and_month_are_its_fleets(acme: Tenant) -> None:
    result = result_of(acme, scenario={"replicas": 3})
    plan = plan_inference(QUESTION).options[0]
    hour = Decimal(result["usd_per_hour"])
    assert hour == pytest.approx(3 * plan.price.usd_per_node_hour, rel=Decimal("1e-4"))
    assert Decimal(result["usd_per_month"]) == pytest.approx(hour * 730, rel=Decimal("1e-4"))
