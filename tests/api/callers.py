"""Who calls the API in tests: people by their sessions, programs by their keys."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from planner.models import Role
from planner.services.api_keys import create_key
from planner.services.organization_inputs import KeyInput
from tests.planner.organizations import Tenant


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
