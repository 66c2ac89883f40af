"""A long job in the browser: started from the answer, cancelled, started again, watched, its result drawn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from planner.models import Run
from planner.services.run_execution import execute_run
from tests.e2e.conftest import OpenPage

# The site reads and writes in its own connection: the test's own rows must be committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.xdist_group("browser")]


def start(page: Page) -> Run:
    page.get_by_role("button", name="Cost against load").click()
    page.wait_for_url("**/runs/*/")
    expect(page.locator("#run-status")).to_contain_text("Queued")
    return Run.objects.get(uuid=page.url.rstrip("/").rsplit("/", 1)[1])


def test_cost_against_load_is_cancelled_then_worked_and_drawn(open_page: OpenPage) -> None:
    page = open_page("/?model=Qwen3+8B&requests_per_second=4&accelerators=h100-sxm")
    start(page)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#run-status")).to_have_text("Cancelled")
    page.get_by_role("link", name="Back to the question").click()
    expect(page.locator("#field-model")).to_have_value("Qwen3 8B")
    execute_run(run_id=start(page).pk)
    expect(page.locator("#run-status")).to_have_text("Succeeded")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(3)
    assert page.locator("#plot-sweep-month .scatterlayer path.point").count() >= 10
    assert page.locator(".listing tbody tr").count() == 12
