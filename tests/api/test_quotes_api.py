"""Scenarios and quotes over REST: every answer keeps to the document, and who may not finds nothing."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import pytest
from django.test import Client

from planner.documents.snapshot import snapshot_from_json
from planner.documents.tables import read_csv
from planner.models import AuditEntry, Quote, Role
from planner.services.quotes import create_quote
from tests.api.documented import faults
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import BUYER, ITEM, QUESTION, TERMS

V1 = "/api/v1"


class Caller:
    """A member who calls with the session."""

    def __init__(self, tenant: Tenant, role: Role) -> None:
        self.client = Client()
        self.client.force_login(tenant.people[role])

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = "" if body is None else json.dumps(body)
        return self.client.generic(method, V1 + path, data, "application/json", headers=headers)


def good(answer: Any, code: int, component: str = "") -> Any:
    assert answer.status_code == code, answer.content.decode()
    body = answer.json() if answer.content else None
    if component:
        assert faults(component, body) == []
    return body


@pytest.mark.usefixtures("catalog")
def test_a_scenario_from_saving_to_the_revoked_link(tenant: Tenant) -> None:
    call = Caller(tenant, Role.PLANNER)
    asked = {"name": "Chat", "kind": "inference", "question": QUESTION}
    answer = call("POST", "/scenarios/", asked)
    saved = good(answer, 201, "Scenario")
    path = f"/scenarios/{saved['id']}"
    assert answer["Location"] == f"{V1}{path}/"
    assert good(call("GET", f"{path}/"), 200, "Scenario") == saved
    good(call("POST", f"{path}/versions/", {"question": QUESTION, "note": "again"}), 201, "WholeVersion")
    versions = good(call("GET", f"{path}/versions/"), 200, "ScenarioVersionsPage")
    assert [row["number"] for row in versions["results"]] == [2, 1]
    whole = good(call("GET", f"{path}/versions/1/"), 200, "WholeVersion")
    assert whole["question"] == QUESTION
    changes = good(call("GET", f"{path}/changes/?version=1"), 200, "Changes")
    assert (changes["is_changed"], changes["usd_difference"]) == (False, "0.00")
    copy = good(call("POST", f"{path}/clone/", {"name": "Copy"}), 201, "Scenario")
    assert good(call("GET", "/scenarios/?search=cop"), 200, "ScenariosPage")["results"] == [copy]
    good(call("POST", f"{path}/comments/", {"text": "Two\nlines"}), 201, "ScenarioComment")
    assert len(good(call("GET", f"{path}/comments/"), 200, "ScenarioCommentsPage")["results"]) == 1
    link = good(call("POST", f"{path}/links/", {"days": 7}), 201, "NewShareLink")
    shared = link["url"].removeprefix("http://testserver")
    assert Client().get(shared).status_code == 200
    assert "url" not in good(call("GET", f"{path}/links/"), 200, "ShareLinksPage")["results"][0]
    good(call("POST", f"{path}/links/{link['id']}/revoke/"), 200, "ShareLink")
    assert Client().get(shared).status_code == 404
    assert good(call("PATCH", f"{path}/", {"archived": True}), 200, "Scenario")["archived_at"] is not None
    assert good(call("GET", "/scenarios/?archived=false"), 200, "ScenariosPage")["results"] == [copy]
    good(call("POST", "/scenarios/", asked | {"question": {}}), 400, "ErrorEnvelope")
    quote = good(
        Caller(tenant, Role.BUYER)("POST", "/quotes/", {"scenario": saved["id"], "terms": {"buyer": BUYER}}),
        201,
        "WholeQuote",
    )
    assert (quote["scenario_version"], quote["problems"]) == (2, [])


def test_a_quote_from_draft_to_cart(tenant: Tenant) -> None:
    call = Caller(tenant, Role.BUYER)
    unknown = {"category": "storage", "label": "Weights", "quantity": "10", "unit": "gib_month"}
    answer = call("POST", "/quotes/", {"terms": TERMS | {"items": [ITEM, unknown]}})
    draft = good(answer, 201, "WholeQuote")
    path = f"/quotes/{draft['id']}"
    assert [problem["attr"] for problem in draft["problems"]] == ["items.1.unit_price"]
    assert draft["warnings"] == []
    good(call("POST", f"{path}/links/", {}), 409, "ErrorEnvelope")
    refused = good(call("POST", f"{path}/issue/"), 400, "ErrorEnvelope")
    assert "Weights" in refused["errors"][0]["detail"]
    etag = call("GET", f"{path}/")["ETag"]
    items = [ITEM, unknown | {"unit_price": 0.023}]
    changed = call("PATCH", f"{path}/", {"items": items, "tax": None}, **{"If-Match": etag})
    assert good(changed, 200, "WholeQuote")["problems"] == []
    good(call("PATCH", f"{path}/", {"months": 3}, **{"If-Match": etag}), 412, "ErrorEnvelope")
    good(call("POST", f"{path}/transfer/", {}), 409, "ErrorEnvelope")
    issued = good(call("POST", f"{path}/issue/"), 200, "WholeQuote")
    assert snapshot_from_json(issued["snapshot"]).number == issued["number"]
    good(call("PATCH", f"{path}/", {"months": 3}), 409, "ErrorEnvelope")
    good(call("DELETE", f"{path}/"), 409, "ErrorEnvelope")
    link = good(call("POST", f"{path}/links/", {"days": 7, "name": "Acme"}), 201, "NewShareLink")
    shared = link["url"].removeprefix("http://testserver")
    assert issued["number"] in Client().get(shared).content.decode()
    assert good(call("GET", f"{path}/links/"), 200, "ShareLinksPage")["results"][0]["name"] == "Acme"
    good(Caller(tenant, Role.PLANNER)("POST", f"{path}/links/{link['id']}/revoke/"), 403, "ErrorEnvelope")
    good(call("POST", f"{path}/links/{link['id']}/revoke/"), 200, "ShareLink")
    assert Client().get(shared).status_code == 404
    cart = good(call("POST", f"{path}/transfer/", {"buyer_cookie": "<1&2>"}), 200, "Cart")
    message = ElementTree.fromstring(cart["cxml"].encode()).find("Message/PunchOutOrderMessage")
    assert message is not None
    assert message.findtext("BuyerCookie") == "<1&2>"
    prices = [money.text for money in message.findall("ItemIn/ItemDetail/UnitPrice/Money")]
    assert prices == [item["unit_price"] for item in cart["items"]] == ["468835.20", "2.76"]
    assert message.findtext("PunchOutOrderMessageHeader/Total/Money") == cart["net"] == "468837.96"
    assert good(call("POST", f"{path}/accept/"), 200, "WholeQuote")["status"] == "accepted"
    listed = good(call("GET", "/quotes/?status=accepted&search=capa"), 200, "QuotesPage")["results"]
    assert [row["number"] for row in listed] == [issued["number"]]
    assert good(call("GET", "/quotes/?status=draft,expired"), 200, "QuotesPage")["results"] == []


def test_files_are_the_same_bytes_and_in_the_audit_log(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    call = Caller(tenant, Role.VIEWER)
    for form, kind in (
        ("pdf", "application/pdf"),
        ("csv", "text/csv"),
        ("xlsx", "application/vnd"),
        ("json", "application/json"),
    ):
        answer = call("GET", f"/quotes/{quote.uuid}.{form}")
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith(kind)
        assert call("GET", f"/quotes/{quote.uuid}.{form}?language=en").content == answer.content
    assert len(read_csv(call("GET", f"/quotes/{quote.uuid}.csv").content)) == 1
    exports = AuditEntry.objects.filter(organization=tenant.organization, changes__has_key="export")
    assert exports.count() == 9
    good(call("GET", f"/quotes/{quote.uuid}.pdf?language=xx"), 400, "ErrorEnvelope")
    good(call("GET", f"/quotes/{uuid4()}.pdf"), 404, "ErrorEnvelope")


def test_the_same_key_makes_one_quote_and_issues_once(tenant: Tenant) -> None:
    call, key = Caller(tenant, Role.BUYER), {"Idempotency-Key": str(uuid4())}
    asked = {"terms": TERMS, "issue": True}
    first, second = (good(call("POST", "/quotes/", asked, **key), 201, "WholeQuote") for _ in range(2))
    assert first["id"] == second["id"]
    assert Quote.objects.get().sequence == 1
    good(call("POST", "/quotes/", asked | {"issue": False}, **key), 422, "ErrorEnvelope")
    revised = good(call("POST", f"/quotes/{first['id']}/revise/"), 201, "WholeQuote")
    assert good(call("POST", f"/quotes/{revised['id']}/issue/"), 200, "WholeQuote")["replaces"] == first["id"]
    assert good(call("GET", f"/quotes/{first['id']}/"), 200, "WholeQuote")["status"] == "superseded"


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"terms": []}, "terms"),
        ({"gold": 1}, "gold"),
        ({"scenario": "x"}, "scenario"),
        ({"terms": {"months": "12"}}, "months"),
        ({"terms": {"items": [{}]}}, "items.0.category"),
        ({"issue": 1}, "issue"),
    ],
)
def test_wrong_bodies_are_named(tenant: Tenant, body: Any, attr: str) -> None:
    errors = good(Caller(tenant, Role.BUYER)("POST", "/quotes/", body), 400, "ErrorEnvelope")["errors"]
    assert attr in [error["attr"] for error in errors]


def test_others_find_nothing_and_viewers_change_nothing(tenant: Tenant) -> None:
    quote = create_quote(scope=tenant.scope(), terms=TERMS, issue=True)
    outsider, viewer = Caller(tenant_factory("Other"), Role.OWNER), Caller(tenant, Role.VIEWER)
    nobody = Client()
    reads = [f"/quotes/{quote.uuid}/", *(f"/quotes/{quote.uuid}.{form}" for form in ("pdf", "csv", "xlsx", "json"))]
    for path in reads:
        good(outsider("GET", path), 404, "ErrorEnvelope")
        assert nobody.get(V1 + path).status_code == 401
        assert viewer("GET", path).status_code == 200
    for step in ("issue", "accept", "revise"):
        good(outsider("POST", f"/quotes/{quote.uuid}/{step}/"), 404, "ErrorEnvelope")
        good(viewer("POST", f"/quotes/{quote.uuid}/{step}/"), 403, "ErrorEnvelope")
    good(viewer("POST", "/quotes/", {"terms": TERMS}), 403, "ErrorEnvelope")
    assert good(outsider("GET", "/quotes/"), 200, "QuotesPage")["results"] == []


def test_a_step_is_taken_from_the_state_that_was_read(tenant: Tenant) -> None:
    call = Caller(tenant, Role.BUYER)
    draft = good(call("POST", "/quotes/", {"terms": TERMS}), 201, "WholeQuote")
    path = f"/quotes/{draft['id']}"
    old = call("GET", f"{path}/")["ETag"]
    good(call("PATCH", f"{path}/", {"title": "Another"}), 200, "WholeQuote")
    good(call("POST", f"{path}/issue/", **{"If-Match": old}), 412, "ErrorEnvelope")
    assert Quote.objects.get().is_draft
    headers = {"If-Match": call("GET", f"{path}/")["ETag"], "Idempotency-Key": str(uuid4())}
    issued = good(call("POST", f"{path}/issue/", **headers), 200, "WholeQuote")
    # Sent again with its key it is the same step, whatever the tag was.
    assert good(call("POST", f"{path}/issue/", **headers), 200, "WholeQuote")["number"] == issued["number"]
    for step in ("accept", "revise"):
        good(call("POST", f"{path}/{step}/", **{"If-Match": old}), 412, "ErrorEnvelope")
    good(call("POST", f"{path}/accept/", **{"If-Match": call("GET", f"{path}/")["ETag"]}), 200, "WholeQuote")
