"""A quote's CSV, out and in again: the same lines, by the service, over REST and from the page."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from planner.documents.tables import read_csv
from planner.engine.errors import InvalidQuestion
from planner.engine.quote_math import Line
from planner.models import Quote, Role
from planner.selectors.scope import Forbidden
from planner.services import quote_files, quotes
from planner.services.quote_import import import_lines
from planner.services.tenancy import Conflict
from tests.planner.organizations import Tenant

pytestmark = pytest.mark.django_db
TERMS = {
    "currency": "IDR",
    "months": 7,
    "buyer": {"name": "PT Buyer"},
    "items": [
        {"category": "storage", "unit": "gib_month", "quantity": "263.5", "unit_price": "1157.3", "label": "=1+1"},
        {"category": "compute", "unit": "node_hour", "quantity": "730", "unit_price": "872376", "label": "H100"},
        {"category": "services", "cadence": "once", "quantity": "6", "unit_price": "950", "currency": "USD"},
        {"category": "licences", "label": "unknown yet"},
    ],
    "fx": [{"base": "USD", "quote": "IDR", "rate": "16300", "rate_date": "2026-11-28", "source": "bank"}],
    "shares": [
        {"category": "support", "percent": "6", "of": ["compute"], "source": "contract"},
        {"category": "discount", "percent": "7.5", "label": "@friends"},
    ],
    "tax": {
        "country": "",
        "name": "PPN",
        "rate": "0.12",
        "base_numerator": 11,
        "base_denominator": 12,
        "source": "law",
    },
}


@pytest.fixture
def first(tenant: Tenant) -> Quote:
    return quotes.create_quote(scope=tenant.scope(), terms=TERMS)


def table(quote: Quote) -> bytes:
    return quote_files.render(quotes.priced(quote).snapshot, "csv")


def lines(quote: Quote) -> list[Line]:
    """Without their numbers, which count in the order they were entered."""
    return [replace(line, id="") for line in quotes.priced(quote).snapshot.lines]


def test_the_same_lines_come_back(tenant: Tenant, first: Quote) -> None:
    terms = {"buyer": {"name": "Other"}, "tax": TERMS["tax"]}
    second = quotes.create_quote(scope=tenant.scope(), terms=terms)
    second = import_lines(scope=tenant.scope(), quote=second, data=table(first))
    assert lines(second) == lines(first)
    assert quotes.priced(second).snapshot.total == quotes.priced(first).snapshot.total
    assert (second.terms["currency"], second.terms["months"]) == ("IDR", 7)
    assert second.terms["buyer"]["name"] == "Other"
    third = import_lines(scope=tenant.scope(), quote=second, data=table(second))
    assert table(third) == table(second)


def test_an_edited_quantity_is_reckoned_anew(tenant: Tenant, first: Quote) -> None:
    edited = table(first).replace(b",730,node_hour,", b",1460,node_hour,")
    changed = import_lines(scope=tenant.scope(), quote=first, data=edited)
    compute = next(line for line in lines(changed) if line.category == "compute")
    assert compute.monthly == Decimal(1460 * 872376)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ((b",730,node_hour,", b",many,node_hour,"), "row 2, quantity: 'many' is not a number"),
        ((b"category", b"kind"), "the heading must be"),
        ((b",IDR,7,line-1", b",USD,7,line-1"), "row 3, currency: 'USD' is not that of the rows before"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changed(
    tenant: Tenant, first: Quote, edit: tuple[bytes, bytes], words: str
) -> None:
    with pytest.raises(InvalidQuestion, match=words):
        import_lines(scope=tenant.scope(), quote=first, data=table(first).replace(*edit, 1))
    first.refresh_from_db()
    assert first.terms["months"] == 7


def test_terms_bound_a_table_too(tenant: Tenant, first: Quote) -> None:
    for edit in ((b",IDR,7,", b",IDR,900,"), (b",IDR,7,", b",XXQ,7,"), (b",IDR,7,", b",IDR,x,")):
        with pytest.raises(InvalidQuestion):
            import_lines(scope=tenant.scope(), quote=first, data=table(first).replace(*edit))


def test_an_issued_quote_and_a_viewers_stay(tenant: Tenant, first: Quote) -> None:
    data = table(first)
    with pytest.raises(Forbidden):
        import_lines(scope=tenant.scope(Role.VIEWER), quote=first, data=data)
    complete = [item for item in TERMS["items"] if "quantity" in item]  # type: ignore[attr-defined]
    issued = quotes.create_quote(scope=tenant.scope(), terms=TERMS | {"items": complete}, issue=True)
    with pytest.raises(Conflict):
        import_lines(scope=tenant.scope(), quote=issued, data=data)


def test_over_rest_with_its_tag(client: Client, tenant: Tenant, first: Quote) -> None:
    client.force_login(tenant.people[Role.BUYER])
    address = f"/api/v1/quotes/{first.uuid}.csv"
    got = client.get(address)
    edited = got.content.replace(b",730,", b",731,")
    stale = client.put(address, edited, "text/csv", headers={"If-Match": '"other"'})
    assert stale.status_code == 412
    put = client.put(address, edited, "text/csv", headers={"If-Match": got["ETag"]})
    assert put.status_code == 200, put.content
    assert read_csv(client.get(address).content)[0].quantity == 731
    wrong = client.put(address, b"a,b", "text/csv")
    assert (wrong.status_code, wrong.json()["errors"][0]["code"]) == (400, "invalid_table")
    assert client.put(address, b"{}", "application/json").status_code == 415


def test_from_the_page(client: Client, tenant: Tenant, first: Quote) -> None:
    client.force_login(tenant.people[Role.BUYER])
    address = reverse("quote-import", args=[tenant.organization.slug, first.uuid])
    data = table(first).replace(b",730,", b",732,")
    done = client.post(address, {"file": SimpleUploadedFile("lines.csv", data)}, follow=True)
    assert "The lines are those of the file." in done.content.decode()
    first.refresh_from_db()
    assert [item["quantity"] for item in first.terms["items"]] == ["732", "263.5", None, "6"]
    refused = client.post(address, {"file": SimpleUploadedFile("lines.csv", b"x")})
    assert refused.status_code == 400
    assert "the heading must be" in refused.content.decode()
    assert client.post(address).status_code == 400
