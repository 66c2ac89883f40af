"""The catalog over REST: every row once, in a stable order, filtered strictly, cached by version."""

from __future__ import annotations

from base64 import b64encode
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.models import Accelerator, CatalogVersion, Offer, PriceObservation, TokenPrice
from catalog.selectors import catalog_snapshot, is_stale
from catalog.services import LoadReport
from planner.engine.cost import price_of

# One worker for the module: each would load the catalog again.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalog"), pytest.mark.xdist_group("api-catalog")]

LISTS = {
    "gpus": "key",
    "instances": "name",
    "offers": "id",
    "models": "name",
    "token-prices": "provider_model_id",
}
every_list = pytest.mark.parametrize("name", LISTS)


def _get(client: Client, name: str, **query: Any) -> Any:
    response = client.get(f"/api/v1/catalog/{name}/?{urlencode(query, doseq=True)}")
    assert response.status_code == 200, response.content
    return response.json()


def _all(client: Client, name: str, **query: Any) -> list[dict[str, Any]]:
    """Every row, by following ``next``."""
    rows: list[dict[str, Any]] = []
    address: str | None = f"/api/v1/catalog/{name}/?{urlencode({'limit': 200} | query, doseq=True)}"
    while address:
        page = client.get(address).json()
        rows += page["results"]
        address = page["next"]
    return rows


def _error(client: Client, address: str) -> dict[str, Any]:
    response = client.get(address)
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert isinstance(error, dict)
    return error


def test_following_next_gives_every_row_once(client: Client) -> None:
    offers = _all(client, "offers")
    assert len(offers) == len({row["id"] for row in offers}) == len(catalog_snapshot().offers) > 3000
    assert len(_all(client, "gpus")) == Accelerator.objects.filter(retired=False).count() >= 60
    assert len(_all(client, "instances")) >= 350
    assert len(_all(client, "token-prices")) == TokenPrice.objects.filter(retired=False).count() >= 700


def test_every_model_is_listed_with_its_exact_size(client: Client) -> None:
    rows = {row["hf_id"]: row for row in _all(client, "models")}
    assert len(rows) >= 90
    assert rows["meta-llama/Llama-3.1-70B"]["total_params"] == 70_553_706_496
    assert rows["mistralai/Mixtral-8x7B-v0.1"]["active_params"] == 12_879_925_248


@every_list
def test_a_walk_there_and_back_sees_the_same_pages(name: str, client: Client) -> None:
    first = _get(client, name, limit=7)
    second = client.get(first["next"]).json()
    back = client.get(second["previous"]).json()
    assert first["previous"] is None
    assert len(first["results"]) == len(second["results"]) == 7
    assert back["results"] == first["results"]
    assert first["results"][-1] != second["results"][0]


def test_rows_that_come_or_go_before_the_cursor_shift_nothing(client: Client) -> None:
    first = _get(client, "gpus", limit=5)
    expected = client.get(first["next"]).json()["results"]
    Accelerator.objects.filter(key=first["results"][0]["key"]).update(retired=True)
    assert client.get(first["next"]).json()["results"] == expected


@every_list
def test_an_answer_is_cached_by_catalog_version(name: str, client: Client, loaded_catalog: LoadReport) -> None:
    address = f"/api/v1/catalog/{name}/"
    response = client.get(address)
    etag = response.headers["ETag"]
    assert loaded_catalog.version in etag
    assert response.json()["catalog_version"] == loaded_catalog.version
    assert response.headers["Cache-Control"] == "public, max-age=300"
    unchanged = client.get(address, headers={"If-None-Match": etag})
    assert (unchanged.status_code, unchanged.content, unchanged.headers["ETag"]) == (304, b"", etag)
    CatalogVersion.objects.create(version="next", content_hash="h", loaded_at=timezone.now() + timedelta(days=1))
    changed = client.get(address, headers={"If-None-Match": etag})
    assert (changed.status_code, changed.json()["catalog_version"]) == (200, "next")


def test_an_offer_costs_what_the_planner_counts_with(client: Client) -> None:
    today = timezone.localdate()
    priced = {offer.id: offer for offer in catalog_snapshot().offers}
    for row in _all(client, "offers"):
        offer = priced[row["id"]]
        price = price_of(offer, 1, today)
        assert Decimal(row["usd_per_gpu_hour"]) == price.usd_per_gpu_hour
        assert Decimal(row["usd_per_node_hour"]) == offer.price_usd_per_node_hour
        assert (row["age_days"], row["is_stale"]) == (price.age_days, is_stale(offer, today))
        assert (row["country"] or "") == offer.country


