"""Simulations in the browser: upload, progress that moves, a reload, cancel, charts; the smallest fleet.

The worker is a thread of this test, so that it can be held back enough to be watched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from django.db import connection
from playwright.sync_api import Page, expect

from catalog.services import load_catalog
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.traffic import in_batches
from planner.models import Run
from planner.services import traffic_slices
from planner.services.run_execution import execute_run
from tests.e2e.conftest import OpenPage

# The site reads and writes in its own connection: the test's own rows must be committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.xdist_group("browser")]
TRACE = b"arrival_s,input_tokens,output_tokens\n" + b"".join(b"%d,200,20\n" % second for second in range(3000))
PROGRESS = "() => document.querySelector('#run progress')?.value ?? -1"


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """The first run of a new installation waits for the compiler; here a run is watched."""
    call_command("compile_simulator")


@pytest.fixture(autouse=True)
def _catalog(site: str, transactional_db: None) -> None:
    """Each test's end empties the database, the catalog too."""
    load_catalog()


def start(page: Page, button: str = "Start the simulation") -> Run:
    page.get_by_role("button", name=button).click()
    page.wait_for_url("**/runs/*/*")
    expect(page.locator("#run-status")).to_contain_text("Queued")
    return Run.objects.get(uuid=page.url.split("/runs/")[1].split("/")[0])


@pytest.fixture
def work() -> Iterator[Callable[[Run], threading.Thread]]:
    """Starts a worker on a run; all of them must be free again at the end."""
    workers: list[threading.Thread] = []

    def begin(run: Run) -> threading.Thread:
        def execute() -> None:
            try:
                execute_run(run_id=run.pk)
            finally:
                connection.close()

        worker = threading.Thread(target=execute)
        worker.start()
        workers.append(worker)
        return worker

    yield begin
    for worker in workers:
        worker.join(20)
        assert not worker.is_alive()


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that takes some seconds."""

    def held_back(traffic: Traffic, _size: int) -> Iterator[Traffic]:
        for each in in_batches(traffic, 100):
            time.sleep(0.15)
            yield each

    monkeypatch.setattr(traffic_slices, "in_batches", held_back)


def is_done(page: Page, share: float) -> None:
    page.wait_for_function(f"() => ({PROGRESS})() > {share}")


@pytest.mark.usefixtures("slowly")
def test_an_uploaded_trace_is_watched_reloaded_and_cancelled(
    open_page: OpenPage, work: Callable[[Run], threading.Thread]
) -> None:
    page = open_page("/?model=Llama+3.1+8B&requests_per_second=4&accelerators=h100-sxm")
    page.get_by_role("link", name="Simulate").click()
    expect(page.locator("#field-traffic-requests_per_second")).to_have_value("4")
    page.set_input_files("#field-trace", {"name": "bad.csv", "mimeType": "text/csv", "buffer": TRACE + b"3001,x,1\n"})
    page.get_by_role("button", name="Start the simulation").click()
    expect(page.get_by_role("alert")).to_contain_text("row 3,002, column input_tokens")
    page.set_input_files("#field-trace", {"name": "day.csv", "mimeType": "text/csv", "buffer": TRACE})
    run = start(page)
    worker = work(run)
    is_done(page, 0.1)
    before = page.evaluate(PROGRESS)
    is_done(page, before)
    expect(page.locator("#run-status")).to_contain_text("requests")
    expect(page.locator("#run dl")).to_contain_text("Left, at this pace")
    page.reload()
    expect(page.locator("#run-status")).to_contain_text("Running")
    is_done(page, before)
    asked_s = time.monotonic()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#run-status")).to_have_text("Cancelled")
    worker.join(5)
    assert time.monotonic() - asked_s < 5
    page.get_by_role("link", name="Change and run again").click()
    expect(page.get_by_label("Use the trace of the run before again")).to_be_checked()
    again = start(page)
    assert again.params["trace"] == run.params["trace"]
    work(again)
    is_done(page, 0.1)
    page.reload()
    expect(page.locator("#run-status")).to_have_text("Succeeded")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(4)


def test_a_result_is_drawn_zoomed_and_downloaded(open_page: OpenPage) -> None:
    page = open_page("/simulations/new/?model=Llama+3.1+8B&requests_per_second=4&accelerators=h100-sxm&ttft_ms=900")
    page.fill("#field-traffic-hours", "0.2")
    page.fill("#field-fleet-replicas", "2")
    page.get_by_role("heading", name="Scaling, failures, upgrades").click()
    page.fill("#field-fleet-node_failure_hours", "0.05")
    execute_run(run_id=start(page).pk)
    expect(page.locator("#run-status")).to_have_text("Succeeded")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.locator("#plot-run-ttft .shapelayer path").count() >= 2
    span = "() => document.querySelector('#plot-run-ttft').layout.xaxis.range"
    whole = page.evaluate(span)
    page.locator("#plot-run-ttft").scroll_into_view_if_needed()
    box = page.locator("#plot-run-ttft .nsewdrag").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.02, middle, steps=5)
    expect(page.locator("#plot-run-ttft .hoverlayer .hovertext")).to_have_count(3)
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    page.mouse.up()
    page.wait_for_function(f"() => ({span})()[0] > {whole[0]}")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename.startswith("takar-simulation-")
    page.get_by_text("Load, queues, events, distribution").click()
    expect(page.locator("#charts-main")).not_to_have_attribute("open", "")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(8)
    assert page.locator("#plot-run-events .scatterlayer path.point").count() >= 2
    page.get_by_text("KV caches and queues by replica").click()
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(11)
    assert page.locator("[data-figure]:visible").count() == 3
    assert page.locator("#plot-run-heat-kv image").count() == 1
    box = page.locator("#plot-run-heat-kv .main-svg").first.bounding_box()
    assert box is not None
    assert box["width"] > 300
    with page.expect_download() as picture:
        page.locator("[data-png='plot-run-heat-kv']").click()
    assert picture.value.suggested_filename == "takar-run-heat-kv.png"


def test_the_smallest_fleet_is_found_and_drawn(open_page: OpenPage) -> None:
    question = "model=Llama+3.1+8B&requests_per_second=30&accelerators=h100-sxm&ttft_ms=900&tpot_ms=40"
    page = open_page(f"/simulations/new/?{question}", width=360)
    page.fill("#field-traffic-hours", "0.05")
    run = start(page, "Find the smallest fleet")
    execute_run(run_id=run.pk)
    expect(page.locator("#run-status")).to_have_text("Succeeded")
    expect(page.locator("#capacity-sentence")).to_contain_text("The cheapest fleet that holds the limits")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    run.refresh_from_db()
    assert run.result is not None
    assert page.locator("tr.is-chosen").count() == 1
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV of all runs").click()
    assert download.value.suggested_filename.startswith("takar-search-")
