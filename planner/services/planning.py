"""Planning: from a raw question to a priced plan. The same call serves browser, API, CLI and jobs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from django.db import DatabaseError
from django.utils import timezone

from catalog.profiles import serving_memory_profile, serving_profiles
from catalog.selectors import CatalogNotLoaded, catalog_snapshot, find_model, model_names
from catalog.training_files import training_profiles
from planner.engine.answers import InferencePlan
from planner.engine.engine_versions import release_key
from planner.engine.errors import Faults, FieldError, InvalidQuestion, UnsupportedModel
from planner.engine.hardware import CatalogSnapshot
from planner.engine.hf_config import parse_hf_config
from planner.engine.inference_plan import plan_inference as size_inference
from planner.engine.memory import ServingMemoryProfile
from planner.engine.model_arch import ModelArch
from planner.engine.offers import offer_table, unknown_names
from planner.engine.question_reading import read_with_faults
from planner.engine.sentences import say
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_plan import plan_training as time_training
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_series import TrainingSeries
from planner.engine.training_series import training_series as series_of
from planner.engine.workload import InferenceQuestion, PlaceAndPurchase
from planner.selectors.price_books import snapshot_for
from planner.selectors.scope import Scope

Asked = TypeVar("Asked", bound=PlaceAndPurchase)
NAMED_OPTIONS = 3
NAMED_MODELS = 3
MEANT = 0.75
"""From this likeness on a name is a slip of another one."""
_PRICES: ContextVar[Scope | None] = ContextVar("prices", default=None)


def plan_inference(raw: Mapping[str, Any], *, scope: Scope | None = None, today: date | None = None) -> InferencePlan:
    """Plan serving, with the prices of the scope's organization where one is given.

    Raises ``InvalidQuestion`` naming every field at fault.
    """
    return plan_with_catalog(raw, scope=scope, today=today)[0]


def plan_with_catalog(
    raw: Mapping[str, Any], *, scope: Scope | None = None, today: date | None = None
) -> tuple[InferencePlan, CatalogSnapshot]:
    """The same plan, and what it was made from: the organization's own instance types and prices included."""
    today = today or timezone.localdate()
    snapshot = _snapshot_or_faults(InferenceQuestion, raw, scope, today)
    question = _checked(InferenceQuestion, raw, snapshot)
    plan = size_inference(
        question,
        resolve_model(question),
        snapshot,
        serving_profiles(),
        memory_profile_of,
        today,
        resolve_draft(question),
    )
    return plan, snapshot


def plan_training(raw: Mapping[str, Any], *, scope: Scope | None = None, today: date | None = None) -> TrainingPlan:
    """Plan a training run, with the prices of the scope's organization where one is given.

    Raises ``InvalidQuestion`` naming every field at fault.
    """
    today = today or timezone.localdate()
    snapshot = _snapshot_or_faults(TrainingQuestion, raw, scope, today)
    question = _checked(TrainingQuestion, raw, snapshot)
    return time_training(
        question,
        resolve_model(question),
        snapshot,
        training_profiles(),
        today,
        _teacher(question),
    )


def training_series(
    raw: Mapping[str, Any], option: TrainingOption, *, scope: Scope | None = None, today: date | None = None
) -> TrainingSeries:
    """What is drawn of one option of the plan that the same question has."""
    today = today or timezone.localdate()
    snapshot = _snapshot_or_faults(TrainingQuestion, raw, scope, today)
    question = _checked(TrainingQuestion, raw, snapshot)
    return series_of(
        question,
        resolve_model(question),
        snapshot,
        training_profiles(),
        today,
        option,
        _teacher(question),
    )


def option_series(
    raw: Mapping[str, Any], option: str = "", *, scope: Scope | None = None, today: date | None = None
) -> TrainingSeries:
    """What is drawn of one option of a question's plan, by its id; of the recommended one where none is named.

    Raises ``InvalidQuestion`` where the plan lists no such option.
    """
    plan = plan_training(raw, scope=scope, today=today)
    wanted = option or plan.recommended
    found = next((each for each in plan.options if each.id == wanted), None)
    if found is None:
        listed = ", ".join(each.id for each in plan.options[:NAMED_OPTIONS])
        fault = FieldError(
            field="option",
            value=option,
            message="Not an option of this plan." if plan.options else "Nothing fits: there is no option to draw.",
            allowed=f"the id of a listed option, such as {listed}" if listed else "a question with options",
            code="unknown_option",
        )
        raise InvalidQuestion([fault])
    return training_series(raw, found, scope=scope, today=today)


