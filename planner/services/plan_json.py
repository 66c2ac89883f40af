"""A plan as JSON: what the API answers and what ``manage.py plan`` prints, to the byte (and ends its line).

Money is a text in plain decimal notation (``"31400.20"``), for a JSON number is a double and loses cents of
large sums. Dates are ISO texts. A figure that isn't finite is null: unknown, never 0.
"""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from planner.documents.snapshot import from_plain
from planner.engine.answers import InferencePlan
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_series import TrainingSeries


def plan_to_json(plan: InferencePlan | TrainingPlan | TrainingSeries) -> dict[str, Any]:
    """The plan, or the series of one option, as plain JSON values, members in the order of the answer's fields."""
    document: dict[str, Any] = plain(plan)
    return document


def plan_from_json(document: dict[str, Any], kind: str) -> InferencePlan | TrainingPlan:
    """The plan that ``plan_to_json`` wrote; raises ``KeyError`` where a member of today's plans is missing."""
    plan: InferencePlan | TrainingPlan = from_plain(InferencePlan if kind == "inference" else TrainingPlan, document)
    return plan


def encode(document: Any, *, indent: int | None = None) -> str:
    """JSON text: compact unless ``indent`` is given, UTF-8 letters as they are.

    >>> encode({"usd": "1.50", "name": "Zürich"})
    '{"usd":"1.50","name":"Zürich"}'
    """
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def plain(value: Any) -> Any:
    """``value`` as JSON knows it: dataclasses as objects, tuples as lists, Decimal and dates as texts.

    >>> plain((Decimal("1E+3"), date(2026, 1, 2), float("nan"), {"a": (1,)}))
    ['1000', '2026-01-02', None, {'a': [1]}]
    """
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case Decimal():
            return format(value, "f") if value.is_finite() else None
        case date():
            return value.isoformat()
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
