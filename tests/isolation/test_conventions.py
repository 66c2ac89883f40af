"""What every operation of the API keeps to, walked over the whole document: lists page and filter, reads have tags,
changes can be made conditional, creating is safe to repeat, and every answer says how many calls are left."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from planner.api.documents import openapi_document
from planner.models import Role
from tests.isolation.test_isolation import Actors, actors
from tests.isolation.whole_tenant import api_path, everything

__all__ = ["actors"]  # a fixture
pytestmark = pytest.mark.django_db

DOCUMENT = openapi_document()
EVERY = [
    pytest.param(path, method.upper(), operation, id=f"{method.upper()} {path}")
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
IS_RUN = re.compile("/runs/{run_id}/")


def of(*methods: str) -> pytest.MarkDecorator:
    """Every operation with one of these methods."""
    chosen = [each for each in EVERY if each.values[1] in methods]
    return pytest.mark.parametrize(("path", "method", "operation"), chosen)


def names(operation: dict[str, Any], where: str) -> set[str]:
    return {each["name"] for each in operation.get("parameters", []) if each["in"] == where}


def is_list(operation: dict[str, Any]) -> bool:
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    component = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return "results" in DOCUMENT["components"]["schemas"].get(component, {}).get("properties", {})


@of("GET", "POST", "PUT", "PATCH", "DELETE")
def test_every_answer_states_the_rate(path: str, method: str, operation: dict[str, Any]) -> None:
    for status, answer in operation["responses"].items():
        assert {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} <= set(answer.get("headers", {})), status
    assert "Retry-After" in operation["responses"]["429"]["headers"]


def test_there_are_lists() -> None:
    assert sum(is_list(each.values[2]) for each in EVERY) > 20  # type: ignore[arg-type]


@of("GET")
def test_a_list_pages_by_cursor_and_filters(
    actors: Actors, catalog: object, path: str, method: str, operation: dict[str, Any]
) -> None:
    if not is_list(operation):
        return
    query = names(operation, "query")
    assert {"limit", "cursor"} < query, "a list needs a filter beside its paging"
    client = actors.client(actors.victim, Role.OWNER)
    address = api_path(path, actors.names)
    page = client.get(f"{address}?limit=1").json()
    assert len(page["results"]) == 1
    whole = client.get(address).json()
    assert bool(page["next"]) is (len(whole["results"]) > 1)
    if page["next"]:
        second = client.get(page["next"]).json()
        assert second["results"] == whole["results"][1:2]
        assert client.get(second["previous"]).json()["results"] == page["results"]
    assert client.get(f"{address}?cursor=made-up").status_code == 400
    assert client.get(f"{address}?no-such-filter=1").status_code == 400


@of("GET")
def test_a_read_has_a_tag_and_is_not_sent_twice(
    actors: Actors, catalog: object, path: str, method: str, operation: dict[str, Any]
) -> None:
    assert "If-None-Match" in names(operation, "header")
    assert "ETag" in operation["responses"]["200"]["headers"]
    assert "304" in operation["responses"]
    if IS_RUN.search(path):
        return  # No job is there.
    client = actors.client(actors.victim, Role.OWNER)
    address = api_path(path, actors.names)
    first = client.get(address)
    assert first.status_code == 200
    if path.endswith("/audit/"):
        return  # What is read here may be logged here.
    again = client.get(address, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b""), path
    assert again["ETag"] == first["ETag"]
    assert "RateLimit-Remaining" in again
    assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200


@of("PUT", "PATCH", "DELETE")
def test_a_change_is_refused_where_the_row_is_another_by_now(
    actors: Actors, path: str, method: str, operation: dict[str, Any]
) -> None:
    assert "If-Match" in names(operation, "header")
    client = actors.client(actors.victim, Role.OWNER)
    address = api_path(path, actors.names)
    before = everything()
    refused = client.generic(method, address, b"{}", "application/json", headers={"If-Match": '"other"'})
    assert refused.status_code == 412, refused.content
    assert refused.json()["errors"][0]["code"] == "outdated"
    assert everything() == before
    tag = client.get(address)["ETag"]
    body = b'{"no-such-member": 1}' if method != "DELETE" else b""
    let_in = client.generic(method, address, body, "application/json", headers={"If-Match": tag})
    assert let_in.status_code != 412


@of("POST")
def test_creating_is_safe_to_repeat(path: str, method: str, operation: dict[str, Any]) -> None:
    if {"201", "202"} & set(operation["responses"]):
        assert "Idempotency-Key" in names(operation, "header")
        assert "422" in operation["responses"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/quotes/{quote_id}/issue/", None),
        ("/webhooks/{webhook_id}/rotate/", {"overlap_hours": 1}),
        ("/webhooks/{webhook_id}/ping/", None),
        ("/scenarios/{scenario_id}/clone/", {"name": "Copy"}),
        ("/scenarios/{scenario_id}/comments/", {"text": "Good."}),
        ("/scenarios/{scenario_id}/links/", {"days": 7}),
        ("/invitations/", {"email": "new@example.org"}),
        ("/organizations/", {"name": "Another"}),
        ("/exchange-rates/", {"base": "USD", "quote": "EUR", "rate": "0.9", "source": "bank"}),
        ("/price-books/", {"name": "Second"}),
    ],
)
def test_a_step_repeated_with_its_key_is_done_once(actors: Actors, path: str, body: Any) -> None:
    client = actors.client(actors.victim, Role.OWNER)
    address = api_path(f"/api/v1{path}", actors.names)
    if path.startswith("/quotes/"):
        item = {"category": "compute", "quantity": "1", "unit_price": "2", "label": "GPU"}
        terms = {"items": [item], "buyer": {"name": "Buyer"}}
        client.patch(address.removesuffix("issue/"), terms, "application/json")
    headers = {"Idempotency-Key": str(uuid4())}

    def send() -> Any:
        return client.post(address, body or {}, "application/json", headers=headers)

    first = send()
    assert first.status_code in (200, 201), first.content
    before = everything()
    second = send()
    assert second.status_code == first.status_code, second.content
    assert second.json()["id"] == first.json()["id"]
    assert everything() == before


def test_a_trace_sent_twice_with_a_key_is_kept_once(client: Client) -> None:
    headers = {"Idempotency-Key": str(uuid4())}
    row = b"arrival_s,input_tokens,output_tokens\n0,10,%d\n"

    def send(tokens: int) -> Any:
        return client.post("/api/v1/traces/", row % tokens, "text/csv", headers=headers)

    first, again, other = send(5), send(5), send(6)
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert first.json() == again.json()
