"""Plans over REST and on the command line: the same JSON, to the byte, and of the shape the document promises."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from planner.engine.field_spec import specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.plan_json import encode, plan_to_json
from tests.api.conftest import QUESTIONS, Post
from tests.api.documented import faults
from tests.factories import empty_plan_factory, plan_factory, training_plan_factory

QUESTION_TYPES = {"inference": InferenceQuestion, "training": TrainingQuestion}
both = pytest.mark.parametrize("kind", ["inference", "training"])
pytestmark = pytest.mark.usefixtures("planner_answers")


@both
def test_a_question_is_answered_with_a_plan_of_the_documented_shape(kind: str, post: Post) -> None:
    response = post(kind, QUESTIONS[kind])
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert faults(f"{kind.title()}Plan", response.json()) == []


@both
def test_the_answer_echoes_the_question_with_its_defaults(kind: str, post: Post) -> None:
    question = post(kind, QUESTIONS[kind]).json()["question"]
    assert set(question) == set(specs(QUESTION_TYPES[kind]))
    assert question["model"] == QUESTIONS[kind]["model"]
    assert question["purchase_options"] == ["on_demand"]
    assert post(kind, question).json()["question"] == question


@both
def test_the_same_question_twice_gives_the_same_bytes(kind: str, post: Post) -> None:
    assert post(kind, QUESTIONS[kind]).content == post(kind, QUESTIONS[kind]).content


@both
def test_the_command_prints_the_bytes_of_the_api(kind: str, post: Post, tmp_path: Path) -> None:
    file = tmp_path / "question.json"
    file.write_text(json.dumps(QUESTIONS[kind]), encoding="utf-8")
    printed = StringIO()
    call_command("plan", kind, str(file), stdout=printed)
    assert printed.getvalue() == post(kind, QUESTIONS[kind]).content.decode() + "\n"


def test_indent_spreads_the_answer_and_changes_no_value(post: Post, tmp_path: Path) -> None:
    file = tmp_path / "question.json"
    file.write_text(json.dumps(QUESTIONS["inference"]), encoding="utf-8")
    printed = StringIO()
    call_command("plan", "inference", str(file), "--indent", "2", stdout=printed)
    response = post("inference", QUESTIONS["inference"], HTTP_ACCEPT="application/json; indent=2")
    assert printed.getvalue() == response.content.decode() + "\n"
    assert response.json() == post("inference", QUESTIONS["inference"]).json()
    assert response.content.startswith(b'{\n  "question"')


def test_money_is_a_decimal_text_and_speeds_are_numbers(post: Post) -> None:
    option = post("inference", QUESTIONS["inference"]).json()["options"][0]
    assert option["price"]["usd_per_gpu_hour"] == "4.95"
    assert Decimal(option["price"]["usd_per_hour"]) == Decimal("4.95") * 8
    assert option["price"]["as_of"] == "2026-11-16"
    assert option["speed"]["output_tok_s"] == 4220.0
    assert option["speed"]["ttft_ms"]["p95"] == 910


def test_money_is_never_written_with_an_exponent() -> None:
    plan = plan_factory(1)
    option = plan_to_json(plan)["options"][0]
    assert "E" not in option["price"]["usd_per_month"]


def test_a_plan_that_nothing_fits_is_an_answer_not_an_error() -> None:
    document = plan_to_json(empty_plan_factory())
    assert document["options"] == []
    assert [advice["field"] for advice in document["advice"]] == ["ttft_ms", "weight_formats", "input_tokens"]
    assert faults("InferencePlan", json.loads(encode(document))) == []


def test_unknown_is_null_never_nan() -> None:
    document = plan_to_json(training_plan_factory(1, flops_total=float("inf")))
    assert document["flops_total"] is None
    assert json.loads(encode(document))["flops_total"] is None


def test_null_and_absent_are_the_same(post: Post) -> None:
    given = QUESTIONS["inference"] | {"ttft_ms": None, "engine": None, "config": None, "weight_formats": None}
    assert post("inference", given).content == post("inference", QUESTIONS["inference"]).content


def test_a_charset_of_utf_8_is_accepted(post: Post) -> None:
    response = post("inference", QUESTIONS["inference"], content_type='application/json; charset="UTF-8"')
    assert response.status_code == 200


def test_no_session_and_no_csrf_token_are_needed(planner_answers: None) -> None:
    strict = Client(enforce_csrf_checks=True)
    response = strict.post(
        "/api/v1/plans/inference/", data=json.dumps(QUESTIONS["inference"]), content_type="application/json"
    )
    assert response.status_code == 200
    assert not response.cookies


def test_the_command_reads_standard_input_and_exits_2_on_bad_input() -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", "plan", "inference", "-"],
        input=b'{"model": "x", "concurrency": 0}',
        capture_output=True,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert ran.returncode == 2
    assert ran.stdout == b""
    # Beside it the model's name is at fault where this checkout has a catalog.
    error = json.loads(ran.stderr)["errors"][0]
    assert (error["attr"], error["value"], error["allowed"]) == ("concurrency", 0, "1 to 10,000,000 clients")


@pytest.mark.django_db
def test_the_command_says_what_to_do_when_there_is_no_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    file = tmp_path / "question.json"
    file.write_text(json.dumps(QUESTIONS["inference"]), encoding="utf-8")
    with pytest.raises(CommandError, match=r"No catalog can be read .*: run manage.py prepare") as raised:
        call_command("plan", "inference", str(file))
    assert raised.value.returncode == 1
