"""No axe violation on any page, in either theme, on a phone or a desk."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage

pytestmark = [pytest.mark.django_db, pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGES = {
    "plan": "/",
    "training": "/training/",
    "fault": "/?model=Llama+3.1+70B&requests_per_second=-3",
    "nothing fits": "/?model=Llama+3.1+405B&requests_per_second=3&ttft_ms=1",
    "offers": "/catalog/offers/?accelerator=h200-sxm",
    "models": "/catalog/models/",
    "engines": "/catalog/engines/",
    "limits": "/limits/",
    "terms": "/docs/",
    "simulation": "/simulations/new/?model=Llama+3.1+70B&requests_per_second=3",
    "accuracy": "/accuracy/",
    "accuracy of memory": "/accuracy/memory/",
    "missing": "/nothing-here",
}


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_no_violation_at_any_size_in_any_theme(open_page: OpenPage, path: str) -> None:
    page = open_page(path)
    if path in ("/", "/training/"):
        expect(page.locator("[data-figure]:not([data-drawn])")).to_have_count(0)
        assert page.locator("[data-drawn]").count() >= 3
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    axe = Axe()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            results = axe.run(page)
            assert results.violations_count == 0, f"{theme}, {width} px: {results.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_tiers_limits_are_in_sight_on_a_phone(open_page: OpenPage) -> None:
    table = open_page("/limits/", width=360).get_by_role("region", name="By tier")
    assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
