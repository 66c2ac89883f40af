"""Requests made up from the OpenAPI document, sent by who may: with a key of every scope, and with an owner's session.

Most of them name rows that are there. Answers keep to the document, and none is a 5xx.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from hypothesis import HealthCheck, Phase, given, settings
from pytest_django import DjangoDbBlocker
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from catalog.services import LoadReport
from planner.api.throttles import ClientThrottle
from planner.models import Role
from planner.permissions import KEY_SCOPES
from planner.services.api_keys import create_key
from planner.services.organization_inputs import KeyInput
from tests.isolation.test_isolation import OPERATIONS
from tests.isolation.whole_tenant import Names, furnished_tenant, row_named

EXAMPLES = 8
CASES = [
    pytest.param(path, method, mode, caller, id=f"{method} {path} {mode.value} {caller}")
    for path, method, operation in OPERATIONS
    for mode in GenerationMode
    for caller in ("key", "owner")
    # Where nothing may be sent, nothing can be sent wrongly; any text is a header, and any bytes are a file.
    if mode is GenerationMode.POSITIVE
    or any(each["in"] != "header" or "pattern" in each["schema"] for each in operation.get("parameters", []))
    or "application/json" in operation.get("requestBody", {}).get("content", {})
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The site's schema, a furnished organization's names in it, and what each caller sends."""

    schema: Any
    names: Names
    headers: dict[str, dict[str, str]]
    cookies: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def site(loaded_catalog: LoadReport, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Site]:
    # A real request ends by closing connections that are inside a transaction, and this module is inside one.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    with django_db_blocker.unblock(), transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientThrottle, "rate", "1000000/min", raising=False)
        tenant = furnished_tenant()
        key = create_key(
            scope=tenant.scope(),
            values=KeyInput(name="all", service_account="Robot", role="buyer", scopes=KEY_SCOPES),
        ).key
        client = Client()
        client.force_login(tenant.people[Role.OWNER])
        request = RequestFactory().get("/")
        token = get_token(request)
        yield Site(
            schema=schemathesis.openapi.from_wsgi("/api/schema/", get_wsgi_application()),
            names=Names.of(tenant),
            headers={"key": {"Authorization": f"Bearer {key}"}, "owner": {"X-CSRFToken": token}},
            cookies={
                "key": {},
                "owner": {"sessionid": client.cookies["sessionid"].value, "csrftoken": request.META["CSRF_COOKIE"]},
            },
        )
        transaction.set_rollback(True)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.django_db
@pytest.mark.xdist_group("api-schema")
@pytest.mark.parametrize(("path", "method", "mode", "caller"), CASES)
def test_every_operation_keeps_to_the_document(
    path: str, method: str, mode: GenerationMode, caller: str, site: Site
) -> None:
    # What is made up is well-formed and yet unknown to the catalog, or contradicts what is there.
    excluded: list[Any] = [positive_data_acceptance]
    if method == "GET":
        # In a query string everything is text: a list wrongly given as the boolean false reads as the list "false".
        excluded.append(negative_data_rejection)
    turn = iter(range(10**9))

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=site.schema[path][method].as_strategy(generation_mode=mode))
    def keeps_to_the_document(case: schemathesis.Case[Any]) -> None:
        if mode is GenerationMode.POSITIVE and next(turn) % 4:
            case.path_parameters = {name: row_named(name, path, site.names) for name in case.path_parameters or {}}
            # Made up, these name no organization and no version.
            for header in ("Takar-Organization", "If-Match"):
                case.headers.pop(header, None)
        case.call_and_validate(
            excluded_checks=excluded, headers=site.headers[caller], cookies=site.cookies[caller] or None
        )

    with transaction.atomic():
        keeps_to_the_document()
        # Whatever was deleted is there again for the next operation.
        transaction.set_rollback(True)
