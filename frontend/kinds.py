"""The two questions of the planning page: how each is read, planned and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from frontend.answers.inference import present_inference
from frontend.answers.shown import Answer
from frontend.answers.training import SeriesOf, present_training
from frontend.query import TRAFFIC_WAYS, Asked, traffic_way
from planner.engine.answers import InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion, UnsupportedModel
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.selectors.scope import Scope
from planner.services import planning


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the two questions."""

    slug: str
    question_type: type
    present: Callable[[Any, Mapping[str, str], str, SeriesOf | None], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A plan, or what is wrong with the question."""

    plan: InferencePlan | TrainingPlan | None
    errors: tuple[FieldError, ...]
    series_of: SeriesOf | None = None
    """What is drawn of one option of a training plan."""


def _present_inference(plan: InferencePlan, given: Mapping[str, str], wanted: str, _series: SeriesOf | None) -> Answer:
    return present_inference(plan, given, wanted)


KINDS = {
    "inference": Kind(
        slug="inference",
        question_type=InferenceQuestion,
        present=_present_inference,
    ),
    "training": Kind(
        slug="training",
        question_type=TrainingQuestion,
        present=present_training,
    ),
}


def _where_shown(error: FieldError, asked: Asked) -> FieldError:
    """Traffic that is not stated is missing in the boxes shown, not in those of another way."""
    if error.field == "requests_per_second" and error.code == "required":
        return replace(error, field=TRAFFIC_WAYS[traffic_way(asked.given, asked.page)][0])
    return error


def plan_for(kind: Kind, asked: Asked, scope: Scope | None = None) -> Outcome:
    """Plan what was asked, with the scope's prices; faults of reading and of planning come back together."""
    errors = list(asked.errors)
    try:
        plan: InferencePlan | TrainingPlan = (
            planning.plan_inference(asked.raw, scope=scope)
            if kind.slug == "inference"
            else planning.plan_training(asked.raw, scope=scope)
        )
    except InvalidQuestion as invalid:
        seen = {error.field for error in errors}
        found = [_where_shown(error, asked) for error in invalid.errors if error.field not in seen]
        return Outcome(plan=None, errors=(*errors, *found))
    except UnsupportedModel as unsupported:
        fault = FieldError(field="config", value=unsupported.value, message=str(unsupported))
        return Outcome(plan=None, errors=(*errors, fault))
    if errors or kind.slug == "inference":
        return Outcome(plan=None if errors else plan, errors=tuple(errors))
    series_of = partial(planning.training_series, asked.raw, scope=scope)
    return Outcome(plan=plan, errors=(), series_of=series_of)
