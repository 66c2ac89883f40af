"""No query string breaks a page: it is answered, or refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.engine.field_spec import specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion

pytestmark = pytest.mark.usefixtures("catalog", "planner_answers")

NAMES = [*specs(InferenceQuestion), *specs(TrainingQuestion), "traffic_by", "preset", "fill", "option", "page", "q"]
ODD = ["", "0", "-1", "1e309", "NaN", "inf", "1_000", "٣", "1,5", "{}", "[]", "\0", "a" * 300, "%", "🦊", "null", "{"]
VALUES = st.one_of(st.sampled_from([*ODD, "Llama 3.1 70B", "10", "on_demand,spot", "aws"]), st.text(max_size=12))
QUERIES = st.lists(st.tuples(st.one_of(st.sampled_from(NAMES), st.text(max_size=8)), VALUES), max_size=6)
FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def fields(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    given_values: dict[str, list[str]] = {}
    for name, value in pairs:
        given_values.setdefault(name, []).append(value)
    return given_values


def refused_whole(pairs: list[tuple[str, str]]) -> bool:
    """Whether no page looks at the query at all: a NUL is no text that a person typed or a database keeps."""
    return any("\0" in name + value for name, value in pairs)


@FEW
@given(QUERIES)
def test_the_planning_page(client: Client, pairs: list[tuple[str, str]]) -> None:
    response = client.get("/", fields(pairs))
    assert response.status_code in (200, 302, 400)
    if response.status_code == 400 and not refused_whole(pairs):
        assert 'role="alert"' in response.content.decode()


@FEW
@given(QUERIES)
def test_the_fragment_and_the_csv(client: Client, pairs: list[tuple[str, str]]) -> None:
    asked = fields([("model", "Llama 3.1 70B"), *pairs])
    fragment = client.get("/answers/inference/", asked)
    if refused_whole(pairs):
        assert fragment.status_code == 400
        return
    assert fragment.status_code in (200, 422)
    assert client.get("/plans/inference.csv", asked).status_code == {200: 200, 422: 400}[fragment.status_code]


@FEW
@given(QUERIES, st.sampled_from(["accelerators", "instances", "offers", "models"]))
def test_the_catalog(client: Client, pairs: list[tuple[str, str]], section: str) -> None:
    assert client.get(f"/catalog/{section}/", fields(pairs)).status_code == (400 if refused_whole(pairs) else 200)


@FEW
@given(st.text(max_size=40), st.text(max_size=40))
def test_configs_and_model_search(client: Client, question: str, text: str) -> None:
    assert client.get("/models/", {"model": text}).status_code == (400 if "\0" in text else 200)
    posted = client.post("/configs/inference/", {"question": question, "config_text": text})
    assert posted.status_code in (302, 400)