def faults_in(question_type: type[PlaceAndPurchase], raw: Mapping[str, Any], scope: Scope | None) -> list[FieldError]:
    """What is wrong with a question by itself and against the catalog, where there is one: all of it at once."""
    try:
        snapshot = _snapshot(scope, timezone.localdate())
    except (CatalogNotLoaded, DatabaseError):
        return read_with_faults(question_type, raw)[1]
    return _read(question_type, raw, snapshot)[1]


def _snapshot_or_faults(
    question_type: type[PlaceAndPurchase], raw: Mapping[str, Any], scope: Scope | None, today: date
) -> CatalogSnapshot:
    """What plans are made from; where no catalog can be read, the question's own faults come first."""
    try:
        return _snapshot(scope, today)
    except (CatalogNotLoaded, DatabaseError):
        faults = read_with_faults(question_type, raw)[1]
        if faults:
            raise InvalidQuestion(faults) from None
        raise


def _checked(question_type: type[Asked], raw: Mapping[str, Any], snapshot: CatalogSnapshot) -> Asked:
    question, faults = _read(question_type, raw, snapshot)
    if faults:
        raise InvalidQuestion(faults)
    return question


def _read(
    question_type: type[Asked], raw: Mapping[str, Any], snapshot: CatalogSnapshot
) -> tuple[Asked, list[FieldError]]:
    question, wrong = read_with_faults(question_type, raw)
    faults = Faults(wrong)
    faults.add(unknown_names(offer_table(snapshot), question))
    if not {"model", "config"}.intersection(fault.field for fault in wrong):
        with faults.gathered():
            resolve_model(question)
    with faults.gathered():
        if isinstance(question, InferenceQuestion):
            resolve_draft(question)
        if isinstance(question, TrainingQuestion):
            _teacher(question)
    return question, faults.found


def _teacher(question: TrainingQuestion) -> ModelArch | None:
    """The model to learn from, where one is named."""
    if not question.teacher:
        return None
    found = find_model(question.teacher)
    if found is None:
        raise InvalidQuestion([replace(_unknown_model(question.teacher), field="teacher")])
    return found


@contextmanager
def prices_of(scope: Scope | None) -> Iterator[None]:
    """Plans made inside use the scope's prices where none are asked for: of a job, whose kind knows no organization."""
    token = _PRICES.set(scope)
    try:
        yield
    finally:
        _PRICES.reset(token)


def _snapshot(scope: Scope | None, today: date) -> CatalogSnapshot:
    scope = scope or _PRICES.get()
    if scope is None:
        return catalog_snapshot()
    scope.require("planner.use_prices")
    return snapshot_for(scope, today)


def resolve_model(question: PlaceAndPurchase) -> ModelArch:
    """The question's model: from its config where given, else from the catalog."""
    if question.config is not None:
        try:
            return parse_hf_config(dict(question.config))
        except UnsupportedModel as error:
            raise InvalidQuestion([_unsupported(error)]) from error
    arch = find_model(question.model)
    if arch is None:
        raise InvalidQuestion([_unknown_model(question.model)])
    return arch


def memory_profile_of(question: InferenceQuestion) -> ServingMemoryProfile:
    """The memory profile of the question's engine, as of its version where one is stated."""
    version = question.engine_version
    return serving_memory_profile(question.engine, version=version if release_key(version) else None)


def resolve_draft(question: InferenceQuestion) -> ModelArch | None:
    """The question's draft model, where it names one."""
    if question.speculation != "draft_model":
        return None
    arch = find_model(question.draft_model)
    if arch is None:
        raise InvalidQuestion([replace(_unknown_model(question.draft_model), field="draft_model")])
    return arch


def _unsupported(error: UnsupportedModel) -> FieldError:
    return FieldError(
        field="config",
        value=error.value,
        message=str(error),
        allowed=say("a decoder-only transformer's config.json; see its key {field}", field=error.field),
        code="unsupported_model",
    )


def _unknown_model(name: str) -> FieldError:
    near = difflib.get_close_matches(name, model_names(), n=NAMED_MODELS, cutoff=0.3)
    meant = difflib.get_close_matches(name, near, n=NAMED_MODELS, cutoff=MEANT)
    hint = say("for example {names}; ", names=", ".join(near)) if near else ""
    if meant:
        hint = say("did you mean {names}? Else ", names=", ".join(meant))
    return FieldError(
        field="model",
        value=name,
        message="Not in the catalog.",
        allowed=say("{hint}a catalog name, a Hugging Face id, or give config", hint=hint),
        code="unknown_model",
    )
