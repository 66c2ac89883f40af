"""Whatever is sent, the answer is a plan or the error envelope: never a 500, never a crash of the command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.api.throttles import PlanThrottle
from planner.engine.errors import InvalidQuestion
from planner.engine.field_spec import specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.error_envelope import envelope
from planner.services.json_input import read_object, read_question
from planner.services.plan_json import encode
from tests.api.conftest import Post

pytestmark = pytest.mark.usefixtures("planner_answers")


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlanThrottle, "rate", "100000/min", raising=False)


many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
    | st.sampled_from([0, -1, 1e308, 10**400, "", "auto", "\x00", "\ud800", "bf16"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
names = st.sampled_from([*specs(InferenceQuestion), *specs(TrainingQuestion)]) | st.text(max_size=5)
questions = st.dictionaries(names, values, max_size=6)
sound = st.just({"model": "m", "concurrency": 1})


def _text(document: Any) -> bytes:
    return json.dumps(document).encode()


def _refused_well(document: Any) -> None:
    assert set(document) == {"type", "errors"}
    assert document["errors"]
    for error in document["errors"]:
        assert list(error) == ["code", "detail", "attr", "value", "allowed"]
        assert error["detail"]
        assert error["code"]


@many
@given(kind=st.sampled_from(["inference", "training"]), base=sound, changes=questions)
def test_any_json_object(kind: str, base: dict[str, Any], changes: dict[str, Any], post: Post) -> None:
    response = post(kind, _text(base | changes))
    assert response.status_code in (200, 400)
    if response.status_code != 200:
        _refused_well(json.loads(response.content))


@many
@given(body=st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
def test_any_bytes(body: bytes) -> None:
    try:
        raw = read_question(InferenceQuestion, body)
    except InvalidQuestion as invalid:
        _refused_well(json.loads(encode(envelope(invalid.errors)).encode()))
    else:
        assert isinstance(raw, dict)


plain_scalars = st.none() | st.booleans() | st.text(max_size=20) | st.integers(-(2**53), 2**53)
plain_values = st.recursive(plain_scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=8)


@many
@given(document=st.dictionaries(st.text(max_size=10), plain_values, max_size=4))
def test_plain_json_is_read_as_it_is(document: dict[str, Any]) -> None:
    text = _text(document)
    if "\\u0000" in text.decode():
        with pytest.raises(InvalidQuestion):
            read_object(text)
    else:
        assert read_object(text) == document


@many
@given(value=values)
def test_any_value_can_be_shown_in_an_error(value: Any) -> None:
    try:
        raw = read_question(TrainingQuestion, _text({"model": value, "lora_rank": value, "optimizer": value}))
    except InvalidQuestion as invalid:
        shown = json.loads(encode(envelope(invalid.errors)).encode())
        assert {error["attr"].split(".")[0] for error in shown["errors"]} <= {"model", "lora_rank", "optimizer"}
    else:
        assert raw["model"] is None or isinstance(raw["model"], str)
