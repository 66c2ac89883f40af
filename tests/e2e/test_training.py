"""A training plan in a real browser: charts of the option, what the axes cost, limits by date, sum and nodes."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.test_planning import change, sentence, settled

pytestmark = [pytest.mark.django_db, pytest.mark.browser, pytest.mark.xdist_group("browser")]

QUESTION = "/training/?model=Llama+3.1+70B&tokens=1e12&finish_days=90&accelerators=h100-sxm"


def drawn(page: Page) -> set[str]:
    expect(page.locator("[data-figure]:not([data-drawn])")).to_have_count(0)
    return {
        plot.removeprefix("plot-") for plot in page.locator("[data-drawn]").evaluate_all("all => all.map(p => p.id)")
    }


def test_charts_show_the_option_looked_at(open_page: OpenPage) -> None:
    page = open_page(f"{QUESTION}&nodes=32")
    assert drawn(page) == {"tradeoff", "memory", "bill", "scaling", "micro"}
    assert page.locator("#plot-scaling .scatterlayer path.point").count() >= 5
    assert page.locator("#plot-micro .scatterlayer path.point").count() >= 6
    expect(page.locator(".axes tbody tr").first).to_be_visible()
    expect(page.locator("#costs-title")).to_contain_text("of a step is arithmetic of the model")
    expect(page.locator(".deeper .notes")).to_contain_text("critical batch")
    twin = page.locator(".chart-scaling .twin")
    twin.locator("summary").click()
    expect(twin.locator("tbody tr").last).to_contain_text("2,048")
    with page.expect_response(lambda response: "/answers/" in response.url):
        page.locator("[data-choose]").nth(3).click()
    settled(page)
    assert drawn(page) >= {"tradeoff", "scaling", "micro"}


def test_a_date_that_cannot_be_met_says_what_can(open_page: OpenPage) -> None:
    soon = (date.today() + timedelta(days=30)).isoformat()
    page = open_page(f"{QUESTION}&nodes=8".replace("finish_days=90", "finish_days=400"))
    with page.expect_response(lambda response: f"finish_by={soon}" in response.url):
        page.locator("#field-finish_by").fill(soon)
    settled(page)
    expect(page.locator("#sentence")).to_contain_text("Nothing fits")
    expect(page.locator(".lead .detail")).to_contain_text("The fastest of them, 8 x 8x H100")
    way = page.locator(".ways li").filter(has_text="Move “Finish by” to")
    way.get_by_role("link", name="Apply").click()
    page.wait_for_url(re.compile("finish_by="))
    assert "days and" in sentence(page)
    expect(page.locator("#field-finish_by")).not_to_have_value(soon)


def test_a_sum_that_is_too_small_says_what_is_enough(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    change(page, "budget_usd", "50000")
    expect(page.locator("#sentence")).to_contain_text("Nothing fits")
    ways = page.locator(".ways")
    expect(ways).to_contain_text(re.compile(r"Raise “Spend at most” to [\d,]+ USD"))
    expect(ways).to_contain_text("Train on")
    ways.locator("li").filter(has_text="Train on").get_by_role("link", name="Apply").click()
    page.wait_for_url(re.compile("tokens="))
    assert "days and $" in sentence(page)


def test_the_nodes_to_use_are_picked_from_a_list_fetched_when_opened(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    page.locator(".fold-title", has_text=re.compile("^Where$")).click()
    picker = page.locator("#field-instance_types .picker")
    assert picker.locator(".ticks label").count() == 0
    with page.expect_response(lambda response: "/nodes/" in response.url):
        picker.locator("summary").click()
    picker.locator(".ticks label").nth(50).wait_for(state="attached")
    picker.locator("[data-picker-filter]").fill("h100 sxm")
    with page.expect_response(lambda response: "instance_types=" in response.url):
        picker.locator(".ticks label:visible").first.locator("input").check()
    settled(page)
    assert "instance_types=" in page.url
    page.reload()
    expect(page.locator("#field-instance_types .ticks input:checked")).to_have_count(1)


def test_a_method_asks_for_what_it_needs(open_page: OpenPage) -> None:
    page = open_page("/training/?model=Llama+3.1+8B&tokens=1e9")
    expect(page.locator("#field-teacher")).to_be_hidden()
    expect(page.locator("#field-lora_rank")).to_be_hidden()
    with page.expect_response(lambda response: "/answers/" in response.url):
        page.locator("#field-method").select_option("lora")
    settled(page)
    expect(page.locator("#field-lora_rank")).to_be_visible()
    with page.expect_response(lambda response: "method=distillation" in response.url):
        page.locator("#field-method").select_option("distillation")
    expect(page.locator("#field-teacher")).to_be_visible()
    with page.expect_response(lambda response: "teacher=" in response.url):
        page.locator("#field-teacher").fill("Llama 3.1 70B")
    settled(page)
    expect(page.locator(".problem")).to_have_count(0)
    assert "days and" in sentence(page) or "hours and" in sentence(page)


@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1280, "light")])
def test_nothing_is_wider_than_the_page(open_page: OpenPage, width: int, theme: str) -> None:
    page = open_page(f"{QUESTION}&nodes=32", width=width, theme=theme)
    drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("language", ["en", "id"])
def test_on_a_phone_no_word_of_the_form_is_cut(open_page: OpenPage, language: str) -> None:
    page = open_page("/training/?model=Llama+3.1+8B", width=360, height=780)
    if language == "id":
        page.get_by_role("button", name="ID", exact=True).click()
        expect(page.locator("html")).to_have_attribute("lang", "id")
    cut = page.locator("#question input[placeholder]:visible").evaluate_all(
        """all => all.filter(input => {
            const style = getComputedStyle(input, "::placeholder"), own = getComputedStyle(input);
            const pen = document.createElement("canvas").getContext("2d");
            pen.font = `${style.fontStyle} ${style.fontSize} ${own.fontFamily}`;
            const room = input.clientWidth - parseFloat(own.paddingLeft) - parseFloat(own.paddingRight);
            return !input.value && pen.measureText(input.placeholder).width > room;
        }).map(input => input.name)"""
    )
    assert cut == []
    summaries = page.locator(".fold > summary small")
    assert summaries.count() >= 5
    assert all(summaries.evaluate_all("all => all.map(text => text.scrollWidth <= text.clientWidth + 1)"))
    dates = page.locator("#question input[type=date]:visible")
    assert all(dates.evaluate_all("all => all.map(input => input.clientWidth >= 150)"))
