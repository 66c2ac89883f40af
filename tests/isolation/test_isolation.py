"""Nobody reads, writes or learns of another organization's rows: every page and every API operation is tried.

As nobody, as each role of another organization, as that organization's key, and as each role of the own one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from catalog.services import LoadReport
from planner.api.documents import openapi_document
from planner.api.throttles import ClientThrottle
from planner.models import AuditEntry, Organization, Role
from planner.permissions import KEY_SCOPES
from planner.services.api_keys import create_key
from planner.services.organization_inputs import KeyInput
from tests.isolation.whole_tenant import MARK, Names, api_path, everything, furnished_tenant, page_paths
from tests.planner.organizations import Tenant, tenant_factory

ROW = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
PUBLIC_TAGS = {"plans", "catalog", "runs", "simulations"}
"""Open to anybody; every other operation is walked."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OPERATIONS = [
    (path, method.upper(), operation)
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
    if not set(operation["tags"]) & PUBLIC_TAGS
]


EVERY_OPERATION = pytest.mark.parametrize(
    ("path", "method", "operation"), OPERATIONS, ids=[f"{method} {path}" for path, method, _ in OPERATIONS]
)


class Actors:
    """Two organizations, one with a row of everything, and a client for everybody in both and outside."""

    def __init__(self) -> None:
        self.victim = furnished_tenant()
        self.other = tenant_factory("Other")
        self.names = Names.of(self.victim)
        self.key = _whole_key(self.other)
        self.own_key = _whole_key(self.victim)
        self.strangers = {f"{role.value} of another": self.client(self.other, role) for role in Role}

    def client(self, tenant: Tenant, role: Role) -> Client:
        client = Client()
        client.force_login(tenant.people[role])
        return client


def _whole_key(tenant: Tenant) -> str:
    values = KeyInput(name="all", service_account="Robot", role="buyer", scopes=KEY_SCOPES)
    return create_key(scope=tenant.scope(), values=values).key


@pytest.fixture(scope="module")
def actors(loaded_catalog: LoadReport, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Actors]:
    with django_db_blocker.unblock(), transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientThrottle, "rate", "1000000/min", raising=False)
        cache.clear()
        yield Actors()
        transaction.set_rollback(True)


pytestmark = pytest.mark.django_db


def send(client: Client, method: str, path: str, *, api: bool, **headers: str) -> Any:
    body: dict[str, Any] = {}
    if method in ("POST", "PUT", "PATCH") and api:
        is_file = path.endswith("/files/")
        body = {
            "data": b"x" if is_file else b"{}",
            "content_type": "application/octet-stream" if is_file else "application/json",
        }
    return client.generic(method, path, headers=headers, **body)


@pytest.fixture(scope="module")
def pages(actors: Actors) -> list[str]:
    found = list(page_paths(actors.names))
    assert len(found) > 30
    return found


def test_there_are_operations_to_walk() -> None:
    assert len(OPERATIONS) > 40


@EVERY_OPERATION
def test_an_api_operation_tells_a_stranger_nothing(
    actors: Actors, path: str, method: str, operation: dict[str, Any]
) -> None:
    before = everything()
    filled = api_path(path, actors.names)
    is_about_a_row = "{" in path
    nobody = send(Client(), method, filled, api=True)
    assert nobody.status_code == 401, nobody.content
    assert nobody.headers["WWW-Authenticate"].startswith("Bearer")
    callers: list[tuple[Client, dict[str, str]]] = [
        *((client, {}) for client in actors.strangers.values()),
        (Client(), {"authorization": f"Bearer {actors.key}"}),
    ]
    for client, headers in callers:
        # In the stranger's own organization the row is not there; in the victim's, nothing is.
        answers = [send(client, method, filled, api=True, **headers)] if is_about_a_row else []
        if "organization_id" not in path:
            named = headers | {"Takar-Organization": actors.names.slug}
            answers.append(send(client, method, filled, api=True, **named))
        for answer in answers:
            told = answer.content.decode()
            assert answer.status_code in tells_nothing(path, method, operation), (answer.status_code, told)
            assert MARK.lower() not in told.lower()
    assert everything() == before


def tells_nothing(path: str, method: str, operation: dict[str, Any]) -> set[int]:
    """Answers that say nothing of another organization.

    404, and 403 where the role in the caller's own organization is too low, whatever is asked for. Operations that are
    about the caller alone answer for the caller.
    """
    takes_organization = any(each["name"] == "Takar-Organization" for each in operation.get("parameters", []))
    if takes_organization:
        return {403, 404}
    if "{" in path:
        return {401, 403, 404} if method != "GET" else {404}
    return {200, 400, 401, 404}


