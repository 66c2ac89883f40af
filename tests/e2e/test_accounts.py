"""A visitor's way: plan, sign up, found an organization, write prices, plan with them, invite a colleague."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.core.cache import cache
from playwright.sync_api import Page, expect

from catalog.services import load_catalog
from tests.e2e.conftest import OpenPage

# The site writes in its own connection: the test must hold no transaction of its own.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.xdist_group("browser")]
PASSWORD = "a-long-and-unusual-phrase-7"


@pytest.fixture(autouse=True)
def _fresh(site: str) -> None:
    """Each test of this module empties the database when it ends."""
    load_catalog()
    cache.clear()


def fill_sign_up(page: Page, email: str) -> None:
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password (again)").fill(PASSWORD)
    page.get_by_role("button", name="Sign Up").click()


def sign_up(page: Page, email: str) -> None:
    page.get_by_role("link", name="Sign in").first.click()
    page.get_by_role("link", name="sign up").click()
    fill_sign_up(page, email)


def found(page: Page, name: str) -> None:
    page.goto(re.sub(r"^(https?://[^/]+).*", r"\1/organizations/", page.url))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def write_private_node(page: Page) -> None:
    """A price book with a node of one's own so cheap that a plan takes it."""
    page.get_by_role("link", name="Price books").first.click()
    page.get_by_label("Name").fill("Data centre")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="Add a private instance type").click()
    for label, value in (
        ("Provider", "Our cellar"),
        ("Name", "node"),
        ("Accelerator", "h100-sxm"),
        ("Network speed", "3200"),
        ("Place", "Jakarta"),
        ("Country", "ID"),
        ("Amount", "1.25"),
        ("Currency", "usd"),
    ):
        page.get_by_label(re.compile(rf"^{label}( \*)?$")).fill(value)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Our cellar node")).to_be_visible()


def test_from_a_plan_to_ones_own_prices_in_it(open_page: OpenPage) -> None:
    page = open_page("/")
    sign_up(page, "ani@example.org")
    # Signing in leads back to the plan that one came from.
    expect(page.locator("#sentence")).to_be_visible()
    found(page, "Ani & Co")
    write_private_node(page)
    page.get_by_role("link", name="Inference").click()
    expect(page.get_by_text("With the prices of Ani & Co.")).to_be_visible()
    expect(page.locator("#sentence")).to_contain_text("Our cellar")
    expect(page.locator("#answer td small", has_text="your own capacity").first).to_be_visible()
    menu = page.locator("details.menu")
    menu.locator("summary").click()
    page.get_by_role("button", name="List prices").click()
    expect(page.locator("#sentence")).not_to_contain_text("Our cellar")


def test_a_colleague_joins_by_the_link_and_a_revoked_one_finds_no_way(open_page: OpenPage) -> None:
    owner = open_page("/organizations/")
    owner.get_by_role("link", name="sign up").click()
    fill_sign_up(owner, "budi@example.org")
    found(owner, "Budi Ltd")
    owner.get_by_role("link", name="Members").click()
    owner.get_by_label("Email address").fill("citra@example.org")
    owner.get_by_label("Role", exact=True).select_option("buyer")
    owner.get_by_role("button", name="Invite").click()
    path = re.sub(r"^https?://[^/]+", "", owner.locator(".secret").inner_text())

    colleague = open_page(path)
    expect(colleague.get_by_role("heading", level=1)).to_have_text("Join Budi Ltd")
    colleague.get_by_role("link", name="Sign up").click()
    fill_sign_up(colleague, "citra@example.org")
    colleague.get_by_role("button", name="Join").click()
    expect(colleague.get_by_role("heading", level=1)).to_have_text("Budi Ltd")
    expect(colleague.get_by_text("Buyer")).to_be_visible()
    expect(colleague.get_by_role("link", name="API keys")).to_have_count(0)

    owner.get_by_label("Email address").fill("dewi@example.org")
    owner.get_by_role("button", name="Invite").click()
    second = re.sub(r"^https?://[^/]+", "", owner.locator(".secret").inner_text())
    owner.get_by_role("button", name="Revoke").click()
    expect(owner.get_by_text("Revoked.")).to_be_visible()
    expect(open_page(second).get_by_role("alert")).to_contain_text("revoked")


def test_the_menu_works_by_keyboard(open_page: OpenPage) -> None:
    page = open_page("/")
    sign_up(page, "eka@example.org")
    found(page, "Eka")
    summary = page.locator("details.menu summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".menu-panel")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Eka")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".menu-panel")).to_be_hidden()
    expect(summary).to_be_focused()


def test_no_violation_on_any_page_of_an_organization(open_page: OpenPage) -> None:
    page = open_page("/accounts/login/")
    check(page)
    page.goto(page.url.replace("login", "signup"))
    check(page)
    page.goto(page.url.replace("signup", "login"))
    sign_up(page, "fitri@example.org")
    found(page, "Fitri")
    write_private_node(page)
    book, root = page.url, page.url.split("price-books/")[0]
    site = page.url.split("/organizations/")[0]
    for address in (
        f"{site}/organizations/",
        root,
        f"{root}members/",
        f"{root}price-books/",
        book,
        f"{book}discounts/new/",
        f"{book}private-instance-types/new/",
        f"{root}exchange-rates/",
        f"{root}keys/",
        f"{root}webhooks/",
        f"{site}/limits/",
        f"{root}audit/",
        f"{site}/accounts/2fa/",
        f"{site}/accounts/sessions/",
        f"{site}/accounts/email/",
        f"{site}/accounts/password/change/",
        f"{site}/organizations/no-such/",
        f"{site}/organizations/use/",
    ):
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        check(page)
    make_webhook(page, f"{root}webhooks/")
    check(page)


def make_webhook(page: Page, address: str) -> None:
    """One with a trial on its way: its secret is shown once, and its log has a row."""
    page.goto(address)
    page.get_by_label("Name").fill("ERP")
    page.get_by_label("Address").fill("https://erp.example/hook?a-rather-long-address=" + "x" * 200)
    page.get_by_role("button", name="Make a webhook").click()
    expect(page.locator(".secret")).to_contain_text("whsec_")
    page.get_by_role("button", name="Send a trial event").click()
    expect(page.locator(".secret")).to_have_count(0)
    expect(page.get_by_role("row")).to_have_count(2)


def check(page: Page) -> None:
    """No axe violation and nothing wider than the screen, at both sizes and in both themes."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            results = Axe().run(page)
            assert results.violations_count == 0, f"{page.url}, {theme}, {width} px: {results.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{page.url} at {width} px"
