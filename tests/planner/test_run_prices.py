"""Jobs plan with the prices of the organization they were started for, as long as their owner belongs to it."""

from __future__ import annotations

import pytest

from catalog.services import LoadReport
from planner.models import Membership, PriceBook, Role, Run, RunStatus
from planner.services.json_input import read_form
from planner.services.price_book_inputs import PriceBookInput, PrivateInstanceTypeInput
from planner.services.price_books import add_entry, create_price_book
from planner.services.run_execution import execute_run
from planner.services.runs import create_run
from tests.planner.organizations import Tenant, tenant_factory

QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 1}
CELLAR = {"provider": "Our cellar", "name": "node", "accelerator": "h100-sxm", "region": "Jakarta", "country": "ID"}


@pytest.fixture
def acme(catalog: LoadReport) -> Tenant:
    tenant = tenant_factory("Acme")
    book: PriceBook = create_price_book(scope=tenant.scope(), values=PriceBookInput(name="Contract"))
    own = read_form(PrivateInstanceTypeInput, CELLAR | {"amount": "0.01", "currency": "USD"})
    add_entry(scope=tenant.scope(), book=book, values=own)
    return tenant


def swept(run: Run) -> Run:
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    return run


def test_a_sweep_finds_the_organizations_own_nodes(acme: Tenant) -> None:
    params = {"question": QUESTION, "points": 2}
    own = create_run(kind="plan_sweep", params=params, owner=acme.people[Role.VIEWER], scope=acme.scope(Role.VIEWER))
    everyones = create_run(kind="plan_sweep", params=params, owner=acme.people[Role.VIEWER])
    results = [swept(run).result for run in (own, everyones)]
    assert results[0] is not None
    assert results[1] is not None
    assert {point["best"]["provider"] for point in results[0]["points"]} == {"Our cellar"}
    assert "Our cellar" not in {point["best"]["provider"] for point in results[1]["points"]}


def test_a_run_of_somebody_who_has_left_fails_and_says_so(acme: Tenant) -> None:
    viewer = acme.people[Role.VIEWER]
    params = {"question": QUESTION, "points": 2}
    run = create_run(kind="plan_sweep", params=params, owner=viewer, scope=acme.scope(Role.VIEWER))
    Membership.objects.get(user=viewer).delete()
    assert swept(run).status == RunStatus.FAILED
    assert run.error is not None
    assert run.error["code"] == "not_a_member"
