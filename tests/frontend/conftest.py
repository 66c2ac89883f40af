"""Pages under test, with the planner behind them answering from the tests' own plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
from django.urls import get_resolver

from frontend import words
from planner.engine.answers import InferencePlan
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.services import planning
from tests.factories import plan_factory, training_plan_factory

QUESTION = "model=Llama+3.1+70B&requests_per_second=10&ttft_ms=2000"


@pytest.fixture(autouse=True)
def _names_of_this_database() -> None:
    """Provider names are kept for a minute; each test has a catalog of its own, or none."""
    words._provider_names.cache_clear()


@pytest.fixture
def planner_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions are read as always, and answered with the plans of tests.factories."""
    # Modules that take the functions themselves are to be loaded before these stand in for them.
    assert get_resolver().url_patterns

    def inference(raw: Mapping[str, Any], **_: object) -> InferencePlan:
        return plan_factory(question=asdict(parse_question(InferenceQuestion, raw)))

    def training(raw: Mapping[str, Any], **_: object) -> TrainingPlan:
        return training_plan_factory(question=asdict(parse_question(TrainingQuestion, raw)))

    monkeypatch.setattr(planning, "plan_inference", inference)
    monkeypatch.setattr(planning, "plan_training", training, raising=False)
