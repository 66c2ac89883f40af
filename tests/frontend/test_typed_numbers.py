"""Numbers as people type them: a price is never taken for a thousandth of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import translation

from catalog.services import LoadReport
from frontend.typed_numbers import ambiguity, clear_number, plain_number, read_typed
from planner.engine.field_spec import read_fields
from planner.engine.workload import InferenceQuestion
from planner.models import ExchangeRate, Quote, Role
from planner.services.quotes import create_quote
from tests.frontend.quote_pages import address, fields, signed_in
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import TERMS


@pytest.fixture(autouse=True)
def _own_language() -> Iterator[None]:
    """A request in Indonesian leaves its language behind."""
    with translation.override("en"):
        yield


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("1,5", "1.5"),
        ("0,125", "0.125"),
        ("45.787,50", "45787.50"),
        ("45,787.50", "45787.50"),
        ("1.690.000", "1690000"),
        ("1,690,000", "1690000"),
        ("1.690.000,25", "1690000.25"),
        ("-1.690.000", "-1690000"),
        ("1690000", "1690000"),
        ("1.5", "1.5"),
        # No group of three: left to the field to refuse.
        ("1.69.000", "1.69.000"),
        ("1,69,000", "1,69,000"),
        ("1 000", "1 000"),
        ("01.000.000", "01.000.000"),
    ],
)
def test_what_can_be_read_one_way_is_read(typed: str, read: str) -> None:
    assert plain_number(typed) == read


@pytest.mark.parametrize(
    ("language", "typed", "allowed"),
    [
        ("id", "16.300", "16300, or 16.3"),
        ("id", "1.000", "1000, or 1.0"),
        ("en", "2,000", "2000, or 2.0"),
        ("en", "16,300", "16300, or 16.3"),
        ("id", "16,300", ""),
        ("en", "16.300", ""),
        ("id", "0.125", ""),
        ("id", "1234.567", ""),
        ("en", "0,125", ""),
        ("id", "16.30", ""),
    ],
)
def test_what_readers_take_for_a_thousand_is_asked_about(language: str, typed: str, allowed: str) -> None:
    with translation.override(language):
        fault = ambiguity("rate", typed)
    if not allowed:
        assert fault is None
        return
    assert fault is not None
    assert (fault.code, fault.value) == ("ambiguous", typed)
    assert fault.allowed.replace(" atau", " or") == allowed


@pytest.mark.parametrize("text", ["16.253", "1.125", "999.999"])
def test_three_decimals_that_are_kept_read_back_in_every_language(text: str) -> None:
    for language in ("en", "id"):
        with translation.override(language):
            assert ambiguity("rate", clear_number(text)) is None
    assert Decimal(plain_number(clear_number(text))) == Decimal(text)


def test_a_form_tells_of_an_unclear_number_once_and_of_the_rest() -> None:
    with translation.override("en"):
        values, faults = read_typed(
            InferenceQuestion, {"model": "m", "users": "2,000", "headroom": "7", "tpot_ms": "12,5"}
        )
    assert [(fault.field, fault.code) for fault in faults] == [("users", "ambiguous"), ("headroom", "out_of_range")]
    assert values["tpot_ms"] == 12.5


def test_an_underscore_is_no_part_of_a_number() -> None:
    _values, (fault,) = read_fields(InferenceQuestion, {"requests_per_second": "1_0"})
    assert (fault.field, fault.message) == ("requests_per_second", "Not a number.")


@pytest.mark.django_db
def test_the_plan_page_asks_what_two_thousand_with_a_comma_means(catalog: LoadReport) -> None:
    answer = Client().get("/?model=Llama 3.1 8B&users=2,000&requests_per_user_per_day=5")
    assert answer.status_code == 400
    assert "2000, or 2.0" in answer.content.decode()
    assert Client().get("/?model=Llama 3.1 8B&users=2000&requests_per_user_per_day=2,5").status_code == 200


@pytest.fixture
def tenant(catalog: LoadReport) -> Tenant:
    return tenant_factory()


def indonesian(tenant: Tenant) -> Client:
    client = signed_in(tenant, Role.BUYER)
    client.cookies["django_language"] = "id"
    return client


@pytest.mark.django_db
def test_a_quote_form_never_takes_rupiah_for_a_thousandth(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS | {"currency": "IDR"})
    client, page = indonesian(tenant), address("quote", tenant, quote.uuid)
    added = client.post(page, fields(client.get(page).content.decode()) | {"action": "add:fx"}, follow=True)
    sent = fields(added.content.decode())
    rate = {"fx-0-rate": "16.300", "fx-0-rate_date": "2026-11-27", "fx-0-source": "JISDOR"}
    refused = client.post(page, sent | rate | {"action": "save"})
    assert refused.status_code == 400
    assert "16300" in refused.content.decode()
    assert fields(refused.content.decode())["fx-0-rate"] == "16.300"
    price = {"items-0-unit_price": "1.690.000,5"}
    assert client.post(page, sent | rate | price | {"fx-0-rate": "16300", "action": "save"}).status_code == 302
    terms = Quote.objects.get().terms
    assert Decimal(terms["fx"][0]["rate"]) == 16300
    assert Decimal(terms["items"][0]["unit_price"]) == Decimal("1690000.5")


@pytest.mark.django_db
def test_a_kept_price_of_three_decimals_can_be_saved_again(tenant: Tenant) -> None:
    items = [{**TERMS["items"][0], "unit_price": "27.547"}]
    quote = create_quote(scope=tenant.scope(), terms=TERMS | {"items": items})
    client, page = indonesian(tenant), address("quote", tenant, quote.uuid)
    sent = fields(client.get(page).content.decode())
    assert sent["items-0-unit_price"] == "27.5470"
    assert client.post(page, sent | {"action": "save"}).status_code == 302
    assert Decimal(Quote.objects.get().terms["items"][0]["unit_price"]) == Decimal("27.547")


@pytest.mark.django_db
def test_an_exchange_rate_is_asked_about_and_kept_as_meant(tenant: Tenant) -> None:
    client, page = indonesian(tenant), address("exchange-rates", tenant)
    sent = {"base": "USD", "quote": "IDR", "source": "JISDOR", "rate_date": "2026-11-27"}
    assert client.post(page, sent | {"rate": "16.300"}).status_code == 400
    assert not ExchangeRate.objects.exists()
    assert client.post(page, sent | {"rate": "16.300,25"}).status_code == 302
    assert ExchangeRate.objects.get().rate == Decimal("16300.25")


@pytest.mark.usefixtures("catalog")
def test_a_large_number_is_read_and_shown_with_its_suffix(client: Client) -> None:
    question = "model=Llama+3.1+70B&method=lora&tokens=15T&sequence_length=4096"
    page = client.get(f"/training/?{question}").content.decode()
    assert re.search(r'name="tokens"[^>]* value="15T"', page)
    assert "15T tokens" in page
    plain = client.get(f"/training/?{question.replace('15T', '15000000000000')}").content.decode()
    assert re.search(r'name="tokens"[^>]* value="15T"', plain)
    odd = client.get(f"/training/?{question.replace('15T', '15000000000001')}").content.decode()
    assert re.search(r'name="tokens"[^>]* value="15000000000001"', odd)
