"""Requests that no page is made for: wrong methods, texts with NUL, secrets in addresses, mail that goes nowhere."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest
from django.test import Client

from planner.access_log import AccessLog
from planner.logs import LogFormat, configure_logs, masked, one_line_for_a_bad_request
from planner.models import AuditEntry, Role
from planner.services.quote_files import export_quote
from planner.services.quotes import change_quote, create_quote
from tests.planner.organizations import Tenant

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/organizations/use/", "/runs/sweeps/", "/configs/inference/"])
def test_an_address_for_forms_read_by_hand_answers_with_a_page(client: Client, tenant: Tenant, path: str) -> None:
    client.force_login(tenant.people[Role.OWNER])
    answer = client.get(path)
    assert answer.status_code == 405
    assert answer["Allow"] == "POST"
    assert "Nothing to read here" in answer.content.decode()


def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(client: Client) -> None:
    def next_of(**headers: str) -> str:
        answer = client.post("/organizations/use/", {"organization": ""}, headers=headers)
        assert answer.status_code == 302
        return answer["Location"]

    assert next_of(referer="http://testserver/training/?tokens=1e9").endswith(
        "?next=http%3A//testserver/training/%3Ftokens%3D1e9"
    )
    assert next_of(referer="https://elsewhere.example/") == "/accounts/login/?next=/organizations/"
    assert next_of() == "/accounts/login/?next=/organizations/"


@pytest.mark.parametrize(
    "path", ["/?model=%00", "/catalog/?%00=1", "/shared/a%00b/", "/models/?q=%00", "/admin/planner/user/?q=%00"]
)
def test_a_nul_in_an_address_is_refused_with_a_page(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert "Request not understood" in answer.content.decode()


def test_a_nul_in_a_form_is_refused_with_a_page(client: Client) -> None:
    assert client.post("/accounts/login/", {"login": "a\x00b", "password": "x"}).status_code == 400


def test_the_api_names_the_parameter_that_holds_a_nul(client: Client) -> None:
    answer = client.get("/api/v1/catalog/gpus/?search=%00")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "search"


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_secrets_in_addresses_stay_out_of_the_log(
    client: Client, caplog: pytest.LogCaptureFixture, log_format: LogFormat
) -> None:
    with caplog.at_level(logging.WARNING):
        assert client.get("/shared/abcdefgh-secret/").status_code == 404
    (record,) = [record for record in caplog.records if record.name == "django.request"]
    parts = configure_logs(level="INFO", log_format=log_format)["formatters"]["line"]
    line = parts.pop("()")(**parts).format(record)
    assert "Not Found: /shared/[secret]/" in line
    assert "abcdefgh" not in line


@pytest.mark.parametrize("log_format", ["console", "json"])
@pytest.mark.parametrize(
    ("path", "host", "said"),
    [
        ("/training/?model=%00", "testserver", "A NUL character was sent.: /training/"),
        ("/training/", "elsewhere.example", "Invalid HTTP_HOST header"),
    ],
)
def test_a_request_refused_as_bad_is_one_line_of_the_log(
    client: Client, caplog: pytest.LogCaptureFixture, log_format: LogFormat, path: str, host: str, said: str
) -> None:
    with caplog.at_level(logging.WARNING):
        assert client.get(path, headers={"host": host}).status_code == 400
    (record,) = [each for each in caplog.records if each.name.startswith(("django.request", "django.security"))]
    parts = configure_logs(level="INFO", log_format=log_format)["formatters"]["line"]
    line = parts.pop("()")(**parts).format(record)
    assert said in line
    assert record.exc_info is None


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "Broke", (), sys.exc_info())
    record.status_code = 500
    assert one_line_for_a_bad_request(record)
    assert record.exc_info is not None


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("/shared/Zx81/", "/shared/[secret]/"),
        ("GET /invitations/Zx81/?a=1 HTTP/1.1", "GET /invitations/[secret]/?a=1 HTTP/1.1"),
        ("/accounts/password/reset/key/1-abc/", "/accounts/password/reset/key/[secret]/"),
        ("http://a.example/accounts/confirm-email/MTA:1:x/", "http://a.example/accounts/confirm-email/[secret]/"),
        ("/organizations/acme-1/invitations/", "/organizations/acme-1/invitations/"),
        ("POST /api/v1/invitations/accept/ HTTP/1.1", "POST /api/v1/invitations/accept/ HTTP/1.1"),
    ],
)
def test_which_parts_of_an_address_are_secret(address: str, shown: str) -> None:
    assert masked(address) == shown


def test_the_web_servers_log_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AccessLog.__mro__[1], "atoms", lambda *_: {"r": "GET /shared/Zx81/ HTTP/1.1", "B": 7})
    assert AccessLog.atoms(AccessLog.__new__(AccessLog)) == {"r": "GET /shared/[secret]/ HTTP/1.1", "B": 7}


@pytest.mark.parametrize("path", ["/accounts/password/reset/", "/accounts/password/reset/done/"])
def test_where_no_mail_is_sent_the_page_says_so(client: Client, settings: Any, path: str) -> None:
    settings.MAIL_IS_SENT = False
    assert "No mail server is set up here" in client.get(path).content.decode()
    settings.MAIL_IS_SENT = True
    assert "No mail server is set up here" not in client.get(path).content.decode()


@pytest.mark.usefixtures("catalog")
def test_a_plan_with_an_organizations_prices_that_leaves_as_a_file_is_in_its_audit_log(
    client: Client, tenant: Tenant
) -> None:
    address = "/plans/inference.csv?model=Llama+3.1+8B&requests_per_second=5&accelerators=h100-sxm&max_options=2"
    assert client.get(address).status_code == 200
    exports = AuditEntry.objects.filter(organization=tenant.organization, changes__has_key="export")
    assert not exports.exists()
    client.force_login(tenant.people[Role.VIEWER])
    assert client.get(address).status_code == 200
    entry = exports.get()
    assert (entry.actor_email, entry.changes["export"]) == ("viewer-acme@example.org", [None, "inference plan"])


def test_the_audit_log_shows_the_members_of_a_document_that_changed(client: Client, tenant: Tenant) -> None:
    scope = tenant.scope()
    item = {"category": "compute", "label": "GPU", "quantity": "1"}
    quote = create_quote(scope=scope, terms={"title": "Offer", "items": [item]})
    change_quote(
        scope=scope, quote=quote, changes={"items": [item | {"unit_price": "2.50"}], "buyer": {"name": "مؤسسة"}}
    )
    export_quote(scope=scope, quote=quote, form="csv")
    client.force_login(tenant.people[Role.OWNER])
    page = client.get(f"/organizations/{tenant.organization.slug}/audit/").content.decode()
    assert "terms.items.0.unit price: – → 2.50" in page
    assert "terms.buyer.name: – → مؤسسة" in page
    assert "export: – → csv" in page
    assert "terms.title" not in page
    table = client.get(f"/organizations/{tenant.organization.slug}/audit.csv").content.decode()
    assert "terms.items.0.unit_price,,2.50" in table
