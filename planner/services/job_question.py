"""The inference question among a job's parameters."""

from __future__ import annotations

from collections.abc import Mapping

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.sentences import say
from planner.engine.workload import InferenceQuestion
from planner.services.json_input import check_json_types
from planner.services.planning import resolve_draft, resolve_model


def read_job_question(raw: object, faults: list[FieldError]) -> InferenceQuestion | None:
    """The question, its models known; None where it can't be read, with its faults added, named ``question.FIELD``."""
    if not isinstance(raw, Mapping):
        allowed = say("an inference question, as for a plan")
        faults.append(FieldError(field="question", value=raw, message="Not a JSON object.", allowed=allowed))
        return None
    try:
        check_json_types(InferenceQuestion, raw)
        question = parse_question(InferenceQuestion, raw)
        resolve_model(question)
        resolve_draft(question)
    except InvalidQuestion as invalid:
        faults += [fault.inside("question") for fault in invalid.errors]
        return None
    return question
