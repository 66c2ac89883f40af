"""From a plan to a signed-up buyer's quote, in a real browser; its pages at every size and in both themes."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Dialog, Page, expect

from catalog.services import load_catalog
from planner.models import Quote, Scenario, ScenarioVersion
from tests.e2e.conftest import OpenPage

# The site writes in its own connection: the test must hold no transaction of its own.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.xdist_group("browser")]

QUESTION = "/?model=Llama+3.1+8B&requests_per_second=5&accelerators=h100-sxm"
PASSWORD = "a long enough passphrase"


@pytest.fixture(autouse=True)
def _catalog_in_the_database(site: str) -> None:
    """Each test of this module empties the database when it ends."""
    load_catalog()


def sign_up(page: Page, email: str) -> None:
    page.get_by_role("link", name="Sign up").last.click()
    page.get_by_label("Email").fill(email)
    page.locator("input[type=password]").nth(0).fill(PASSWORD)
    page.locator("input[type=password]").nth(1).fill(PASSWORD)
    page.get_by_role("main").get_by_role("button").first.click()


def check(page: Page) -> None:
    """No axe violation and nothing wider than the screen, at both sizes and in both themes."""
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            results = Axe().run(page)
            assert results.violations_count == 0, f"{page.url} {theme} {width} px: {results.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{page.url} {width} px"


def every_amount_is_in_view(page: Page) -> None:
    """On a phone too: the total at the end of each line, and the words of every choice."""
    page.set_viewport_size({"width": 360, "height": 900})
    cells = page.locator(".quote-lines td:not(:empty)")
    assert cells.count() > 6
    for box in cells.evaluate_all("all => all.map(cell => cell.getBoundingClientRect().toJSON())"):
        assert 0 <= box["left"] < box["right"] <= 360
    total = page.locator(".quote-lines .total td").last
    assert total.evaluate("cell => getComputedStyle(cell, '::before').content") == '"12 months"'
    page.set_viewport_size({"width": 1280, "height": 900})


def no_choice_is_cut(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 900})
    lengths = page.locator(".quote-form select:visible").evaluate_all(
        """all => all.map(select => {
            const pen = document.createElement("canvas").getContext("2d"), style = getComputedStyle(select);
            pen.font = style.font;
            const words = Math.max(...[...select.options].map(option => pen.measureText(option.text).width));
            return [select.name, words + parseFloat(style.paddingLeft), select.clientWidth - 18];
        })"""
    )
    assert [name for name, words, room in lengths if words > room] == []
    page.set_viewport_size({"width": 1280, "height": 900})


def leaving_asks_for_what_is_not_saved(page: Page) -> None:
    asked = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.locator("#f-title").fill("Not saved")
    page.get_by_role("link", name="Quotes").first.click()
    expect(page.locator("#f-title")).to_have_value("Not saved")
    assert asked == ["beforeunload"]


def test_plan_sign_up_save_quote_pdf(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(QUESTION)
    page.get_by_role("link", name="Quote", exact=True).click()
    sign_up(page, "buyer@example.org")
    expect(page.get_by_role("heading", level=1)).to_have_text("Save the plan and quote it")
    check(page)
    page.get_by_label("Your organization").fill("Acme")
    page.get_by_role("button", name="Save and quote").dblclick()
    expect(page.get_by_text("The buyer has no name.")).to_be_visible()
    leaving_asks_for_what_is_not_saved(page)
    page.get_by_role("button", name="+ Model weights").click()
    expect(page.get_by_text("Model weights, is not known")).to_be_visible()
    check(page)
    page.get_by_role("group", name="Model weights").get_by_label("Unit price").fill("0.023")
    page.locator("#f-buyer-name").fill("مؤسسة Acme 🚀 <b>")
    page.get_by_role("button", name="Add a percentage").click()
    page.get_by_label("Percent").fill("7.5")
    page.locator("#f-tax-country").select_option("ID")
    no_choice_is_cut(page)
    page.get_by_role("button", name="Issue").click()
    expect(page.get_by_text(re.compile(r"Issued as \d{4}-0001"))).to_be_visible()
    every_amount_is_in_view(page)
    check(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="PDF ID").click()
    path = tmp_path / "quote.pdf"
    download.value.save_as(path)
    assert path.read_bytes().startswith(b"%PDF-")
    quote = Quote.objects.get()
    assert quote.snapshot is not None
    assert [line["category"] for line in quote.snapshot["lines"]] == ["compute", "storage", "discount", "tax"]
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("code.secret").inner_text()
    reader = open_page(link[link.index("/shared/") :])
    expect(reader.get_by_role("heading", level=1)).to_contain_text("-0001")
    every_amount_is_in_view(reader)
    check(reader)
    page.get_by_role("link", name="Quotes").first.click()
    expect(page.get_by_role("row")).to_have_count(2)
    check(page)


def test_plan_sign_up_save_price_book_quote_pdf(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(QUESTION)
    page.get_by_role("link", name="Save", exact=True).click()
    sign_up(page, "ani@example.org")
    page.get_by_label("Your organization").fill("Ani & Co")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Nothing: the same question has the same answer today")).to_be_visible()
    scenario = page.url

    page.get_by_role("link", name="Price books").first.click()
    page.get_by_label("Name").fill("Contract 7")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="Add a discount").click()
    page.get_by_label(re.compile(r"^Discount")).fill("10")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("in use")).to_be_visible()
    page.goto(scenario)
    # What was saved at list prices costs less by now, and the page says how much.
    expect(page.get_by_text(re.compile(r"The saved option costs \$1\d\d\.\d\d less today"))).to_be_visible()

    page.goto(re.sub(r"/organizations/.*", QUESTION, page.url))
    expect(page.get_by_text("With the prices of Ani & Co.")).to_be_visible()
    page.get_by_role("link", name="Quote", exact=True).click()
    page.get_by_label("Or as the next version of").select_option(index=1)
    page.get_by_role("button", name="Save and quote").click()
    page.locator("#f-buyer-name").fill("Buyer Ltd")
    page.get_by_role("button", name="Issue").click()
    expect(page.get_by_text(re.compile(r"Issued as \d{4}-0001"))).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="PDF EN").click()
    path = tmp_path / "quote.pdf"
    download.value.save_as(path)
    assert path.read_bytes().startswith(b"%PDF-")
    saved, priced = ScenarioVersion.objects.order_by("number")
    listed, paid = (Decimal(row.plan["options"][0]["price"]["usd_per_node_hour"]) for row in (saved, priced))
    assert paid == (listed * Decimal("0.9")).quantize(paid)
    snapshot = Quote.objects.get().snapshot
    assert snapshot is not None
    assert Decimal(snapshot["lines"][0]["unit_price"]) == paid
    # What the seller pays by is no matter of the buyer's.
    assert "Contract 7" not in json.dumps(snapshot)


def test_share_a_scenario_and_revoke_the_link(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    page.get_by_role("link", name="Save", exact=True).click()
    sign_up(page, "planner@example.org")
    page.get_by_label("Your organization").fill("Beta")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Nothing: the same question has the same answer today")).to_be_visible()
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("code.secret").inner_text()
    check(page)
    stranger = open_page(link[link.index("/shared/") :])
    expect(stranger.get_by_text("Shared with you for reading")).to_be_visible()
    check(stranger)
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("revoked").first).to_be_visible()
    stranger.reload()
    expect(stranger.get_by_text("Shared with you for reading")).to_have_count(0)
    page.get_by_role("button", name="Clone").click()
    page.get_by_role("link", name="Scenarios").first.click()
    check(page)
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare those ticked").click()
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(2)
    check(page)
    assert Scenario.objects.filter(organization__name="Beta").count() == 2
