"""What the OpenAPI document says of a JSON value."""

from __future__ import annotations

from typing import Any

from openapi_schema_validator import OAS30Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4

from planner.api.documents import openapi_document


def faults(component: str, value: Any) -> list[str]:
    """Where ``value`` breaks the component of that name."""
    registry = Registry().with_resource("urn:api", DRAFT4.create_resource(openapi_document()))
    validator = OAS30Validator({"$ref": f"urn:api#/components/schemas/{component}"}, registry=registry)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
