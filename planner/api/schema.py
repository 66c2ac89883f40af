"""OpenAPI components, written from the types themselves: questions from their field specs, answers from the
dataclasses, so that the document can't drift from the code."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.api.components import ERROR_COMPONENTS, MONEY, NULL, PRESET_COMPONENTS, RUN_REQUEST_COMPONENTS, Schema, ref
from planner.api.typed_schema import input_schemas
from planner.documents.snapshot import QuoteSnapshot
from planner.engine.answers import Confidence, InferencePlan
from planner.engine.field_spec import FieldSpec, allowed_range, specs
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_series import TrainingSeries
from planner.engine.workload import InferenceQuestion
from planner.services import organization_inputs, price_book_inputs, scenario_inputs, webhook_inputs
from planner.services.capacity_question import CapacityQuestion
from planner.services.quote_terms import QuoteTerms

_QUESTION_OF = {InferencePlan: InferenceQuestion, TrainingPlan: TrainingQuestion}
_UNKNOWN_AS_NULL: dict[tuple[type, str], str] = {(Confidence, "high"): "Null: no measured case bounds it."}
"""Figures that may be infinite, which JSON has no word for."""
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: MONEY,
    date: {"type": "string", "format": "date"},
    datetime: {"type": "string", "format": "date-time"},
    object: {},
}


BODIES: tuple[type, ...] = (
    price_book_inputs.PriceBookInput,
    price_book_inputs.DiscountInput,
    price_book_inputs.NegotiatedPriceInput,
    price_book_inputs.CommitmentInput,
    price_book_inputs.PrivateInstanceTypeInput,
    price_book_inputs.ExchangeRateInput,
    organization_inputs.OrganizationInput,
    organization_inputs.RoleInput,
    organization_inputs.InvitationInput,
    organization_inputs.TokenInput,
    organization_inputs.KeyInput,
    webhook_inputs.WebhookInput,
    webhook_inputs.RotationInput,
)
"""What rows are written with."""

TYPED_BODIES: tuple[type, ...] = (
    QuoteTerms,
    scenario_inputs.ScenarioInput,
    scenario_inputs.VersionInput,
    scenario_inputs.ScenarioChange,
    scenario_inputs.CloneInput,
    scenario_inputs.CommentInput,
    scenario_inputs.LinkInput,
    scenario_inputs.QuoteInput,
    scenario_inputs.TransferInput,
)


def add_components(result: Schema, **_: Any) -> Schema:
    """A drf-spectacular hook: puts the components that the views refer to into the document."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(ERROR_COMPONENTS | RUN_REQUEST_COMPONENTS | PRESET_COMPONENTS)
    for question in (InferenceQuestion, TrainingQuestion, SimulationQuestion, TrafficQuestion, CapacityQuestion):
        schemas[question.__name__] = question_schema(question)
    for body in BODIES:
        schemas[body.__name__] = question_schema(body)
    for body in TYPED_BODIES:
        schemas.update(input_schemas(body, _field_words))
    for plan in (InferencePlan, TrainingPlan, TrainingSeries, QuoteSnapshot):
        schemas.update(answer_schemas(plan))
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    for operations in result["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                # No body is read as an empty one, and nothing that takes one can be empty.
                operation["requestBody"]["required"] = True
    return result


def question_schema(question_type: type) -> Schema:
    """What a plan is asked with, or a row written with: one member a field; null is the same as leaving it out."""
    known = specs(question_type)
    required = [name for name, (spec, _) in known.items() if spec.required]
    return {
        "type": "object",
        "description": inspect.getdoc(question_type) or "",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": {name: field_schema(spec, default) for name, (spec, default) in known.items()},
    }


def field_schema(spec: FieldSpec, default: Any) -> Schema:
    """One field of a question."""
    schema: Schema = {"title": spec.label, "description": spec.help, "nullable": not spec.required}
    if spec.unit:
        schema["description"] = f"{spec.help} Unit: {spec.unit}."
        schema["x-unit"] = spec.unit
    item: Schema
    match spec.kind:
        case "number" | "integer":
            schema |= {"type": spec.kind, "minimum": spec.minimum, "maximum": spec.maximum}
        case "text":
            schema |= {"type": "string", "maxLength": spec.max_length}
        case "decimal":
            schema |= {"type": "string", "format": "decimal", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?$"}
            schema["description"] += f" From {allowed_range(spec)}."
        case "date":
            schema |= {"type": "string", "format": "date"}
        case "choice":
            schema |= {"type": "string", "enum": [*spec.choices, None]}
        case "choices":
            item = {"type": "string", "enum": list(spec.choices)} if spec.choices else {"type": "string"}
            schema |= {"type": "array", "items": item}
        case "numbers":
            bounds: Schema = {"minimum": spec.minimum, "maximum": spec.maximum}
            item = {"type": "integer" if spec.places == 0 else "number", **bounds}
            schema |= {"type": "array", "items": item, "maxItems": spec.most}
        case "flag":
            schema |= {"type": "boolean"}
        case "config":
            schema |= {"type": "object", "additionalProperties": True}
    if default is not None:
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


@cache
def answer_schemas(answer_type: type) -> dict[str, Schema]:
    """The components of an answer and of everything inside it, by name."""
    found: dict[str, Schema] = {}
    waiting = [answer_type]
    while waiting:
        cls = waiting.pop()
        if cls.__name__ in found:
            continue
        found[cls.__name__] = _object_schema(cls, waiting)
    return found


def _object_schema(cls: type, waiting: list[type]) -> Schema:
    hints, words = get_type_hints(cls), _field_words(cls)
    properties: dict[str, Schema] = {}
    for name, hint in hints.items():
        if name == "question" and cls in _QUESTION_OF:
            properties[name] = _described(ref(_QUESTION_OF[cls]), "The question as understood, defaults filled in.")
        else:
            properties[name] = _described(_type_schema(hint, waiting), words.get(name, ""))
        if (cls, name) in _UNKNOWN_AS_NULL:
            properties[name] |= {"nullable": True, "description": _UNKNOWN_AS_NULL[cls, name]}
    return {
        "type": "object",
        "description": (inspect.getdoc(cls) or "").replace("``", "`"),
        "required": list(hints),
        "properties": properties,
    }


def _type_schema(hint: Any, waiting: list[type]) -> Schema:
    """The schema of one annotation; dataclasses met on the way are put on ``waiting``."""
    arguments = get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        waiting.append(hint)
        return ref(hint)
    match get_origin(hint):
        case None:
            return dict(_PLAIN[hint])
        case origin if origin is Literal:
            return {"type": "string", "enum": list(arguments)}
        case origin if origin in (tuple, list):
            return {"type": "array", "items": _type_schema(arguments[0], waiting)}
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": _type_schema(arguments[1], waiting)}
        case origin if origin in (Union, UnionType):
            inner = [argument for argument in arguments if argument is not NoneType]
            each = [_type_schema(argument, waiting) for argument in inner]
            if len(each) > 1:
                return {"anyOf": [*each, NULL]}
            return {"anyOf": [*each, NULL]} if "$ref" in each[0] else {**each[0], "nullable": True}
        case _:
            raise TypeError(f"No schema for {hint}")


def _described(schema: Schema, words: str) -> Schema:
    if not words:
        return schema
    # Beside a $ref every other key is ignored, so the words go around it.
    return {"allOf": [schema], "description": words} if "$ref" in schema else {**schema, "description": words}


def _field_words(cls: type) -> dict[str, str]:
    """The text under each field of a class, by field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    words: dict[str, str] = {}
    name = ""
    for statement in body.body if isinstance(body, ast.ClassDef) else []:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                words[name] = inspect.cleandoc(text).replace("``", "`")
    return words
