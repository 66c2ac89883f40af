"""The API of organizations: keys and sessions, memberships, invitations, price books, the audit log."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core import mail
from django.test import Client

from catalog.selectors import catalog_snapshot
from catalog.services import LoadReport
from planner.engine.hardware import Offer
from planner.models import ApiKey, AuditEntry, Membership, PriceBook, Role
from planner.permissions import KEY_SCOPES
from planner.services.api_keys import create_key
from planner.services.organization_inputs import KeyInput
from tests.planner.organizations import Tenant, tenant_factory, user_factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme(catalog: LoadReport) -> Tenant:
    return tenant_factory("Acme")


class Caller:
    """Calls the API with a key, or with a person's session."""

    def __init__(self, key: str = "", client: Client | None = None, **headers: str) -> None:
        self.client = client or Client()
        self.headers = ({"Authorization": f"Bearer {key}"} if key else {}) | headers

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data: dict[str, Any] = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        return self.client.generic(method, f"/api/v1/{path}", headers=self.headers | headers, **data)

    def list(self, path: str) -> list[Any]:
        answer = self("GET", path)
        assert answer.status_code == 200, answer.content
        rows: list[Any] = answer.json()["results"]
        return rows


@pytest.fixture
def owner(acme: Tenant) -> Caller:
    return person(acme, Role.OWNER)


def person(tenant: Tenant, role: Role, **headers: str) -> Caller:
    client = Client()
    client.force_login(tenant.people[role])
    return Caller(client=client, **headers)


def program(tenant: Tenant, *scopes: str, role: str = "buyer") -> Caller:
    values = KeyInput(name="test", service_account=f"ERP {role}", role=role, scopes=scopes)
    return Caller(create_key(scope=tenant.scope(), values=values).key)


def fault(answer: Any) -> tuple[int, str, str | None]:
    (error,) = answer.json()["errors"]
    return answer.status_code, error["code"], error["attr"]


def test_a_wrong_authorization_is_401_everywhere_never_nobodys(acme: Tenant) -> None:
    for given in ("Bearer takar_nosuchkey", "Bearer", "Basic dXNlcjpwYXNz", "takar_x", "Bearer \xe9"):
        for path, method in (("catalog/gpus/", "GET"), ("plans/inference/", "POST"), ("price-books/", "GET")):
            answer = Caller(Authorization=given)(method, path, {} if method == "POST" else None)
            assert fault(answer)[:2] == (401, "authentication_failed"), (given, path)
            assert answer["WWW-Authenticate"] == 'Bearer realm="Takar"'


def test_a_session_needs_the_csrf_token_to_change_something(acme: Tenant) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(acme.people[Role.OWNER])
    caller = Caller(client=client)
    assert caller("GET", "price-books/").status_code == 200
    refused = caller("POST", "price-books/", {"name": "x"})
    assert fault(refused)[:2] == (403, "permission_denied")
    assert not PriceBook.objects.exists()


def test_people_in_several_organizations_name_one(acme: Tenant, owner: Caller) -> None:
    other = tenant_factory("Other")
    assert owner("GET", "memberships/").status_code == 200
    Membership.objects.create(organization=other.organization, user=acme.people[Role.OWNER], role=Role.VIEWER)
    assert fault(owner("GET", "memberships/")) == (400, "invalid", "Takar-Organization")
    for name in (other.organization.slug, str(other.organization.uuid)):
        named = owner("GET", "memberships/", **{"Takar-Organization": name})
        assert {row["name"] for row in named.json()["results"]} >= {"owner-other@example.org"}
    assert fault(owner("GET", "memberships/", **{"Takar-Organization": "no-such"}))[:2] == (404, "not_found")
    stranger = Client()
    stranger.force_login(user_factory("stranger"))
    assert fault(Caller(client=stranger)("GET", "memberships/")) == (400, "invalid", "Takar-Organization")


def test_an_organization_is_founded_renamed_and_listed(owner: Caller, acme: Tenant) -> None:
    made = owner("POST", "organizations/", {"name": "Second"})
    assert made.status_code == 201
    assert made["Location"] == f"/api/v1/organizations/{made.json()['id']}/"
    assert made.json()["role"] == "owner"
    renamed = owner("PATCH", f"organizations/{made.json()['id']}/", {"name": "Second Ltd"})
    assert renamed.json()["name"] == "Second Ltd"
    assert {row["name"] for row in owner.list("organizations/")} == {"Acme", "Second Ltd"}
    key = program(acme, "organization:read")
    assert [row["name"] for row in key.list("organizations/")] == ["Acme"]
    assert fault(key("POST", "organizations/", {"name": "x"}))[:2] == (401, "not_authenticated")


def test_an_idempotency_key_makes_one(owner: Caller) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    first, again = (owner("POST", "price-books/", {"name": "Contract"}, **key) for _ in range(2))
    assert first.status_code == again.status_code == 201
    assert first.json()["id"] == again.json()["id"]
    assert fault(owner("POST", "price-books/", {"name": "Other"}, **key))[:2] == (422, "key_reused")
    assert PriceBook.objects.count() == 1


