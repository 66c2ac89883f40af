"""The API under test, with the planner behind it answering from the test's own plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver

from planner.engine.answers import InferencePlan
from planner.engine.errors import FieldError
from planner.engine.question_reading import parse_question, read_with_faults
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.services import planning
from tests.factories import plan_factory, training_plan_factory

INFERENCE = {"model": "meta-llama/Llama-3.1-70B", "requests_per_second": 10}
TRAINING = {"model": "meta-llama/Llama-3.1-8B", "tokens": 1e11}
QUESTIONS = {"inference": INFERENCE, "training": TRAINING}

Post = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    cache.clear()


@pytest.fixture
def planner_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions are read as always, and answered with the plans of tests.factories."""
    # Modules that take the functions themselves are to be loaded before these stand in for them.
    assert get_resolver().url_patterns

    def inference(raw: Mapping[str, Any], **_: object) -> InferencePlan:
        return plan_factory(question=asdict(parse_question(InferenceQuestion, raw)))

    def training(raw: Mapping[str, Any], **_: object) -> TrainingPlan:
        return training_plan_factory(question=asdict(parse_question(TrainingQuestion, raw)))

    def by_itself(question_type: type, raw: Mapping[str, Any], **_: object) -> list[FieldError]:
        return read_with_faults(question_type, raw)[1]

    monkeypatch.setattr(planning, "faults_in", by_itself)
    monkeypatch.setattr(planning, "plan_inference", inference)
    monkeypatch.setattr(planning, "plan_training", training)


@pytest.fixture
def post(client: Client) -> Post:
    """Posts a question (a mapping, or the very bytes) to plans/``kind``/."""

    def send(kind: str, body: Mapping[str, Any] | bytes, content_type: str = "application/json", **extra: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.post(f"/api/v1/plans/{kind}/", data=data, content_type=content_type, **extra)

    return send
