"""What tests of the API share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from planner.models import Role
from tests.api.callers import Caller, person
from tests.planner.organizations import Tenant

INFERENCE = {"model": "meta-llama/Llama-3.1-70B", "requests_per_second": 10}
TRAINING = {"model": "meta-llama/Llama-3.1-8B", "tokens": 1e11}
QUESTIONS = {"inference": INFERENCE, "training": TRAINING}

Post = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    cache.clear()


@pytest.fixture
def post(client: Client) -> Post:
    """Posts a question (a mapping, or the very bytes) to plans/``kind``/."""

    def send(kind: str, body: Mapping[str, Any] | bytes, content_type: str = "application/json", **extra: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.post(f"/api/v1/plans/{kind}/", data=data, content_type=content_type, **extra)

    return send


@pytest.fixture
def owner(acme: Tenant) -> Caller:
    return person(acme, Role.OWNER)