def test_members_are_listed_changed_and_removed(owner: Caller, acme: Tenant) -> None:
    rows = {row["name"]: row for row in owner.list("memberships/")}
    assert rows["viewer-acme@example.org"]["kind"] == "person"
    viewer = f"memberships/{rows['viewer-acme@example.org']['id']}/"
    assert owner("PATCH", viewer, {"role": "planner"}).json()["role"] == "planner"
    assert fault(owner("PATCH", viewer, {"role": "king"})) == (400, "invalid", "role")
    assert owner("DELETE", viewer).status_code == 204
    assert fault(owner("GET", viewer))[:2] == (404, "not_found")
    mine = f"memberships/{rows['owner-acme@example.org']['id']}/"
    assert fault(owner("DELETE", mine))[:2] == (409, "last_owner")
    assert [row["role"] for row in owner.list("memberships/?role=buyer")] == ["buyer"]


def test_an_invitation_is_mailed_listed_accepted_and_revoked(owner: Caller, acme: Tenant) -> None:
    made = owner("POST", "invitations/", {"email": "guest@example.org", "role": "buyer"})
    assert made.status_code == 201
    link = made.json()["link"]
    assert link in mail.outbox[0].body
    assert "link" not in owner.list("invitations/")[0]
    guest = Client()
    guest.force_login(user_factory("guest"))
    accepted = Caller(client=guest)("POST", "invitations/accept/", {"token": link.rstrip("/").rsplit("/", 1)[1]})
    assert accepted.json()["role"] == "buyer"
    invitation = f"invitations/{made.json()['id']}/"
    assert owner("GET", invitation).json()["status"] == "accepted"
    assert fault(owner("POST", f"{invitation}revoke/"))[:2] == (409, "already_accepted")
    key = program(acme, *KEY_SCOPES)
    assert fault(key("POST", "invitations/", {"email": "x@example.org"}))[:2] == (403, "permission_denied")


def test_a_key_is_shown_once_and_works_until_revoked(owner: Caller, acme: Tenant) -> None:
    body = {"name": "nightly", "service_account": "ERP", "role": "viewer", "scopes": ["price_books:read"]}
    key = {"Idempotency-Key": str(uuid4())}
    made = owner("POST", "keys/", body, **key)
    assert made.status_code == 201
    secret = made.json()["key"]
    assert owner("POST", "keys/", body, **key).json()["key"] is None
    assert "key" not in owner.list("keys/")[0]
    program_ = Caller(secret)
    assert program_("GET", "price-books/").status_code == 200
    refused = program_("POST", "price-books/", {"name": "x"})
    assert refused.json()["errors"][0]["allowed"] == "the role buyer"
    revoked = owner("POST", f"keys/{made.json()['id']}/revoke/")
    assert revoked.json()["status"] == "revoked"
    assert fault(program_("GET", "price-books/"))[0] == 401
    assert ApiKey.objects.get().last_used_at is not None


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


def test_lists_are_paged_by_cursor_the_latest_first(owner: Caller) -> None:
    for number in range(5):
        owner("POST", "price-books/", {"name": f"Book {number}"})
    names: list[str] = []
    path = "price-books/?limit=2"
    while path:
        page = owner("GET", path).json()
        names += [row["name"] for row in page["results"]]
        path = page["next"].partition("/api/v1/")[2] if page["next"] else ""
    assert names == [f"Book {number}" for number in (4, 3, 2, 1, 0)]
    for cursor in ("x", "cD1ub25zZW5zZQ==", "cD0%3D"):
        assert fault(owner("GET", f"price-books/?cursor={cursor}")) == (400, "invalid", "cursor")
    assert fault(owner("GET", "price-books/?colour=red"))[:2] == (400, "unknown_field")


def test_the_audit_log_names_author_key_and_change(owner: Caller, acme: Tenant) -> None:
    erp = program(acme, "price_books:read", "price_books:write")
    book = erp("POST", "price-books/", {"name": "Contract"}).json()
    owner("PUT", f"price-books/{book['id']}/", {"name": "Contract 2"})
    newest, before = owner.list("audit/?kind=pricebook")
    assert (newest["by"], newest["note"], newest["action"]) == ("owner-acme@example.org", None, "change")
    assert newest["changes"] == {"name": ["Contract", "Contract 2"]}
    assert newest["address"] == "127.0.0.1"
    assert before["by"] == "ERP buyer"
    assert before["note"].startswith("API key takar_")
    assert [row["action"] for row in owner.list("audit/?action=change&kind=pricebook")] == ["change"]
    assert fault(person(acme, Role.BUYER)("GET", "audit/"))[0] == 403


def test_keys_are_counted_apart(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = program(acme, "price_books:read"), program(acme, "price_books:read", role="viewer")
    used, fresh = (int(caller("GET", "price-books/")["RateLimit-Remaining"]) for caller in (first, second))
    assert used == fresh
    assert int(first("GET", "price-books/")["RateLimit-Remaining"]) == used - 1


def test_ids_are_public_names_alone(owner: Caller) -> None:
    made = owner("POST", "price-books/", {"name": "Contract"}).json()
    assert UUID(made["id"])
    assert "pk" not in made
    assert "organization" not in made
