"""Price books, their entries and files, and exchange rates over the API."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.selectors import catalog_snapshot
from planner.engine.hardware import Offer
from planner.models import AuditEntry
from tests.api.callers import Caller, fault, program
from tests.planner.organizations import Tenant

pytestmark = pytest.mark.django_db


def listed() -> Offer:
    """A node that every engine runs on, at a list price."""
    return next(
        offer
        for offer in catalog_snapshot().offers
        if (offer.accelerator_key, offer.gpu_count, offer.purchase_option) == ("h100-sxm", 8, "on_demand")
    )


def test_a_price_book_is_written_and_planned_with_by_a_program(acme: Tenant) -> None:
    erp = program(acme, "price_books:read", "price_books:write", "plans")
    book = erp("POST", "price-books/", {"name": "Contract", "markup_percent": "12.50"}).json()
    assert (book["in_use"], book["markup_percent"], book["version"]) == (True, "12.5", 1)
    offer = listed()
    price = {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "amount": "0.10",
        "currency": "USD",
        "valid_until": "2099-12-31",
    }
    prices = f"price-books/{book['id']}/negotiated-prices/"
    made = erp("POST", prices, price)
    assert made.status_code == 201, made.content
    assert (made.json()["amount"], made.json()["unit"], made.json()["tax_percent"]) == ("0.1", "node_hour", "0")
    question = {"model": "Llama 3.1 8B", "requests_per_second": 1, "providers": [offer.provider], "max_options": 5}
    plan = erp("POST", "plans/inference/", question)
    best = plan.json()["options"][0]
    assert (best["price"]["usd_per_node_hour"], best["price"]["flags"]) == ("0.1000", ["negotiated_price"])
    assert plan["Cache-Control"] == "private, no-store"
    assert plan.json()["catalog_version"].endswith(f"+{book['id']}.2")
    anonymous = Caller()("POST", "plans/inference/", question).json()
    assert "+" not in anonymous["catalog_version"]
    assert anonymous["options"][0]["price"]["flags"] != ["negotiated_price"]
    no_plans = program(acme, "price_books:read", role="viewer")
    assert fault(no_plans("POST", "plans/inference/", question))[0] == 403


def test_entries_are_read_changed_and_removed(owner: Caller, acme: Tenant) -> None:
    book = owner("POST", "price-books/", {"name": "Contract"}).json()
    discounts = f"price-books/{book['id']}/discounts/"
    made = owner("POST", discounts, {"percent": "10"}).json()
    assert made["purchase_options"] == ["on_demand", "reserved_1y", "reserved_3y", "monthly", "capacity_block"]
    entry = f"{discounts}{made['id']}/"
    assert owner("PUT", entry, {"percent": "15", "provider": "aws"}).json()["percent"] == "15"
    assert fault(owner("PUT", entry, {"percent": "100"})) == (400, "out_of_range", "percent")
    assert fault(owner("PUT", entry, {"percent": 10})) == (400, "invalid", "percent")
    assert fault(owner("PUT", entry, {})) == (400, "required", "percent")
    assert fault(owner("PUT", entry, {"percent": "1", "provider": "no-such"})) == (400, "invalid", "provider")
    other = owner("POST", "price-books/", {"name": "Other"}).json()
    assert fault(owner("GET", entry.replace(book["id"], other["id"])))[0] == 404
    assert owner("DELETE", entry).status_code == 204
    assert owner.list(discounts) == []


def test_if_match_refuses_to_write_over_what_has_changed(owner: Caller) -> None:
    made = owner("POST", "price-books/", {"name": "Contract"}).json()
    book = f"price-books/{made['id']}/"
    etag = owner("GET", book)["ETag"]
    changed = owner("PUT", book, {"name": "Contract 2"}, **{"If-Match": etag})
    assert changed.status_code == 200
    assert changed["ETag"] != etag
    for method, path, body in (
        ("PUT", book, {"name": "x"}),
        ("POST", f"{book}discounts/", {"percent": "1"}),
        ("DELETE", book, None),
    ):
        assert fault(owner(method, path, body, **{"If-Match": etag}))[:2] == (412, "outdated")
    assert owner("DELETE", book, **{"If-Match": changed["ETag"]}).status_code == 204


def test_a_book_is_used_and_retired(owner: Caller) -> None:
    first, second = (owner("POST", "price-books/", {"name": name}).json() for name in ("One", "Two"))
    assert owner("POST", f"price-books/{second['id']}/use/").json()["in_use"] is True
    assert [row["name"] for row in owner.list("price-books/?in_use=true")] == ["Two"]
    assert owner("POST", f"price-books/{first['id']}/retire/").json()["in_use"] is False
    assert [row["name"] for row in owner.list("price-books/?in_use=true")] == ["Two"]
    owner("POST", f"price-books/{second['id']}/retire/")
    assert owner.list("price-books/?in_use=true") == []


def test_files_go_in_and_come_out_as_they_were(owner: Caller, acme: Tenant) -> None:
    book = owner("POST", "price-books/", {"name": "Contract"}).json()
    files = f"/api/v1/price-books/{book['id']}/files/"

    def upload(name: str, content: bytes) -> Any:
        return owner.client.generic("POST", f"{files}?name={name}", content, "application/octet-stream")

    content = b"%PDF-1.7 \x00\xff"
    made = upload("contract%20%C3%A9.pdf", content)
    assert made.status_code == 201
    assert made.json()["name"] == "contract é.pdf"
    got = owner.client.get(f"{files}{made.json()['id']}/content/", headers={"Accept": "application/pdf"})
    assert got.content == content
    assert got["Content-Type"] == "application/octet-stream"
    assert got["Content-Disposition"] == "attachment; filename*=UTF-8''contract%20%C3%A9.pdf"
    assert got["X-Content-Type-Options"] == "nosniff"
    assert AuditEntry.objects.filter(action=3, organization=acme.organization).count() == 1
    assert fault(upload("contract%20%C3%A9.pdf", content)) == (400, "invalid", "file")
    assert fault(upload("page.html", b"<script>")) == (400, "invalid", "file")
    assert fault(upload("picture.png", b"%PDF-1.7")) == (400, "invalid", "file")
    assert fault(upload("empty.pdf", b"")) == (400, "invalid", "file")
    assert fault(upload("..%2F..%2Fetc%2Fx.txt", b"a\x00b")) == (400, "invalid", "file")
    assert fault(upload("", content)) == (400, "invalid", "name")
    assert fault(upload("big.txt", b"x" * (10 * 2**20 + 1)))[:2] == (413, "too_large")
    assert owner.client.delete(f"{files}{made.json()['id']}/").status_code == 204


def test_exchange_rates_are_stated_and_taken_back(owner: Caller) -> None:
    made = owner("POST", "exchange-rates/", {"base": "USD", "quote": "idr", "rate": "16500.5", "source": "our bank"})
    assert made.json()["rate"] == "16500.5"
    assert fault(owner("POST", "exchange-rates/", {"base": "EUR", "quote": "IDR", "rate": "1", "source": "x"})) == (
        400,
        "invalid",
        "quote",
    )
    assert owner("DELETE", f"exchange-rates/{made.json()['id']}/").status_code == 204
    assert owner.list("exchange-rates/") == []
