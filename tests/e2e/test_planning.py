"""From the form to the answer in a real browser: typing, sharing, errors, keyboard, phone, print, no scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage

pytestmark = [pytest.mark.django_db, pytest.mark.browser, pytest.mark.xdist_group("browser")]

QUESTION = "/?model=Llama+3.1+70B&input_tokens=1155&output_tokens=211&requests_per_second=10&ttft_ms=2000&tpot_ms=100"


OPTIONS = "[data-scroll][aria-labelledby=options-title]"
"""The table of options: others scroll too."""


def sentence(page: Page) -> str:
    return page.locator("#sentence").inner_text()


def settled(page: Page) -> None:
    """Waits until no answer is on its way."""
    # Not by a polled expression: the page's policy forbids to evaluate texts.
    expect(page.locator(".htmx-request")).to_have_count(0)
    expect(page.locator("#sentence")).to_have_count(1)


def change(page: Page, field: str, value: str) -> None:
    with page.expect_response(lambda response: "/answers/" in response.url):
        page.locator(f"#field-{field}").fill(value)
    settled(page)


def test_the_answer_follows_the_form_and_the_charts_are_drawn(open_page: OpenPage) -> None:
    page = open_page("/")
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(3)
    assert page.locator("#plot-tradeoff .scatterlayer path.point").count() > 5
    assert page.locator("#plot-memory .barlayer .point").count() >= 4
    before = sentence(page)
    change(page, "requests_per_second", "40")
    assert sentence(page) != before
    assert "a month" in sentence(page)
    expect(page.locator("[data-figure][data-drawn]")).to_have_count(3)
    expect(page.locator("[data-example]")).to_have_count(0)


def test_a_shared_link_reproduces_the_answer(open_page: OpenPage) -> None:
    page = open_page("/")
    change(page, "requests_per_second", "25")
    change(page, "ttft_ms", "900")
    link = page.locator("[data-share]").get_attribute("data-link")
    assert link is not None
    assert page.url.endswith(link)
    assert "requests_per_second=25" in link
    other = open_page(link)
    assert sentence(other) == sentence(page)
    expect(other.locator("#field-ttft_ms")).to_have_value("900")


def test_the_chosen_option_stays_in_the_link_and_back_returns(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    before = sentence(page)
    page.locator("[data-choose]").nth(4).click()
    page.wait_for_url(re.compile("option="))
    settled(page)
    assert sentence(page) != before
    expect(page.locator("#sentence")).to_be_focused()
    assert sentence(open_page(page.url.removeprefix(page.evaluate("location.origin")))) == sentence(page)
    page.go_back()
    expect(page.locator("#sentence")).to_have_text(before)


def test_a_fault_stands_beside_its_field_and_the_old_answer_dims(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    before = sentence(page)
    field = page.locator("#field-requests_per_second")
    field.fill("-3")
    error = page.locator("#error-requests_per_second")
    expect(error).to_be_visible()
    expect(error).to_contain_text("Out of range: -3. Allowed: 0.000001 to 10,000,000 req/s")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#answer")).to_have_class(re.compile("is-stale"))
    assert sentence(page) == before
    page.locator("#field-output_tokens").focus()
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    field.fill("5")
    expect(error).to_be_hidden()
    expect(page.locator("#answer")).not_to_have_class(re.compile("is-stale"))


def test_a_whole_page_with_a_fault_opens_at_it(open_page: OpenPage) -> None:
    page = open_page("/?model=Llama+3.1+70B&requests_per_second=3&memory_utilization=7")
    expect(page.locator("#field-memory_utilization")).to_be_focused()
    expect(page.locator("#error-memory_utilization")).to_contain_text("0.1 to 1 share")


def test_the_keyboard_alone_plans_sorts_and_leaves(open_page: OpenPage) -> None:
    page = open_page("/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    model = page.locator("#field-model")
    expect(model).to_be_focused()
    page.keyboard.type("qwen3 8b")
    expect(page.locator("#model-list [role=option]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#model-list")).to_be_hidden()
    expect(model).to_have_value("Llama 3.1 70B")
    model.select_text()
    page.keyboard.type("qwen3 8b")
    expect(page.locator("#model-list [data-value='Qwen3 8B']")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(model).to_have_attribute("aria-activedescendant", "model-1")
    with page.expect_response(lambda response: "/answers/" in response.url):
        page.keyboard.press("Enter")
    settled(page)
    expect(model).to_have_value("Qwen3 8B")
    expect(page.locator(".facts")).to_contain_text("Qwen3 8B")
    for button, kept in ((".second", "second"), ("button:first-child", "sort")):
        page.locator(f"th[data-key=ttft] {button}").focus()
        page.keyboard.press("Enter")
        expect(page.locator("th[data-key=ttft]")).to_have_attribute("aria-sort", "ascending")
        read = f"cells => cells.map(cell => +cell.dataset.{kept})"
        times = page.locator(".options tbody tr td:nth-child(5)").evaluate_all(read)
        assert times == sorted(times)
        assert len(set(times)) > 1


def test_a_use_case_fills_lengths_and_limits(open_page: OpenPage) -> None:
    page = open_page("/")
    with page.expect_response(lambda response: "/answers/" in response.url):
        page.locator("#preset").select_option("code")
    settled(page)
    expect(page.locator("#field-input_tokens")).to_have_value("2048")
    expect(page.locator("#field-tpot_ms")).to_have_value("40")
    expect(page.locator("[data-preset-source]")).to_contain_text("Azure 2023 code trace")
    change(page, "input_tokens", "2000")
    expect(page.locator("#preset")).to_have_value("")


def test_every_column_is_in_view_on_a_laptop_and_a_phone_is_told_of_the_rest(open_page: OpenPage) -> None:
    laptop = open_page(QUESTION)
    box = laptop.locator(OPTIONS)
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    expect(laptop.locator("[data-scroll-hint]")).to_be_hidden()
    phone = open_page(QUESTION, width=360, height=780)
    expect(phone.locator("[data-scroll-hint]")).to_be_visible()
    expect(phone.locator(OPTIONS)).to_have_class(re.compile("has-more"))
    phone.locator(OPTIONS).evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    expect(phone.locator(OPTIONS)).not_to_have_class(re.compile("has-more"))


def test_another_way_to_state_the_traffic_starts_from_the_same_traffic(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    before = sentence(page)
    with page.expect_response(lambda response: "users=86400" in response.url):
        page.locator("[name=traffic_by][value=users]").check(force=True)
    settled(page)
    expect(page.locator("#field-requests_per_user_per_day")).to_have_value("10")
    expect(page.locator(".problem")).to_have_count(0)
    assert sentence(page) == before


def test_traffic_by_users_sends_users_only(open_page: OpenPage) -> None:
    page = open_page("/")
    with page.expect_response(lambda response: "/answers/" in response.url):
        page.locator("[name=traffic_by][value=users]").check(force=True)
    settled(page)
    expect(page.locator("#field-users")).to_be_visible()
    expect(page.locator("#field-requests_per_second")).to_be_hidden()
    page.locator("#field-users").fill("50000")
    with page.expect_response(lambda response: "requests_per_user_per_day=12" in response.url):
        page.locator("#field-requests_per_user_per_day").fill("12")
    settled(page)
    assert "users=50000" in page.url
    assert "requests_per_second" not in page.url


def test_a_pasted_config_replaces_the_model(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    page.locator(".paste summary").click()
    page.locator("#config-text").fill(
        '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 128256,'
        ' "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,'
        ' "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}'
    )
    page.get_by_role("button", name="Use this config").click()
    page.wait_for_url(re.compile("config="))
    expect(page.locator(".config-chip")).to_contain_text("LlamaForCausalLM")
    expect(page.locator(".facts")).to_contain_text("8.03B")
    assert "requests_per_second=10" in page.url


def test_it_works_without_scripts(open_page: OpenPage) -> None:
    page = open_page("/", scripts=False)
    expect(page.locator("#sentence")).to_contain_text("a month")
    page.locator("#field-requests_per_second").fill("30")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#field-requests_per_second")).to_have_value("30")
    expect(page.locator("#sentence")).to_contain_text("a month")
    assert page.locator(".options tbody tr").count() > 5


def test_the_theme_is_kept_and_charts_follow_it(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    ink = "getComputedStyle(document.querySelector('#plot-tradeoff .annotation-text')).fill"
    expect(page.locator("#plot-tradeoff[data-drawn]")).to_be_visible()
    light = page.evaluate(ink)
    toggle = page.locator("[data-theme-toggle]")
    toggle.click()
    toggle.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_function(f"{ink} !== {light!r}")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_chart_is_saved_as_png_and_the_options_as_csv(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    expect(page.locator("#plot-tradeoff[data-drawn]")).to_be_visible()
    with page.expect_download() as saved:
        page.locator("[data-png=plot-tradeoff]").click()
    assert saved.value.suggested_filename == "takar-tradeoff.png"
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as table:
        page.get_by_role("link", name="CSV").click()
    assert table.value.path().read_text(encoding="utf-8").startswith("rank,provider,")


def test_on_a_phone_the_bar_shows_cost_and_speed_and_leads_to_the_answer(open_page: OpenPage) -> None:
    page = open_page(QUESTION, width=360, height=740)
    bar = page.locator("#bar")
    expect(bar).to_be_in_viewport()
    expect(bar).to_contain_text("a month")
    expect(bar).to_contain_text("TTFT")
    expect(page.locator("#field-model")).to_be_in_viewport()
    expect(page.locator("#sentence")).not_to_be_in_viewport()
    bar.click()
    expect(page.locator("#sentence")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


CROSSING = """() => {
    const plot = document.querySelector("#plot-tradeoff");
    const line = plot.querySelector(".shapelayer path").getBoundingClientRect();
    return [...plot.querySelectorAll(".annotation-text-g")].map(note => note.getBoundingClientRect())
        .filter(note => note.left < line.right && note.right > line.left).length;
}"""


@pytest.mark.parametrize("limits", ["ttft_ms=900&tpot_ms=60", "ttft_ms=700", "ttft_ms=1500&input_tokens=4000"])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_name_in_a_chart_runs_over_the_limits_line(open_page: OpenPage, limits: str, width: int) -> None:
    page = open_page(f"/?model=Llama+3.1+70B&requests_per_second=10&{limits}", width=width)
    expect(page.locator("#plot-tradeoff")).to_have_attribute("data-drawn", "true")
    assert page.evaluate(CROSSING) == 0


def test_the_print_is_two_pages(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    expect(page.locator("#plot-tradeoff[data-drawn]")).to_be_visible()
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2


def test_the_page_speaks_indonesian(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    page.get_by_role("button", name="ID", exact=True).click()
    expect(page.locator("html")).to_have_attribute("lang", "id")
    expect(page.locator("#sentence")).to_contain_text("sebulan")
    assert "requests_per_second=10" in page.url


def test_training_is_planned_with_charts_and_a_deadline(open_page: OpenPage) -> None:
    page = open_page("/training/")
    expect(page.locator("[data-figure]:not([data-drawn])")).to_have_count(0)
    assert page.locator("[data-drawn]").count() >= 3
    before = sentence(page)
    assert "MFU" in before
    change(page, "finish_days", "3")
    assert sentence(page) != before
    assert "finish_days=3" in page.url
    assert page.url.split("?")[0].endswith("/training/")
