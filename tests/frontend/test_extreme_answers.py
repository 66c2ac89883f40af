"""Answers at the edge of what can be asked: a page, a table and an export, never an error of ours."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client
from django.utils.translation import override

from catalog.services import LoadReport
from planner.models import Role
from planner.services.price_book_inputs import DiscountInput, PriceBookInput
from planner.services.price_books import add_entry, create_price_book
from tests.frontend.quote_pages import signed_in
from tests.planner.organizations import tenant_factory

pytestmark = pytest.mark.django_db
SMALL = "accelerators=l4,h100-sxm,b200-sxm&max_options=5"


@pytest.mark.parametrize(
    "query",
    [
        "model=Llama 3.1 8B&method=lora&tokens=1&gpus=1&sequence_length=16&global_batch_tokens=16",
        "model=Llama 3.1 8B&method=lora&tokens=1000&gpus=1",
        "model=Qwen3 0.6B&tokens=1000",
        "model=Qwen3 0.6B&tokens=1000&storage_usd_per_gib_month=0&checkpoints_kept=0",
        "model=Llama 3.1 8B&tokens=1e17&max_nodes=100000",
        "model=Llama 3.1 8B&tokens=1e9&goodput=0.05&gpu_hours_per_interruption=10",
    ],
)
def test_runs_of_a_moment_and_of_an_age(catalog: LoadReport, query: str) -> None:
    assert Client().get(f"/training/?{query}&{SMALL}").status_code == 200
    assert Client().get(f"/plans/training.csv?{query}&{SMALL}").status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "input_tokens=1&output_tokens=1&requests_per_second=0.000001",
        "input_tokens=1&output_tokens=1&requests_per_second=10000000&max_nodes=100000",
        "concurrency=10000000&max_nodes=100000",
        "concurrency=1&output_tokens=1",
        "requests_per_second=1&headroom=0.9&peak_factor=100",
        "requests_per_second=1&prefix_cache_hit=0.99&arrival_cv=0",
        "offline_requests=1&offline_hours=100000",
    ],
)
def test_loads_of_next_to_nothing_and_of_everybody(catalog: LoadReport, query: str) -> None:
    assert Client().get(f"/?model=Llama 3.1 8B&{query}&{SMALL}").status_code == 200
    assert Client().get(f"/plans/inference.csv?model=Llama 3.1 8B&{query}&{SMALL}").status_code == 200


@pytest.mark.parametrize("page", ["/?requests_per_second=1&", "/training/?tokens=1e9&"])
def test_a_price_book_that_gives_all_away(catalog: LoadReport, page: str) -> None:
    tenant = tenant_factory()
    scope = tenant.scope(Role.BUYER)
    book = create_price_book(scope=scope, values=PriceBookInput(name="Gift"))
    add_entry(scope=scope, book=book, values=DiscountInput(percent=Decimal("99.9999")))
    answer = signed_in(tenant, Role.BUYER).get(f"{page}model=Llama 3.1 8B&{SMALL}")
    assert answer.status_code == 200
    assert "Gift" in answer.content.decode()


def test_a_price_book_is_named_in_the_language_of_the_page(catalog: LoadReport) -> None:
    tenant = tenant_factory()
    create_price_book(scope=tenant.scope(Role.BUYER), values=PriceBookInput(name="Kontrak 2027"))
    client = signed_in(tenant, Role.BUYER)
    client.cookies["django_language"] = "id"
    with override("en"):
        for page in ("/?requests_per_second=1&", "/training/?tokens=1e9&"):
            shown = client.get(f"{page}model=Llama 3.1 8B&{SMALL}").content.decode()
            assert "buku harga Kontrak 2027" in shown
            assert "those of the price book" not in shown
