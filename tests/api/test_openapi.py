"""The OpenAPI document: valid, complete, and in step with the types it is written from."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.test import Client
from openapi_spec_validator import validate

from planner.api.documents import openapi_document
from planner.api.plan_views import INFERENCE_EXAMPLE, TRAINING_EXAMPLE
from planner.api.schema import field_schema
from planner.engine.field_spec import FieldSpec, specs
from planner.engine.question_reading import parse_question
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion

METHODS = {"get", "post", "put", "patch", "delete"}


def _operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, operations in openapi_document()["paths"].items()
        for method, operation in operations.items()
        if method in METHODS
    ]


def test_the_document_is_valid_openapi_3(client: Client) -> None:
    served = client.get("/api/schema/").json()
    validate(served)
    assert served["openapi"].startswith("3.")


def test_yaml_says_the_same(client: Client) -> None:
    response = client.get("/api/schema/", HTTP_ACCEPT="application/vnd.oai.openapi")
    assert yaml.safe_load(response.content) == client.get("/api/schema/").json()


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(openapi_document())
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names == set(openapi_document()["components"]["schemas"])


def test_every_operation_is_described_and_tells_its_errors() -> None:
    assert {path for path, _, _ in _operations()} >= {"/api/v1/plans/inference/", "/api/v1/plans/training/"}
    for path, method, operation in _operations():
        assert operation["summary"], (path, method)
        assert operation["description"], (path, method)
        assert {"405", "406", "429", "503"} <= set(operation["responses"]), (path, method)
        for status, response in operation["responses"].items():
            assert response["description"], (path, method, status)
            if status >= "400":
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorEnvelope"}


@pytest.mark.parametrize("question_type", [InferenceQuestion, TrainingQuestion])
def test_a_request_has_every_field_with_its_unit_bounds_choices_and_default(question_type: type) -> None:
    schema = openapi_document()["components"]["schemas"][question_type.__name__]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(specs(question_type))
    for name, (spec, default) in specs(question_type).items():
        field = schema["properties"][name]
        assert spec.help in field["description"]
        assert field.get("x-unit", "") == spec.unit
        assert (field.get("minimum"), field.get("maximum")) == (spec.minimum, spec.maximum)
        if default is not None:
            assert field["default"] == (list(default) if isinstance(default, tuple) else default)


def test_a_flag_is_a_boolean() -> None:
    schema = field_schema(FieldSpec(kind="flag", label="L", help="H."), False)
    assert schema == {"title": "L", "description": "H.", "nullable": True, "type": "boolean", "default": False}


def test_answers_carry_the_words_under_their_fields() -> None:
    schemas = openapi_document()["components"]["schemas"]
    assert schemas["Price"]["properties"]["is_stale"] == {
        "type": "boolean",
        "description": "Older than the limit of its purchase option.",
    }
    assert schemas["Price"]["properties"]["usd_per_month"]["format"] == "decimal"
    assert re.fullmatch(schemas["Price"]["properties"]["usd_per_month"]["pattern"], str(Decimal("31400.20")))
    assert schemas["Rejection"]["properties"]["value"] == {"type": "number", "nullable": True}
    assert schemas["Confidence"]["properties"]["kind"]["enum"] == ["exact", "calibrated", "extrapolated"]


def test_the_examples_are_questions() -> None:
    assert parse_question(InferenceQuestion, INFERENCE_EXAMPLE).requests_per_second == 10
    assert parse_question(TrainingQuestion, TRAINING_EXAMPLE).finish_days == 30


def test_the_page_loads_only_files_of_this_server_and_runs_nothing_inline(client: Client) -> None:
    page = client.get("/api/docs/").content.decode()
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(scripts) == 2
    assert all('src="/static/' in attributes and not body for attributes, body in scripts)
    assert all(source.startswith(("/static/", "/api/")) for source in sources)
    assert all(finders.find(source.removeprefix("/static/")) for source in sources if source.startswith("/static/"))
    assert "<style" not in page
    assert not re.search(r"\son\w+=", page)


def test_the_root_of_the_api_leads_to_its_page(client: Client) -> None:
    response = client.get("/api/")
    assert (response.status_code, response.headers["Location"]) == (302, "/api/docs/")


def test_the_page_asks_nothing_of_other_servers() -> None:
    script = finders.find("planner/api_docs.js")
    assert isinstance(script, str)
    assert "validatorUrl: null" in Path(script).read_text(encoding="utf-8")
