"""Use-case presets over REST: starts for a question."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from tests.api.documented import faults


@pytest.fixture
def presets(client: Client) -> dict[str, Any]:
    response = client.get("/api/v1/presets/")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "public, max-age=300"
    document = response.json()
    assert isinstance(document, dict)
    return document


def test_presets_are_of_the_documented_shape_and_sourced(presets: dict[str, Any]) -> None:
    assert faults("Presets", presets) == []
    assert len({preset["key"] for preset in presets["presets"]}) == len(presets["presets"]) >= 7
    assert all(preset["lengths_source"] and preset["limits_source"] for preset in presets["presets"])


def test_every_preset_with_a_model_and_traffic_is_a_question(presets: dict[str, Any]) -> None:
    for preset in presets["presets"]:
        question = parse_question(InferenceQuestion, preset["fields"] | {"model": "m", "requests_per_second": 1})
        assert question.input_tokens == preset["fields"]["input_tokens"]


def test_no_limit_is_a_field_left_out(presets: dict[str, Any]) -> None:
    (batch,) = [preset for preset in presets["presets"] if preset["key"] == "batch"]
    assert set(batch["fields"]) == {"input_tokens", "output_tokens"}
