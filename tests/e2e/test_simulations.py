"""A simulation in the browser: form, upload, cancel, progress across a reload, charts; no script or policy fault."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from planner.models import Run
from planner.services.run_execution import execute_run
from tests.e2e.conftest import OpenPage

# The site reads and writes in its own connection: the test's own rows must be committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.xdist_group("browser")]
TRACE = b"arrival_s,input_tokens,output_tokens\n" + b"".join(b"%d,200,20\n" % second for second in range(60))


def start(page: Page) -> Run:
    page.get_by_role("button", name="Start the simulation").click()
    page.wait_for_url("**/runs/*/")
    expect(page.locator("#run-status")).to_contain_text("Queued")
    return Run.objects.get(uuid=page.url.rstrip("/").rsplit("/", 1)[1])


def test_an_uploaded_trace_is_cancelled_then_simulated_and_drawn(open_page: OpenPage) -> None:
    page = open_page("/?model=Llama+3.1+8B&requests_per_second=4&accelerators=h100-sxm")
    page.get_by_role("link", name="Simulate").click()
    expect(page.locator("#field-traffic-requests_per_second")).to_have_value("4")
    page.set_input_files("#field-trace", {"name": "bad.csv", "mimeType": "text/csv", "buffer": TRACE + b"61,x,1\n"})
    page.get_by_role("button", name="Start the simulation").click()
    expect(page.get_by_role("alert")).to_contain_text("row 62, column input_tokens")
    page.set_input_files("#field-trace", {"name": "day.csv", "mimeType": "text/csv", "buffer": TRACE})
    start(page)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#run-status")).to_have_text("Cancelled")
    page.go_back()
    page.goto(page.url)
    page.get_by_role("link", name="Back to the question").click()
    page.get_by_role("link", name="Simulate").click()
    page.fill("#field-traffic-hours", "0.05")
    run = start(page)
    page.reload()
    expect(page.locator("#run-status")).to_contain_text("Queued")
    execute_run(run_id=run.pk)
    expect(page.locator("#run-status")).to_have_text("Succeeded")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(8)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename.startswith("takar-simulation-")
