"""PostgreSQL takes no NUL in a text, not even to look for it: whatever is sent with one is refused, and never a 5xx."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.test import Client

from planner.api.documents import openapi_document
from planner.models import Role
from tests.isolation.test_isolation import EVERY_OPERATION, PUBLIC_TAGS, Actors, actors, pages
from tests.isolation.whole_tenant import api_path

__all__ = ["actors", "pages"]  # fixtures
pytestmark = pytest.mark.django_db
NUL = "\x00"
FORM_FIELDS = ("name", "email", "text", "organization", "next", "question", "scenario", "action", "once", "page", "id")


def test_every_page_refuses_it(actors: Actors, pages: list[str]) -> None:
    client = actors.client(actors.victim, Role.OWNER)
    public = ["/", "/training/", "/catalog/", "/models/", "/docs/", "/accuracy/", "/save/inference/", "/shared/a/"]
    for path in [*pages, *public, "/accounts/login/", "/admin/login/", "/organizations/"]:
        answers = [
            client.get(path, dict.fromkeys(FORM_FIELDS, NUL)),
            client.get(f"{path}?{urlencode({NUL: 1})}"),
            client.post(path, dict.fromkeys(FORM_FIELDS, f"a{NUL}b")),
        ]
        assert [answer.status_code for answer in answers] == [400, 400, 400], path


@EVERY_OPERATION
def test_every_operation_of_an_organization_refuses_it(
    actors: Actors, path: str, method: str, operation: dict[str, Any]
) -> None:
    try_everywhere(actors.client(actors.victim, Role.OWNER), method, api_path(path, actors.names), operation)


@pytest.mark.usefixtures("catalog")
def test_every_public_operation_refuses_it(client: Client) -> None:
    for path, operations in openapi_document()["paths"].items():
        for method, operation in operations.items():
            if set(operation["tags"]) & PUBLIC_TAGS:
                try_everywhere(client, method.upper(), re.sub(r"{\w+}", str(uuid4()), path), operation)


def try_everywhere(client: Client, method: str, filled: str, operation: dict[str, Any]) -> None:
    """Send it in each parameter and in bodies."""
    parameters = operation.get("parameters", [])
    tried = []
    for parameter in parameters:
        if parameter["in"] == "query":
            tried.append(send(client, method, f"{filled}?{urlencode({parameter['name']: f'a{NUL}'})}", {}))
        if parameter["in"] == "header":
            tried.append(send(client, method, filled, {}, {parameter["name"].lower(): f"a-key-of-some-length{NUL}"}))
    if method in ("POST", "PUT", "PATCH"):
        tried.append(send(client, method, filled, {"name": f"a{NUL}b"}))
        tried.append(send(client, method, filled, {"terms": {"items": [{"label": f"a{NUL}b"}]}}))
    for answer in tried:
        assert answer.status_code < 500, answer.content


def send(client: Client, method: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    kind = "application/octet-stream" if path.partition("?")[0].endswith("/files/") else "application/json"
    return client.generic(method, path, data=json.dumps(body).encode(), content_type=kind, headers=headers)