def test_a_page_tells_a_stranger_nothing(actors: Actors, pages: list[str]) -> None:
    before = everything()
    for path in pages:
        missing = path.replace(actors.names.slug, "no-such-organization")
        for method in METHODS:
            nobody = send(Client(), method, path, api=False)
            assert nobody.status_code == 302, (path, method, nobody.status_code)
            assert nobody["Location"].startswith("/accounts/login/")
            for who, client in actors.strangers.items():
                answer = send(client, method, path, api=False)
                assert answer.status_code == 404, (who, method, path, answer.status_code)
                told = shown(answer, path)
                assert MARK.lower() not in told.lower()
                # Letter for letter what a page of no organization answers.
                assert told == shown(send(client, method, missing, api=False), missing)
    assert everything() == before


def shown(answer: Any, path: str) -> str:
    """What a page tells beyond the address asked for and the form's own token."""
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", answer.content.decode())
    return text.replace(path, "")


def test_rows_of_one_organization_are_not_found_in_another(actors: Actors, pages: list[str]) -> None:
    """An address of one's own organization with another's row in it."""
    before = everything()
    own = actors.other.organization.slug
    owner = actors.strangers["owner of another"]
    crossed = [path.replace(actors.names.slug, own) for path in pages if ROW.search(path)]
    assert len(crossed) > 15
    for path in crossed:
        for method in ("GET", "POST"):
            answer = send(owner, method, path, api=False)
            assert answer.status_code in (404, 405), (method, path, answer.status_code)
            assert MARK.lower() not in shown(answer, path).lower()
    assert everything() == before


def test_the_switcher_and_the_lists_show_only_what_is_ones_own(actors: Actors) -> None:
    for client in actors.strangers.values():
        for path in ("/", "/organizations/", "/docs/", "/catalog/", "/api/v1/organizations/"):
            assert MARK.lower() not in client.get(path).content.decode().lower()
        answer = client.post("/organizations/use/", {"organization": actors.names.slug})
        assert answer.status_code == 404


ROLES_OF_PAGES = {
    "members/": Role.VIEWER,
    "price-books/": Role.VIEWER,
    "exchange-rates/": Role.VIEWER,
    "keys/": Role.OWNER,
    "webhooks/": Role.BUYER,
    "audit": Role.OWNER,
}


@pytest.mark.parametrize("role", list(Role))
def test_within_an_organization_pages_are_read_as_the_role_allows(actors: Actors, pages: list[str], role: Role) -> None:
    client = actors.client(actors.victim, role)
    for path in pages:
        answer = send(client, "GET", path, api=False)
        part = path.split(f"{actors.names.slug}/")[1]
        needed = next((needed for start, needed in ROLES_OF_PAGES.items() if part.startswith(start)), Role.VIEWER)
        if not role.includes(needed):
            assert answer.status_code in (403, 405), (role, path, answer.status_code)
        assert answer.status_code in (200, 403, 404, 405), (role, path, answer.status_code)
        if answer.status_code == 403:
            assert role != Role.OWNER


@EVERY_OPERATION
def test_within_an_organization_operations_need_the_role_they_document(
    actors: Actors, path: str, method: str, operation: dict[str, Any]
) -> None:
    """What the document says an operation needs is what it needs; a role too low writes nothing."""
    words = operation["description"]
    filled = api_path(path, actors.names)
    for role in Role:
        documented = next((other for other in Role if f"the role `{other.value}`" in words), None)
        if documented is None or role.includes(documented):
            continue
        before = everything()
        client = actors.client(actors.victim, role)
        answer = send(client, method, filled, api=True)
        assert answer.status_code == 403, (role, answer.status_code, answer.content)
        assert answer.json()["errors"][0]["code"] == "permission_denied"
        assert everything() == before
    if "not by keys" in words:
        answer = send(Client(), method, filled, api=True, authorization=f"Bearer {actors.own_key}")
        assert answer.status_code in (401, 403), answer.content


def test_a_walk_leaves_no_trace_in_the_strangers_log(actors: Actors) -> None:
    assert Organization.objects.count() == 2
    subjects = AuditEntry.objects.filter(organization=actors.other.organization).values_list("object_repr", flat=True)
    assert not [subject for subject in subjects if MARK in subject]
