"""Changes that state what they rest on: of several at the same moment, one is done."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from planner.models import Role
from tests.planner.organizations import tenant_factory

# Named apps let the tables be emptied with what points at them: the audit log's own, unused table does.
pytestmark = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)
AT_ONCE = 4


def together(clients: list[Client], method: str, path: str, bodies: list[Any], tag: str) -> list[int]:
    """The status of each client's change, all sent at the same moment with the same ``If-Match``."""
    statuses: list[int] = []
    start = threading.Barrier(len(clients))

    def change(client: Client, body: Any) -> None:
        start.wait()
        try:
            sent = client.generic(method, path, body, "application/json", headers={"If-Match": tag})
            statuses.append(sent.status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=change, args=pair) for pair in zip(clients, bodies, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(statuses)


def signed_in_clients() -> list[Client]:
    acme = tenant_factory("Acme")
    clients = [Client() for _ in range(AT_ONCE)]
    for client in clients:
        client.force_login(acme.people[Role.OWNER])
    return clients


def test_one_of_several_changes_of_a_draft_is_done() -> None:
    clients = signed_in_clients()
    made = clients[0].post("/api/v1/quotes/", {"terms": {"title": "Capacity"}}, "application/json")
    assert made.status_code == 201, made.content
    path = f"/api/v1/quotes/{made.json()['id']}/"
    tag = clients[0].get(path)["ETag"]
    titles = [f'{{"title": "By {number}"}}' for number in range(AT_ONCE)]
    assert together(clients, "PATCH", path, titles, tag) == [200, 412, 412, 412]


def test_one_of_several_new_names_of_an_organization_is_taken() -> None:
    clients = signed_in_clients()
    organization = clients[0].get("/api/v1/organizations/").json()["results"][0]["id"]
    path = f"/api/v1/organizations/{organization}/"
    tag = clients[0].get(path)["ETag"]
    names = [f'{{"name": "Acme {number}"}}' for number in range(AT_ONCE)]
    assert together(clients, "PATCH", path, names, tag) == [200, 412, 412, 412]
