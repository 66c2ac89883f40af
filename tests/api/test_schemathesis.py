"""Requests made up from the OpenAPI document, good and bad: answers keep to the document, and none is a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from catalog.services import LoadReport
from planner.api.documents import openapi_document
from planner.api.throttles import PlanThrottle, ReadThrottle, RunThrottle

CASES = [
    pytest.param(path, method.upper(), mode, id=f"{method} {path} {mode.value}")
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
    for mode in GenerationMode
    # Where nothing may be sent, nothing can be sent wrongly; any text is a header, and any bytes are a file.
    if mode is GenerationMode.POSITIVE
    or any(each["in"] != "header" or "pattern" in each["schema"] for each in operation.get("parameters", []))
    or "application/json" in operation.get("requestBody", {}).get("content", {})
]


@pytest.fixture(scope="module")
def api_schema(loaded_catalog: LoadReport) -> Iterator[Any]:
    # A real request ends by closing connections that are inside a transaction, and this module is inside one.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    with pytest.MonkeyPatch.context() as patch:
        for throttle in (PlanThrottle, ReadThrottle, RunThrottle):
            patch.setattr(throttle, "rate", "1000000/min", raising=False)
        yield schemathesis.openapi.from_wsgi("/api/schema/", get_wsgi_application())
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.django_db
@pytest.mark.xdist_group("api-schema")
@pytest.mark.parametrize(("path", "method", "mode"), CASES)
def test_every_operation_keeps_to_the_document(path: str, method: str, mode: GenerationMode, api_schema: Any) -> None:
    # A made-up model, cursor or kind of job is well-formed and yet unknown: 400 is right.
    excluded: list[Any] = [positive_data_acceptance]
    if method == "GET":
        # In a query string everything is text: a list wrongly given as the boolean false reads as the list "false".
        excluded.append(negative_data_rejection)

    @settings(
        max_examples=25,
        derandomize=True,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=api_schema[path][method].as_strategy(generation_mode=mode))
    def keeps_to_the_document(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(excluded_checks=excluded)

    keeps_to_the_document()
