"""OpenAPI components of what is read by ``planner.services.typed_json``: types, limits and words of each field."""

from __future__ import annotations

import inspect
import types
from collections import abc
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin

from planner.api.components import NULL, Schema, ref
from planner.services.typed_json import Limits, limits_of, type_hints


def input_schemas(cls: type, words_of: abc.Callable[[type], dict[str, str]]) -> dict[str, Schema]:
    """The component of ``cls`` and those of the dataclasses inside it, by name."""
    made: dict[str, Schema] = {}
    waiting = [cls]
    while waiting:
        current = waiting.pop()
        if current.__name__ not in made:
            made[current.__name__] = _object(current, words_of(current), waiting)
    return made


def _object(cls: Any, words: dict[str, str], waiting: list[type]) -> Schema:
    properties: dict[str, Schema] = {}
    required = []
    for each in fields(cls):
        hint = type_hints(cls)[each.name]
        named = each.metadata.get("schema")
        schema = _one_of(named) if named else _value(hint, limits_of(each), waiting)
        if words.get(each.name):
            schema = {"allOf": [schema]} if "$ref" in schema else schema
            schema = {**schema, "description": words[each.name]}
        properties[each.name] = schema
        if each.default is MISSING and each.default_factory is MISSING:
            required.append(each.name)
    return {
        "type": "object",
        "description": inspect.getdoc(cls) or "",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": properties,
    }


def _one_of(names: list[str]) -> Schema:
    return ref(names[0]) if len(names) == 1 else {"anyOf": [ref(name) for name in names]}


def _value(hint: Any, limits: Limits, waiting: list[type]) -> Schema:
    if isinstance(hint, type) and is_dataclass(hint):
        waiting.append(hint)
        return ref(hint)
    match get_origin(hint):
        case origin if origin in (Union, types.UnionType):
            (inner,) = (argument for argument in get_args(hint) if argument is not types.NoneType)
            schema = _value(inner, limits, waiting)
            return {"anyOf": [schema, NULL]} if "$ref" in schema else {**schema, "nullable": True}
        case origin if origin is tuple:
            return {"type": "array", "items": _value(get_args(hint)[0], limits, waiting), "maxItems": limits.most_items}
        case origin if origin is Literal:
            return {"type": "string", "enum": list(get_args(hint))}
    if hint is bool:
        return {"type": "boolean"}
    if hint is int:
        return {"type": "integer", "minimum": int(limits.least), "maximum": int(limits.most)}
    if hint is date:
        return {"type": "string", "format": "date"}
    if hint is Decimal:
        return _decimal(limits)
    return {
        "type": "string",
        "maxLength": limits.longest,
        **({"pattern": f"^({limits.pattern})$"} if limits.pattern else {}),
        **({"example": limits.example} if limits.example else {}),
    }


def _decimal(limits: Limits) -> Schema:
    """A decimal text, as money is written; numbers are read too."""
    whole = len(str(int(limits.most))) - (1 if limits.most > 1 else 0)
    pattern = (
        rf"^[0-9]{{1,{max(whole, 1)}}}(\.[0-9]{{1,{limits.places}}})?$"
        if limits.most > 1
        else rf"^(0(\.[0-9]{{1,{limits.places}}})?|1)$"
    )
    return {
        "type": "string",
        "format": "decimal",
        "pattern": pattern,
        "example": "0.11" if limits.most <= 1 else "12.50",
        "x-minimum": format(Decimal(limits.least), "f"),
        "x-maximum": format(Decimal(limits.most), "f"),
    }
