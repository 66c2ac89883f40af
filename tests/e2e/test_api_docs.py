"""The API's own page: drawn by scripts of this server alone, and good for a first call."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from planner.api.documents import openapi_document
from tests.e2e.conftest import OpenPage

pytestmark = [pytest.mark.django_db, pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_every_operation_is_drawn_and_the_example_is_planned(open_page: OpenPage) -> None:
    page = open_page("/api/docs/")
    page.wait_for_selector(".opblock")
    operations = sum(len(methods) for methods in openapi_document()["paths"].values())
    assert page.locator(".opblock").count() == operations
    page.click("#operations-plans-plan_inference .opblock-summary-control")
    page.click("text=Try it out")
    with page.expect_response("**/api/v1/plans/inference/") as answered:
        page.click(".execute")
    assert answered.value.status == 200
    assert len(answered.value.json()["options"]) == 10
    expect(page.locator(".live-responses-table tbody .response-col_status")).to_have_text("200")


def test_the_page_fits_a_phone(open_page: OpenPage) -> None:
    page = open_page("/api/docs/", width=360)
    page.wait_for_selector(".opblock")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
