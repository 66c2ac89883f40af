"""docs/api.md says what the code does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.conf import settings

from planner.api.documents import openapi_document
from planner.api.paging import DEFAULT_LIMIT, LIMIT
from planner.api.price_book_entry_views import KINDS
from planner.api.throttles import PlanThrottle, ReadThrottle, RunThrottle
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.services.idempotency import KEPT_FOR, KEY_LENGTH
from planner.services.json_input import MAX_BODY_BYTES, MAX_DEPTH, MAX_ERRORS
from planner.services.tiers import QUOTAS, TIERS
from tests.api.conftest import Post
from tests.api.field_tables import PAGE, with_tables

TEXT = PAGE.read_text(encoding="utf-8")
OTHERS = "".join((PAGE.parent / name).read_text(encoding="utf-8") for name in ("accounts.md", "webhooks.md"))
KIND = re.compile("|".join(kind.slug for kind in KINDS))


def test_the_tables_of_fields_are_those_of_the_questions() -> None:
    assert with_tables(TEXT) == TEXT, "run: python -m tests.api.field_tables"


def test_every_address_is_listed() -> None:
    rows = re.findall(r"^\| `(GET|POST|PUT|PATCH|DELETE) (\S+)` \|", TEXT + OTHERS, re.MULTILINE)
    listed = {(method, f"/api/v1/{path}") for method, path in rows}
    documented = {
        (method.upper(), KIND.sub("{kind}", re.sub(r"\{\w+\}", "{id}", path)))
        for path, operations in openapi_document()["paths"].items()
        for method in operations
    }
    assert listed == documented


def _bodies() -> list[dict[str, Any]]:
    return [json.loads(body) for body in re.findall(r"-d '(\{.*?\})'", TEXT, re.DOTALL)]


def test_the_first_call_is_a_question() -> None:
    assert parse_question(InferenceQuestion, _bodies()[0]).requests_per_second == 10


@pytest.mark.usefixtures("catalog")
def test_the_first_call_is_answered(post: Post) -> None:
    assert len(post("inference", _bodies()[0]).json()["options"]) == 3


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"up to {MAX_ERRORS}" in TEXT
    assert f"more than {MAX_DEPTH} levels" in TEXT
    assert MAX_BODY_BYTES == 2**20
    assert "above 1 MiB" in TEXT
    assert f"({LIMIT.minimum} to {LIMIT.maximum},\ndefault {DEFAULT_LIMIT})" in TEXT
    assert f"({KEY_LENGTH[0]} to {KEY_LENGTH[1]} printable" in TEXT
    assert f"within {KEPT_FOR.total_seconds() / 3600:.0f} hours" in TEXT
    assert f"deleted after {settings.ANONYMOUS_RUN_DAYS} days" in TEXT
    for throttle in (PlanThrottle(), ReadThrottle(), RunThrottle()):
        assert throttle.duration == 60
        calls = [settings.API_RATES[tier][throttle.scope] for tier in TIERS]
        assert calls[0] == throttle.num_requests
        row = f"| {calls[0]} a minute | {calls[1]:,} | {calls[2]:,} | `API_{throttle.scope.upper()}_RATE` |"
        assert row in TEXT
    for name, quota in QUOTAS.items():
        assert re.search(rf"^\| `{name}`.* \| {quota.free:,} \| {quota.team:,} \|$", TEXT, re.MULTILINE), name


@pytest.mark.usefixtures("catalog")
def test_the_error_is_the_one_shown(post: Post) -> None:
    shown = json.loads(re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)[0])
    assert post("inference", {"model": "Llama 3.1 8B", "concurrency": 1, "headroom": 2}).json() == shown
