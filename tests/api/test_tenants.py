"""The API of organizations: keys and sessions, memberships, invitations, price books, the audit log."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.core import mail
from django.test import Client

from planner.models import ApiKey, Membership, PriceBook, Role
from planner.permissions import KEY_SCOPES
from tests.api.callers import Caller, fault, person, program
from tests.planner.organizations import Tenant, tenant_factory, user_factory

pytestmark = pytest.mark.django_db


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
