"""Pages of price books, members, keys and the audit log: what is shown, what is refused and how it says so."""

from __future__ import annotations

import csv
import io
import re
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from planner.models import (
    ApiKey,
    AuditEntry,
    Discount,
    ExchangeRate,
    Invitation,
    Membership,
    PriceBook,
    PrivateInstanceType,
    Role,
)
from planner.services.price_book_inputs import PriceBookInput
from planner.services.price_books import create_price_book
from tests.planner.organizations import Tenant, user_factory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    cache.clear()


@pytest.fixture
def book(acme: Tenant) -> PriceBook:
    return create_price_book(scope=acme.scope(), values=PriceBookInput(name="Contract"))


@pytest.fixture
def buyer(acme: Tenant) -> Client:
    return signed_in(acme, Role.BUYER)


@pytest.fixture
def owner(acme: Tenant) -> Client:
    return signed_in(acme, Role.OWNER)


def signed_in(acme: Tenant, role: Role) -> Client:
    client = Client()
    client.force_login(acme.people[role])
    return client


def at(acme: Tenant, name: str, *args: object) -> str:
    return reverse(name, args=[acme.organization.slug, *args])


def text(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_a_book_is_made_filled_changed_and_deleted(acme: Tenant, buyer: Client) -> None:
    made = buyer.post(at(acme, "price-books"), {"name": "Contract", "markup_percent": "7.5"})
    book = PriceBook.objects.get()
    assert made["Location"] == at(acme, "price-book", book.uuid)
    new = at(acme, "price-book-entry-new", book.uuid, "discounts")
    given = {"percent": "12.5", "provider": "aws", "purchase_options": ["on_demand", "spot"], "reference": "<b>7</b>"}
    assert buyer.post(new, given).status_code == 302
    entry = Discount.objects.get()
    assert entry.purchase_options == ["on_demand", "spot"]
    page = buyer.get(at(acme, "price-book", book.uuid))
    assert "12.5 %" in text(page)
    assert "&lt;b&gt;7&lt;/b&gt;" in page.content.decode()
    edit = at(acme, "price-book-entry", book.uuid, "discounts", entry.uuid)
    assert 'value="12.5"' in buyer.get(edit).content.decode()
    assert buyer.post(edit, {"percent": "15"}).status_code == 302
    entry.refresh_from_db()
    assert (str(entry.percent.normalize()), entry.provider) == ("15", "")
    buyer.post(at(acme, "price-book-entry-remove", book.uuid, "discounts", entry.uuid))
    assert not Discount.objects.exists()
    buyer.post(at(acme, "price-book-delete", book.uuid))
    assert not PriceBook.objects.exists()


def test_faults_stand_beside_their_fields_and_what_was_typed_stays(
    acme: Tenant, buyer: Client, book: PriceBook
) -> None:
    new = at(acme, "price-book-entry-new", book.uuid, "negotiated-prices")
    given = {"provider": "no-such", "instance_type": "x", "amount": "1;5", "currency": "USD", "valid_from": "tomorrow"}
    answer = buyer.post(new, given)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert 'value="1;5"' in page
    for field, message in (("amount", "Not a decimal number: 1;5."), ("valid_from", "Not a date: tomorrow.")):
        assert re.search(rf'id="error-{field}"[^>]*>{re.escape(message)}', page), field
    unknown = buyer.post(new, given | {"amount": "1.5", "valid_from": ""})
    assert unknown.status_code == 400
    assert "Not in the catalog: no-such." in text(unknown)
    assert "Allowed: " in text(unknown)


def test_who_may_only_read_sees_no_buttons(acme: Tenant, book: PriceBook) -> None:
    viewer = signed_in(acme, Role.VIEWER)
    page = viewer.get(at(acme, "price-book", book.uuid))
    assert page.status_code == 200
    assert "Add a discount" not in text(page)
    assert viewer.get(at(acme, "price-book-entry-new", book.uuid, "discounts")).status_code == 403
    refused = viewer.post(at(acme, "price-book-delete", book.uuid))
    assert refused.status_code == 403
    assert "Your role in this organization" in text(refused)


def test_one_book_is_in_use_or_none(acme: Tenant, buyer: Client, book: PriceBook) -> None:
    buyer.post(at(acme, "price-books"), {"name": "Second"})
    second = PriceBook.objects.get(name="Second")
    buyer.post(at(acme, "price-book-use", second.uuid))
    assert PriceBook.objects.get(in_use=True) == second
    buyer.post(at(acme, "use-list-prices"))
    assert not PriceBook.objects.filter(in_use=True).exists()


def test_a_file_is_kept_and_only_ever_downloaded(acme: Tenant, buyer: Client, book: PriceBook) -> None:
    upload = at(acme, "price-book-upload", book.uuid)
    assert buyer.post(upload, {"file": SimpleUploadedFile("a.pdf", b"%PDF-1.7")}).status_code == 302
    file = book.files.get()
    got = signed_in(acme, Role.VIEWER).get(at(acme, "price-book-file", book.uuid, file.uuid))
    assert got.content == b"%PDF-1.7"
    assert got["Content-Type"] == "application/octet-stream"
    assert got["Content-Disposition"].startswith("attachment")
    assert AuditEntry.objects.filter(action=3, actor=acme.people[Role.VIEWER]).count() == 1
    for name, content, message in (
        ("a.html", b"<script>", "Not a type of file that is kept"),
        ("b.pdf", b"<script>", "The content is not what the name says"),
        ("c.txt", b"x" * (10 * 2**20 + 1), "It has 10,485,761 bytes"),
    ):
        refused = buyer.post(upload, {"file": SimpleUploadedFile(name, content)})
        assert refused.status_code == 400
        assert message in text(refused)
    assert "Choose a file." in text(buyer.post(upload, {}))
    buyer.post(at(acme, "price-book-file-delete", book.uuid, file.uuid))
    assert not book.files.exists()


def test_exchange_rates_are_stated_on_their_page(acme: Tenant, buyer: Client) -> None:
    page = at(acme, "exchange-rates")
    assert buyer.post(page, {"base": "usd", "rate": "16500", "quote": "idr", "source": "our bank"}).status_code == 302
    assert "1 USD = 16500 IDR" in text(buyer.get(page))
    wrong = buyer.post(page, {"base": "EUR", "rate": "1", "quote": "IDR", "source": "x"})
    assert "Not a usable currency" in text(wrong)
    buyer.post(at(acme, "exchange-rate-delete", ExchangeRate.objects.get().uuid))
    assert not ExchangeRate.objects.exists()


def invite(acme: Tenant, owner: Client, email: str = "guest@example.org") -> str:
    """The path of the link that the page shows."""
    answer = owner.post(at(acme, "invite"), {"email": email, "role": "planner"})
    (link,) = re.findall(r'class="secret">([^<]+)<', answer.content.decode())
    assert link in mail.outbox[-1].body
    return str(link).removeprefix("http://testserver")


def test_a_link_is_shown_once_and_leads_the_invited_in(acme: Tenant, owner: Client) -> None:
    path = invite(acme, owner)
    assert path not in owner.get(at(acme, "members")).content.decode()
    visitor = Client()
    shown = visitor.get(path)
    assert "Join Acme" in text(shown)
    # A stricter policy would take the origin from the form, and the form would be refused.
    assert shown["Referrer-Policy"] == "same-origin"
    visitor.force_login(user_factory("other"))
    assert "sign in with the invited address" in text(visitor.get(path))
    assert visitor.post(path).status_code == 409
    guest = Client()
    guest.force_login(user_factory("guest"))
    assert guest.post(path)["Location"] == at(acme, "organization")
    assert guest.post(path).status_code == 409
    assert Client().get("/invitations/no-such/").status_code == 404


def test_who_was_invited_can_sign_up_where_others_cannot(
    acme: Tenant, owner: Client, settings: Any, client: Client
) -> None:
    settings.ACCOUNT_SIGNUP_ENABLED = False
    assert "closed" in text(client.get(reverse("account_signup"))).lower()
    path = invite(acme, owner)
    client.get(path)
    strong = "a-long-and-unusual-phrase-7"
    client.post(reverse("account_signup"), {"email": "guest@example.org", "password1": strong, "password2": strong})
    client.post(path)
    assert Membership.objects.filter(user__email="guest@example.org", organization=acme.organization).exists()


def test_members_are_changed_and_the_last_owner_is_told_why_not(acme: Tenant, owner: Client) -> None:
    viewer = Membership.objects.get(user=acme.people[Role.VIEWER])
    owner.post(at(acme, "member-role", viewer.uuid), {"role": "buyer"})
    viewer.refresh_from_db()
    assert viewer.role == Role.BUYER
    wrong = owner.post(at(acme, "member-role", viewer.uuid), {"role": "king"}, follow=True)
    assert "Not a known choice" in text(wrong)
    mine = Membership.objects.get(user=acme.people[Role.OWNER])
    refused = owner.post(at(acme, "member-remove", mine.uuid))
    assert refused.status_code == 409
    assert "An organization needs an owner." in text(refused)
    owner.post(at(acme, "member-remove", viewer.uuid))
    assert not Membership.objects.filter(pk=viewer.pk).exists()


def test_an_open_invitation_is_revoked(acme: Tenant, owner: Client) -> None:
    invite(acme, owner)
    owner.post(at(acme, "invitation-revoke", Invitation.objects.get().uuid))
    assert Invitation.objects.get().revoked_at is not None
    assert owner.post(at(acme, "invite"), {"email": "no address", "role": "planner"}).status_code == 400


def test_a_key_is_shown_once_even_if_the_form_is_sent_again(acme: Tenant, owner: Client) -> None:
    form = {
        "once": str(uuid4()),
        "name": "nightly",
        "service_account": "ERP",
        "role": "buyer",
        "scopes": ["plans", "quotes:read"],
    }
    made = owner.post(at(acme, "keys"), form)
    (secret,) = re.findall(r'class="secret">(takar_[^<]+)<', made.content.decode())
    assert ApiKey.objects.get().scopes == ["plans", "quotes:read"]
    assert made["Cache-Control"].startswith("max-age=0, no-cache")
    again = owner.post(at(acme, "keys"), form, follow=True)
    assert "made already" in text(again)
    assert secret not in again.content.decode()
    changed = owner.post(at(acme, "keys"), form | {"name": "other"}, follow=True)
    assert "sent before" in text(changed)
    assert ApiKey.objects.count() == 1
    refused = owner.post(at(acme, "keys"), form | {"once": str(uuid4()), "scopes": [], "name": ""})
    assert refused.status_code == 400
    owner.post(at(acme, "key-revoke", ApiKey.objects.get().uuid))
    assert ApiKey.objects.get().revoked_at is not None


def test_the_audit_log_is_read_and_exported_and_the_export_is_in_it(acme: Tenant, owner: Client) -> None:
    owner.post(at(acme, "price-books"), {"name": "=1+1"})
    assert "=1+1" in text(owner.get(at(acme, "audit")))
    exported = owner.get(at(acme, "audit-csv"))
    rows = list(csv.DictReader(io.StringIO(exported.content.decode())))
    assert rows[0]["by"] == "owner-acme@example.org"
    assert {row["field"]: row["after"] for row in rows if row["kind"] == "pricebook"}["name"] == "'=1+1"
    assert "exported" in text(owner.get(at(acme, "audit")))
    assert signed_in(acme, Role.BUYER).get(at(acme, "audit-csv")).status_code == 403


def test_pages_speak_indonesian(acme: Tenant, owner: Client, book: PriceBook) -> None:
    owner.cookies["django_language"] = "id"
    for name, words in (
        ("members", "Undang rekan"),
        ("price-books", "Buku harga"),
        ("keys", "Kunci API"),
        ("audit", "Catatan audit"),
    ):
        assert words in text(owner.get(at(acme, name)))
    form = owner.get(at(acme, "price-book-entry-new", book.uuid, "private-instance-types"))
    assert "GPU dalam satu node" in text(form)


@pytest.mark.usefixtures("catalog")
def test_what_a_page_calls_something_is_understood_where_it_is_asked_for(acme: Tenant) -> None:
    book = create_price_book(scope=acme.scope(), values=PriceBookInput(name="Contract"))
    client = signed_in(acme, Role.BUYER)

    def add(kind: str, **typed: str) -> str:
        page = at(acme, "price-book-entry-new", book.uuid, kind)
        return client.post(page, typed, follow=True).content.decode()

    node = {"provider": "PT Jakarta", "name": "rack", "gpu_count": "8", "region": "Batam", "amount": "30"}
    node |= {"currency": "USD", "unit": "node_hour"}
    node |= {"purchase_option": "on_demand", "link": "auto", "fabric": "none"}
    for name, accelerator in enumerate(("H200 SXM5 141GB", "b200 sxm  180gb", "h200-sxm")):
        add(
            "private-instance-types",
            **node | {"name": f"rack-{name}", "accelerator": accelerator, "country": "ID"},
        )
    rows = PrivateInstanceType.objects.order_by("name")
    assert [(row.accelerator, row.country) for row in rows] == [
        ("h200-sxm", "ID"),
        ("b200-sxm", "ID"),
        ("h200-sxm", "ID"),
    ]
    page = add("discounts", provider="Genesis cloud", percent="10")
    assert Discount.objects.get().provider == "genesis"
    assert "8 × H200 SXM5 141GB" in page
    assert "Batam, Indonesia" in page
    assert "Not in the catalog" in add("discounts", provider="Genesis Sky", percent="10")
