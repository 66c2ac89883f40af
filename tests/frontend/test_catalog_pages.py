"""Browsing the catalog: filters, pages, ages, sources."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from catalog.engine_profiles import engine_profiles
from catalog.models import CatalogVersion
from catalog.selectors import catalog_snapshot

pytestmark = pytest.mark.usefixtures("catalog")


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def rows(text: str) -> list[str]:
    return re.findall(r'<tr><th scope="row".*?</tr>', text, re.DOTALL)


@pytest.mark.parametrize("section", ["accelerators", "instances", "offers", "models"])
def test_every_section_has_rows_with_a_heading(client: Client, section: str) -> None:
    text = page(client, f"/catalog/{section}/")
    assert len(rows(text)) > 50
    assert f'<a href="/catalog/{section}/" aria-current="page">' in text


def test_engines_are_listed_by_half_year_with_what_they_were_fitted_on(client: Client) -> None:
    text = page(client, "/catalog/engines/")
    assert len(rows(text)) == len(engine_profiles())
    assert "Triton with TensorRT-LLM" in text
    assert "constants of NVIDIA NIM" in text
    assert "start-up logs of version" in text


def test_offers_are_filtered_and_cheapest_first(client: Client) -> None:
    text = page(client, "/catalog/offers/?accelerator=h200-sxm&purchase_option=spot")
    expected = [
        offer
        for offer in catalog_snapshot().offers
        if offer.accelerator_key == "h200-sxm" and offer.purchase_option == "spot"
    ]
    assert len(rows(text)) == min(100, len(expected)) > 0
    per_gpu = [float(offer.price_usd_per_node_hour) / offer.gpu_count for offer in expected]
    assert f'data-sort="{min(per_gpu)}"' in rows(text)[0]


def test_offers_come_a_hundred_a_page_and_filters_stay(client: Client) -> None:
    text = page(client, "/catalog/offers/?provider=aws&page=2")
    assert len(rows(text)) == 100
    assert 'href="?provider=aws&amp;page=3"' in text
    assert "Page 2 of" in text


def test_a_page_past_the_end_is_the_last(client: Client) -> None:
    assert rows(page(client, "/catalog/offers/?page=99999"))


def test_nothing_that_matches_says_so(client: Client) -> None:
    assert "Nothing matches. Clear a filter." in page(client, "/catalog/offers/?q=no-such-thing")


def test_an_age_opens_its_source(client: Client) -> None:
    first = rows(page(client, "/catalog/offers/"))[0]
    assert re.search(
        r'popovertarget="note-1">[\d,]+ days?</button><div id="note-1" class="source" popover>\d{4}-', first
    )


def test_a_model_leads_to_its_plan(client: Client) -> None:
    text = page(client, "/catalog/models/?q=llama+3.1+70b")
    assert 'href="/?model=Llama+3.1+70B&amp;input_tokens=1155' in text
    assert "70.6B" in text


def test_without_a_catalog_the_page_says_what_to_do(client: Client) -> None:
    CatalogVersion.objects.all().delete()
    response = client.get("/")
    assert response.status_code == 503
    assert "manage.py load_catalog" in response.content.decode()
