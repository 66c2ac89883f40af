"""Quotes in pages: the journey from the plan to the PDF, for each role and for outsiders."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from planner.models import Quote, Role, ShareLink
from planner.services.quote_files import render
from planner.services.quotes import create_quote, issue_quote, priced, revise_quote
from planner.services.scenarios import save_scenario
from tests.frontend.quote_pages import QUERY, address, fields, in_words_of, shown_once, signed_in
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import QUESTION, TERMS


@pytest.mark.usefixtures("catalog")
def test_from_the_plan_to_an_issued_quote(tenant: Tenant) -> None:
    client = signed_in(tenant, Role.BUYER)
    page = client.get(f"/?{QUERY}").content.decode()
    link = re.search(r'href="(/save/inference/[^"]+then=quote)"', page)
    assert link is not None
    save = client.get(link[1].replace("&amp;", "&"))
    question = re.search(r'name="question" value="([^"]+)"', save.content.decode())
    assert question is not None
    posted = {"question": question[1].replace("&amp;", "&"), "then": "quote", "name": "Chat", "scenario": ""}
    answer = client.post("/save/inference/", posted, follow=True)
    assert answer.status_code == 200
    quote = Quote.objects.get()
    draft = answer.content.decode()
    assert "The buyer has no name" in draft
    sent = fields(draft) | {"buyer-name": "Acme Pte. Ltd.", "tax-country": "ID"}
    draft = client.post(
        address("quote", tenant, quote.uuid), sent | {"action": "suggest:0"}, follow=True
    ).content.decode()
    assert "The price of line 2, Model weights, is not known." in draft
    refused = client.post(address("quote", tenant, quote.uuid), fields(draft) | {"action": "issue"})
    assert refused.status_code == 400
    assert "The price of line 2" in refused.content.decode()
    sent = fields(draft) | {"items-1-unit_price": "0.023", "action": "add:shares"}
    draft = client.post(address("quote", tenant, quote.uuid), sent, follow=True).content.decode()
    sent = fields(draft) | {"shares-0-percent": "10", "shares-0-of": "compute", "action": "issue"}
    issued = client.post(address("quote", tenant, quote.uuid), sent, follow=True).content.decode()
    quote.refresh_from_db()
    assert quote.number in issued
    assert "PPN" in issued
    assert 'class="quote-form"' not in issued
    for form, start in (("pdf", b"%PDF-"), ("xlsx", b"PK"), ("csv", b"\xef\xbb\xbfquote"), ("json", b"{")):
        file = client.get(address("quote-file", tenant, quote.uuid, form))
        assert file.content.startswith(start)
        assert quote.number in file["Content-Disposition"]
    assert client.get(address("quote-file", tenant, quote.uuid, "exe")).status_code == 404
    assert client.get(address("quote-file", tenant, quote.uuid, "pdf") + "?language=xx").status_code == 404


PAGES = ("scenarios", "compare-scenarios", "quotes")


@pytest.mark.usefixtures("catalog")
def test_outsiders_find_nothing_and_viewers_change_nothing(tenant: Tenant) -> None:
    found = save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    quote = create_quote(scope=tenant.scope(), terms=TERMS)
    outsider, viewer = signed_in(tenant_factory("Other"), Role.OWNER), signed_in(tenant, Role.VIEWER)
    reads = [address(name, tenant) for name in PAGES]
    reads += [address("scenario", tenant, found.uuid), address("scenario-changes", tenant, found.uuid)]
    reads += [address("quote", tenant, quote.uuid), address("quote-file", tenant, quote.uuid, "csv")]
    writes = [
        address("new-quote", tenant),
        address("quote-act", tenant, quote.uuid),
        address("quote", tenant, quote.uuid),
    ]
    writes += [
        address("scenario-act", tenant, found.uuid, action) for action in ("rename", "clone", "share", "archive")
    ]
    for path in reads:
        assert outsider.get(path).status_code == 404, path
        assert Client().get(path).status_code == 302, path
        assert viewer.get(path).status_code == 200, path
    for path in writes:
        assert outsider.post(path, {"action": "delete"}).status_code == 404, path
        assert viewer.post(path, {"action": "delete", "name": "x"}).status_code == 403, path
    assert Quote.objects.count() == 1


def test_a_draft_in_the_list_and_in_indonesian(tenant: Tenant) -> None:
    create_quote(scope=tenant.scope(), terms=TERMS)
    issued = create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    client = signed_in(tenant, Role.BUYER)
    assert client.get(address("quotes", tenant)).content.decode().count("USD\xa0468,835.20") == 2
    assert client.get(address("quotes", tenant) + "?status=issued").content.decode().count("USD\xa0468") == 1
    client.cookies["django_language"] = "id"
    page = client.get(address("quote", tenant, issued.uuid)).content.decode()
    assert "USD\xa0468.835,20" in page
    assert priced(issued).snapshot.total.term == Decimal("468835.20")


def test_an_issued_quote_is_handed_over_by_a_link_without_an_account(tenant: Tenant) -> None:
    draft = create_quote(scope=tenant.scope(), terms={**TERMS, "tax": {"country": "ID"}})
    client = signed_in(tenant, Role.BUYER)
    page = client.get(address("quote", tenant, draft.uuid)).content.decode()
    assert "To hand it over, issue it" in page
    assert "Links for reading" not in page
    assert client.post(address("quote-act", tenant, draft.uuid), {"action": "share"}).status_code == 409
    quote = issue_quote(scope=tenant.scope(), quote=draft)
    page = client.get(address("quote", tenant, quote.uuid)).content.decode()
    assert "To hand it over, send the PDF, or a link from below" in page
    act = address("quote-act", tenant, quote.uuid)
    form = {"action": "share", "days": "7", "name": "Acme", "once": shown_once(page)}
    assert [client.post(act, form).status_code for _ in range(2)] == [302, 302]
    assert ShareLink.objects.count() == 1
    page = client.get(address("quote", tenant, quote.uuid)).content.decode()
    link = re.search(r"http://testserver(/shared/[\w-]+/)", page)
    assert link is not None
    assert link[1] not in client.get(address("quote", tenant, quote.uuid)).content.decode()

    seen = Client().get(link[1])
    shown = seen.content.decode()
    assert all(text in shown for text in (quote.number, "Acme Pte. Ltd.", "of 11/12 of the net total", "Issued"))
    assert in_words_of(quote) in shown
    pdf = Client().get(f"{link[1]}quote.pdf?language=id")
    assert pdf.content == render(priced(quote).snapshot, "pdf", "id")
    for answer in (seen, pdf):
        assert (answer["Referrer-Policy"], answer["X-Robots-Tag"]) == ("no-referrer", "noindex, nofollow")
        assert answer["Cache-Control"] == "private, no-store"
    assert Client().get(f"{link[1]}quote.pdf?language=xx").status_code == 404

    newer = issue_quote(scope=tenant.scope(), quote=revise_quote(scope=tenant.scope(), quote=quote))
    assert f"No longer good: {newer.number} has taken its place." in Client().get(link[1]).content.decode()
    row = ShareLink.objects.get()
    other = create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    elsewhere = address("quote-act", tenant, other.uuid)
    assert client.post(elsewhere, {"action": "revoke", "link": str(row.uuid)}).status_code == 404
    planner = signed_in(tenant, Role.PLANNER)
    for action in ("share", "revoke"):
        assert planner.post(act, {"action": action, "link": str(row.uuid)}).status_code == 403
    assert client.post(act, {"action": "share", "days": "7000"}, follow=True).status_code == 200
    assert ShareLink.objects.count() == 1
    assert Client().get(link[1]).status_code == 200
    client.post(act, {"action": "revoke", "link": str(row.uuid)})
    assert Client().get(link[1]).status_code == 404
    assert Client().get(f"{link[1]}quote.pdf").status_code == 404


def test_net_stands_above_the_tax_and_the_total_below_it(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms={**TERMS, "tax": {"country": "ID"}}, issue=True)
    page = signed_in(tenant, Role.BUYER).get(address("quote", tenant, quote.uuid)).content.decode()
    sums = page[page.index("<tfoot>") : page.index("</tfoot>")]
    tax = next(line.label for line in priced(quote).snapshot.lines if line.category == "tax")
    assert sums.index("Net") < sums.index(tax) < sums.index("Total with tax")
    assert page.count(f">{tax}<small>") == 1
    assert "12\xa0% of 11/12 of the net total" in sums


def test_an_old_exchange_rate_is_told_before_the_quote_is_issued(tenant: Tenant) -> None:
    day = timezone.localdate() - timedelta(days=1234)
    rate = {"base": "USD", "quote": "IDR", "rate": "16300", "rate_date": day.isoformat(), "source": "our bank"}
    items = [{**TERMS["items"][0], "currency": "USD"}]
    quote = create_quote(scope=tenant.scope(), terms={**TERMS, "currency": "IDR", "items": items, "fx": [rate]})
    client = signed_in(tenant, Role.BUYER)
    page = client.get(address("quote", tenant, quote.uuid)).content.decode()
    assert "The rate from USD to IDR is 1,234 days old: " in page
    client.cookies["django_language"] = "id"
    page = client.get(address("quote", tenant, quote.uuid)).content.decode()
    assert "Kurs dari USD ke IDR sudah berumur 1.234 hari: " in page


def test_a_table_that_is_refused_is_refused_in_the_pages_language(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS)
    client = signed_in(tenant, Role.BUYER)
    client.cookies["django_language"] = "id"
    heading, line = render(priced(quote).snapshot, "csv").decode().splitlines()[:2]
    for table, said in (
        ("a,b", "baris 1: baris judulnya harus quote,currency,"),
        (f"{heading}\n{line},x", "baris 2: 18 sel, bukan 17"),
        (f"{heading}\n{line.replace('53.52', 'x')}", "baris 2, unit_price: 'x' bukan bilangan seperti 1234.50"),
        (f"{heading}\n{line.replace(',12,', ',y,')}", "baris 2, months: 'y' bukan jumlah bulan"),
        ("x" * 2**21, "Berkasnya terlalu panjang. Yang boleh: sampai 1.048.576 byte"),
    ):
        file = SimpleUploadedFile("lines.csv", table.encode())
        answer = client.post(address("quote-import", tenant, quote.uuid), {"file": file})
        assert answer.status_code == 400
        assert said in html.unescape(answer.content.decode())


def test_a_row_that_is_still_empty_is_no_fault(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS)
    client = signed_in(tenant, Role.BUYER)
    sent = fields(client.get(address("quote", tenant, quote.uuid)).content.decode())
    added = client.post(address("quote", tenant, quote.uuid), sent | {"action": "add:fx"})
    page = added.content.decode()
    assert added.status_code == 200
    assert "fx-0-rate" in fields(page)
    assert "Nothing was saved or issued" not in page
    assert 'data-unsaved="already"' in page
    twice = client.post(address("quote", tenant, quote.uuid), fields(page) | {"action": "add:fx"})
    assert (twice.status_code, "fx-1-rate" in fields(twice.content.decode())) == (200, True)
    filled = fields(page) | {"fx-0-rate": "1,2,3", "action": "add:shares"}
    assert client.post(address("quote", tenant, quote.uuid), filled).status_code == 400
    saved = client.post(address("quote", tenant, quote.uuid), fields(page) | {"action": "save"})
    assert saved.status_code == 400
    client.cookies["django_language"] = "id"
    again = client.post(address("quote", tenant, quote.uuid), fields(page) | {"action": "save"}).content.decode()
    assert "Bukan tanggal. Yang boleh: tanggal seperti 2026-11-29" in again


def test_revise_accept_and_delete(tenant: Tenant) -> None:
    client = signed_in(tenant, Role.BUYER)
    first = create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    draft = create_quote(scope=tenant.scope(), terms=TERMS)
    revised = [client.post(address("quote-act", tenant, first.uuid), {"action": "revise"}).headers for _ in range(2)]
    assert revised[0]["Location"] == revised[1]["Location"]
    assert Quote.objects.filter(replaces=first).count() == 1
    client.post(address("quote-act", tenant, first.uuid), {"action": "accept"})
    first.refresh_from_db()
    assert first.status == "accepted"
    assert client.post(address("quote-act", tenant, first.uuid), {"action": "delete"}).status_code == 409
    client.post(address("quote-act", tenant, draft.uuid), {"action": "delete"})
    assert not Quote.objects.filter(pk=draft.pk).exists()


def test_of_two_tabs_the_second_does_not_write_over_the_first_unseen(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS)
    client = signed_in(tenant, Role.BUYER)
    page_of_both = client.get(address("quote", tenant, quote.uuid)).content.decode()
    seen = re.search(r'name="seen" value="([^"]+)"', page_of_both)[1]  # type: ignore[index]

    def save(title: str, seen: str) -> Any:
        return client.post(address("quote", tenant, quote.uuid), {"seen": seen, "title": title, "action": "save"})

    assert save("First", seen).status_code == 302
    refused = save("Second", seen)
    assert refused.status_code == 409
    shown = refused.content.decode()
    assert "Somebody has changed this draft meanwhile" in shown
    assert 'value="Second"' in shown
    quote.refresh_from_db()
    assert quote.title == "First"
    now = re.search(r'name="seen" value="([^"]+)"', shown)[1]  # type: ignore[index]
    assert save("Second", now).status_code == 302


@pytest.mark.parametrize(
    ("what", "left"), [("items-0", 0), ("items-1", 1), ("items-" + "9" * 5000, 1), ("items--1", 1), ("nothing-0", 1)]
)
def test_a_button_takes_out_the_row_it_names(tenant: Tenant, what: str, left: int) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS)
    page = address("quote", tenant, quote.uuid)
    client = signed_in(tenant, Role.BUYER)
    sent = fields(client.get(page).content.decode()) | {"action": f"remove:{what}"}
    assert client.post(page, sent).status_code == 302
    quote.refresh_from_db()
    assert len(quote.terms["items"]) == left