@every_list
def test_a_page_takes_few_queries_however_long(
    name: str, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(3):
        assert _get(client, name, limit=200)["results"]


def test_filters_keep_what_they_say(client: Client) -> None:
    rows = _all(client, "offers", provider="aws,gcp", country="us", purchase_option="spot", max_usd_per_gpu_hour="2.5")
    assert rows
    assert {row["provider"] for row in rows} <= {"aws", "gcp"}
    assert {row["country"] for row in rows} == {"US"}
    assert {row["purchase_option"] for row in rows} == {"spot"}
    assert max(Decimal(row["usd_per_gpu_hour"]) for row in rows) <= Decimal("2.5")
    assert rows == _all(
        client, "offers", provider=["aws", "gcp"], country="US", purchase_option="spot", max_usd_per_gpu_hour="2.5"
    )


def test_an_age_limit_leaves_out_older_prices(client: Client) -> None:
    newest = max(date.fromisoformat(row["as_of"]) for row in _all(client, "offers"))
    days = (timezone.localdate() - newest).days
    assert {row["as_of"] for row in _all(client, "offers", max_age_days=days)} == {newest.isoformat()}


def test_gpus_by_memory_maker_and_name(client: Client) -> None:
    rows = _all(client, "gpus", vendor="NVIDIA", min_memory_gib=130, search="h200")
    assert rows
    assert all(row["vendor"] == "NVIDIA" and row["memory_gib"] >= 130 for row in rows)
    assert all("h200" in (row["key"] + row["name"]).lower() for row in rows)
    assert _all(client, "gpus", search="no such card") == []


def test_instances_by_number_of_gpus(client: Client) -> None:
    rows = _all(client, "instances", min_gpus=8, max_gpus=8, accelerator="h100-sxm")
    assert rows
    assert {(row["gpu_count"], row["accelerator"]) for row in rows} == {(8.0, "h100-sxm")}


def test_token_prices_unknown_stays_null(client: Client) -> None:
    rows = _all(client, "token-prices", weights="open")
    assert {row["weights"] for row in rows} == {"open"}
    assert any(row["cached_input_usd_per_mtok"] is None for row in rows)
    assert not any(row["input_usd_per_mtok"] == "" for row in rows)


@pytest.mark.parametrize(
    ("query", "attr", "value", "allowed"),
    [
        ("limit=0", "limit", "0", "1 to 200 rows"),
        ("limit=201", "limit", "201", "1 to 200 rows"),
        ("limit=5.5", "limit", "5.5", "1 to 200 rows"),
        ("limit=1_0", "limit", "1_0", "1 to 200 rows"),
        ("limit=%D9%A3", "limit", "٣", "1 to 200 rows"),
        ("limit=nan", "limit", "nan", "1 to 200 rows"),
        ("limit=5&limit=6", "limit", ["5", "6"], "one value"),
        ("cursor=x", "cursor", "x", "the cursor of a page's next or previous"),
        ("cursor=%F0%9F%98%80", "cursor", "😀", "the cursor of a page's next or previous"),
        ("max_age_days=-1", "max_age_days", "-1", "0 to 3,650 days"),
        ("max_usd_per_gpu_hour=1e999", "max_usd_per_gpu_hour", "1e999", "0 to 1,000,000 USD/GPU-hour"),
        ("purchase_option=rent", "purchase_option", "rent", "on_demand, spot"),
        ("purchase_option=spot,,", "purchase_option", "spot,,", "on_demand, spot"),
        ("purchase_option=%20spot", "purchase_option", " spot", "on_demand, spot"),
        ("provider=", "provider", "", "texts separated by commas, none of them empty"),
        ("provider=aws,", "provider", "aws,", "texts separated by commas, none of them empty"),
        ("max_age_days=", "max_age_days", "", "0 to 3,650 days"),
        ("provider=a%00b", "provider", "a\\x00b", "text without NUL"),
        ("vendor=NVIDIA", "vendor", "NVIDIA", "limit, cursor, provider"),
        ("format=json", "format", "json", "limit, cursor, provider"),
    ],
)
def test_a_bad_parameter_is_named(query: str, attr: str, value: Any, allowed: str, client: Client) -> None:
    error = _error(client, f"/api/v1/catalog/offers/?{query}")
    assert error["attr"] == attr
    assert error["value"] == (value.replace("\\x00", "\x00") if isinstance(value, str) else value)
    assert error["allowed"].startswith(allowed)


@pytest.mark.parametrize("decoded", [b"p=%00", b"r=1", b"o=3", b"x"], ids=repr)
def test_a_cursor_that_no_page_gave_is_refused(decoded: bytes, client: Client) -> None:
    cursor = b64encode(decoded).decode()
    assert _error(client, f"/api/v1/catalog/gpus/?{urlencode({'cursor': cursor})}")["attr"] == "cursor"


def test_an_empty_search_finds_everything(client: Client) -> None:
    assert _get(client, "gpus", search="")["results"] == _get(client, "gpus")["results"]


def test_retired_rows_are_not_listed(client: Client) -> None:
    offer = Offer.objects.filter(retired=False).first()
    assert offer is not None
    name = offer.instance_type.name
    before = len(_all(client, "offers", instance_type=name))
    PriceObservation.objects.filter(offer=offer).update(retired=True)
    assert len(_all(client, "offers", instance_type=name)) == before - 1


def test_without_a_catalog_the_answer_is_503() -> None:
    CatalogVersion.objects.all().delete()
    response = Client(raise_request_exception=False).get("/api/v1/catalog/gpus/")
    assert response.status_code == 503
    (error,) = response.json()["errors"]
    assert (response.json()["type"], error["code"]) == ("server_error", "unavailable")
    assert error["detail"] == "The catalog is empty: run manage.py load_catalog."


def test_only_reading_is_allowed(client: Client) -> None:
    response = client.post("/api/v1/catalog/gpus/", data=b"{}", content_type="application/json")
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
