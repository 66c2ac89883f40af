"""Fixes to click beside a fault: values that the field accepts, and links that lead to an answer."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
LINK = re.compile(r'<a class="button" href="([^"]+)">([^<]+)</a>')


def fixes_of(text: str) -> dict[str, str]:
    """Labels of the fixes in the list of faults, with their addresses."""
    faults = re.findall(r'<span class="fixes">(.*?)</span>', text, re.S)
    return {html.unescape(label): html.unescape(link) for fault in faults for link, label in LINK.findall(fault)}


FAULTS = [
    ("model=Llama+3.1+70B&requests_per_second=-4", ["Use 4 req/s"]),
    (
        "model=Llama+3.1+70B&requests_per_second=4&headroom=30",
        ["Use 0.3 share", "Use 0.9 share", "Use the default, 0.2 share"],
    ),
    ("model=Llama+3.1+70B&requests_per_second=4&input_tokens=10.5", ["Use 10 tokens", "Use the default, 1,000 tokens"]),
    (
        "model=Llama+3.1+70B&requests_per_second=4&weight_formats=fp9",
        ["Use FP8", "Use FP16", "Use the default, Automatic"],
    ),
    ("model=Llama+3.1+70B&requests_per_second=4&tensor_parallel=3", ["Use 2 GPUs", "Use 4 GPUs", "Leave it open"]),
    ("model=Llama+3.1+70B&requests_per_second=4&countries=IND", ["Use India", "Use Indonesia", "Leave it open"]),
    ("model=Lama+3.1+70&requests_per_second=4", ["Use Llama 3.1 70B", "Use Llama 3.3 70B"]),
    ("model=Llama+3.1+70B&requests_per_second=2,000", ["Use 2,000 req/s", "Use 2 req/s"]),
    ("model=Llama+3.1+70B&requests_per_second=many", ["Use 1 req/s"]),
    ("model=Llama+3.1+70B&requests_per_second=4&requests_per_second=5", ["Use 4 req/s"]),
    ("model=Llama+3.1+70B&requests_per_second=4&concurrency=3", ["Leave it open"]),
    ("model=Llama+3.1+70B", ["Use 1 req/s"]),
    ("requests_per_second=4", ["Use Llama 3.1 8B"]),
    ("model=Llama+3.1+70B&users=400", ["Use 10 req/day"]),
    ("model=Llama+3.1+70B&requests_per_second=4&headrom=0.1", ["Read it as “Headroom”", "Leave it out"]),
    (
        "model=Llama+3.1+70B&requests_per_second=4&input_tokens=200000",
        ["Use 130,822 tokens", "Use the default, 1,000 tokens"],
    ),
    ("model=Llama+3.1+70B&requests_per_second=4&max_price_age_days=1", ["Leave it open"]),
    ("model=Llama+3.1+70B&requests_per_second=4&config=abc", ["Leave it open"]),
]  # fmt: skip


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("query", "labels"), FAULTS)
def test_a_fault_has_fixes_and_each_leads_to_a_question_without_it(
    client: Client, query: str, labels: list[str]
) -> None:
    response = client.get(f"/?{query}")
    assert response.status_code == 400
    found = fixes_of(response.content.decode())
    assert list(found) == labels
    for link in found.values():
        assert client.get(link).status_code == 200, link


@pytest.mark.usefixtures("catalog")
def test_a_fragment_has_them_too_with_the_pages_address(client: Client) -> None:
    response = client.get("/answers/training/?model=Llama+3.1+8B&nodes=0.5")
    assert response.status_code == 422
    found = fixes_of(response.content.decode())
    assert list(found) == ["Leave it open"]
    assert found["Leave it open"] == "/training/?model=Llama+3.1+8B"


@pytest.mark.usefixtures("catalog")
def test_fixes_are_said_in_the_pages_language(client: Client) -> None:
    client.cookies["django_language"] = "id"
    text = client.get("/?model=Llama+3.1+70B&requests_per_second=4&headroom=30").content.decode()
    assert list(fixes_of(text)) == ["Pakai 0,3 bagian", "Pakai 0,9 bagian", "Pakai bawaan, 0,2 bagian"]


@pytest.mark.usefixtures("catalog")
def test_of_two_faults_each_keeps_the_other(client: Client) -> None:
    found = fixes_of(client.get("/?model=Llama+3.1+70B&requests_per_second=-4&headroom=2").content.decode())
    assert found["Use 4 req/s"] == "/?model=Llama+3.1+70B&requests_per_second=4&headroom=2"
    assert found["Use 0.9 share"] == "/?model=Llama+3.1+70B&requests_per_second=-4&headroom=0.9"


@pytest.mark.usefixtures("catalog")
def test_the_simulations_form_keeps_what_was_typed(client: Client) -> None:
    given = {
        "question": "model=Llama+3.1+8B&requests_per_second=2",
        "traffic-hours": "-3",
        "fleet-policy": "round_robbin",
        "traffic-input_median": "77",
    }
    text = client.post("/simulations/new/", given).content.decode()
    links = {html.unescape(label): html.unescape(link) for link, label in LINK.findall(text)}
    assert {"Use 3 h", "Use Round robin"} <= set(links)
    again = client.get(f"/simulations/new/{links['Use 3 h']}").content.decode()
    assert re.search(r'name="traffic-hours"[^>]* value="3"', again)
    assert re.search(r'name="traffic-input_median"[^>]* value="77"', again)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("field", "labels"),
    [
        ("requests_per_second", ["Use 10,000,000 req/s"]),
        ("concurrency", ["Use 10,000,000 clients", "Use 1 clients"]),
        ("headroom", ["Use 0.9 share", "Use 0 share", "Use the default, 0.2 share"]),
        ("budget_usd_per_month", ["Use 1,000,000,000,000 USD/month", "Use 1 USD/month", "Leave it open"]),
    ],
)
@pytest.mark.parametrize("typed", ["9e9999999", "9e99"])
def test_numbers_beyond_all_bounds_have_the_nearest_bound_as_their_fix(
    client: Client, field: str, labels: list[str], typed: str
) -> None:
    traffic = {} if field in ("requests_per_second", "concurrency") else {"requests_per_second": "1"}
    response = client.get("/", {"model": "Llama 3.1 8B", **traffic, field: typed})
    assert response.status_code == 400
    assert list(fixes_of(response.content.decode())) == labels
    assert client.get("/", {"model": "Llama 3.1 8B", **traffic, field: f"-{typed}"}).status_code == 400
