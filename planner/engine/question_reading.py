"""Questions read from any mapping (JSON, a query string), with every fault found.

Lists may be given as lists or as comma-separated strings; empty strings mean "not given".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import read_fields, specs
from planner.engine.question_checks import TRAFFIC_FIELDS, check_regimes, check_traffic
from planner.engine.sentences import FieldName, say
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion, PlaceAndPurchase

Question = TypeVar("Question")
"""A frozen dataclass whose fields carry a ``FieldSpec``."""


def parse_question(question_type: type[Question], raw: Mapping[str, Any]) -> Question:
    """Read a question from ``raw``; raise ``InvalidQuestion`` naming every field at fault."""
    question, errors = read_with_faults(question_type, raw)
    if errors:
        raise InvalidQuestion(errors)
    return question


def read_with_faults(question_type: type[Question], raw: Mapping[str, Any]) -> tuple[Question, list[FieldError]]:
    """The question as far as it can be read, and every fault: a field at fault has its default."""
    read, errors = read_fields(question_type, raw)
    values = {name: default for name, (_spec, default) in specs(question_type).items()} | read
    wrong = {error.field for error in errors}
    if issubclass(question_type, PlaceAndPurchase):
        errors += [fault for fault in _together(question_type, values, wrong) if fault.field not in wrong]
    elif not wrong:
        between: Callable[[Mapping[str, Any]], Iterable[FieldError]] | None
        between = getattr(question_type, "faults_between", None)
        errors += () if between is None else between(values)
    build: Any = question_type
    question: Question = build(**values)
    return question, errors


def _together(question_type: type, values: Mapping[str, Any], wrong: set[str]) -> Iterator[FieldError]:
    """What is wrong between fields, as far as those it concerns could be read."""
    if not values["model"] and values["config"] is None and "config" not in wrong:
        yield FieldError(
            field="model",
            value=values["model"],
            message="Name a model or give its config.",
            allowed=say("a catalog name, a Hugging Face id, or config"),
            code="required",
        )
    if values["model"] and values["config"] is not None:
        yield FieldError(
            field="model",
            value=values["model"],
            message=say("Name a model or give its config, not both."),
            allowed=say("{model} or {config}", model=FieldName("model"), config=FieldName("config")),
            code="conflict",
        )
    if question_type is InferenceQuestion:
        if not wrong.intersection(TRAFFIC_FIELDS):
            yield from check_traffic(values)
        yield from check_regimes(values)
    if question_type is TrainingQuestion and values["nodes"] is not None and values["gpus"] is not None:
        yield FieldError(
            field="gpus",
            value=values["gpus"],
            message=say("State nodes or GPUs, not both."),
            allowed=say("{nodes} or {gpus}", nodes=FieldName("nodes"), gpus=FieldName("gpus")),
        )
