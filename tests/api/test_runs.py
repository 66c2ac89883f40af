"""Jobs over REST: started once, polled, cancelled, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery import current_app
from django.db import connection
from django.test import Client

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import IdempotencyKey, Run, RunStatus, User
from planner.services.run_execution import execute_run
from planner.services.run_kinds import RUN_KINDS, ReportProgress, RunKind

pytestmark = pytest.mark.django_db(transaction=True)
Start = Callable[..., Any]


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs that workers were told of; one kind, ``double``, is known."""

    def check(params: Mapping[str, Any], owner: User | None) -> None:
        if not isinstance(params.get("number"), int):
            fault = FieldError(field="number", value=params.get("number"), message="Not a number.", allowed="a number")
            raise InvalidQuestion([fault])

    def double(params: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
        report(0.5, "half way")
        return {"catalog_version": "v1", "doubled": 2 * params["number"]}

    monkeypatch.setitem(RUN_KINDS, "double", RunKind(check=check, execute=double))
    told: list[int] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, args: told.extend(args))
    return told


@pytest.fixture
def start(client: Client) -> Start:
    """Posts a job; keyword arguments are header entries."""

    def send(body: Mapping[str, Any] | bytes, **extra: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.post("/api/v1/runs/", data=data, content_type="application/json", **extra)

    return send


DOUBLE = {"kind": "double", "params": {"number": 21}}


def test_a_job_is_started_polled_and_gives_its_result(start: Start, client: Client, announced: list[int]) -> None:
    started = start(DOUBLE)
    assert started.status_code == 202
    location = started.headers["Location"]
    assert location == f"/api/v1/runs/{started.json()['id']}/"
    assert started.headers["Retry-After"] == "1"
    assert started.json()["status"] == "queued"
    assert started.json()["params"] == {"number": 21}

    (run_id,) = announced
    execute_run(run_id=run_id)
    finished = client.get(location)
    assert finished.status_code == 200
    assert "Retry-After" not in finished.headers
    assert finished.headers["Cache-Control"] == "no-store"
    document = finished.json()
    assert (document["status"], document["progress"], document["attempts"]) == ("succeeded", 1.0, 1)
    assert document["result"] == {"catalog_version": "v1", "doubled": 42}
    assert document["finished_at"] >= document["started_at"] >= document["created_at"]


def test_a_waiting_job_is_cancelled_at_once_and_stays_so(start: Start, client: Client, announced: list[int]) -> None:
    location = start(DOUBLE).headers["Location"]
    for _ in range(2):
        cancelled = client.post(f"{location}cancel/")
        assert cancelled.status_code == 200
        assert (cancelled.json()["status"], cancelled.json()["cancel_requested"]) == ("cancelled", True)
    execute_run(run_id=announced[0])
    assert client.get(location).json()["status"] == "cancelled"


def test_a_finished_job_stays_finished(start: Start, client: Client, announced: list[int]) -> None:
    location = start(DOUBLE).headers["Location"]
    execute_run(run_id=announced[0])
    assert client.post(f"{location}cancel/").json()["status"] == "succeeded"


def test_the_same_key_and_request_start_one_job(start: Start, announced: list[int]) -> None:
    key = str(uuid4())
    first = start(DOUBLE, HTTP_IDEMPOTENCY_KEY=key)
    again = start(b'{ "params": {"number": 21}, "kind": "double" }', HTTP_IDEMPOTENCY_KEY=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.headers["Location"] == again.headers["Location"]
    assert len(announced) == Run.objects.count() == 1


def test_of_many_requests_at_once_with_one_key_one_job_comes(announced: list[int]) -> None:
    key = str(uuid4())

    def send(_: int) -> tuple[int, str]:
        try:
            response = Client().post(
                "/api/v1/runs/", data=DOUBLE, content_type="application/json", headers={"Idempotency-Key": key}
            )
            return response.status_code, response.json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=6) as pool:
        answers = set(pool.map(send, range(6)))
    assert answers == {(202, str(Run.objects.get().uuid))}
    assert len(announced) == 1


def test_the_same_key_with_another_request_is_422(start: Start) -> None:
    key = str(uuid4())
    start(DOUBLE, HTTP_IDEMPOTENCY_KEY=key)
    other = start({"kind": "double", "params": {"number": 1}}, HTTP_IDEMPOTENCY_KEY=key)
    assert other.status_code == 422
    (error,) = other.json()["errors"]
    assert (error["code"], error["value"], error["allowed"]) == ("key_reused", key, "a new key for a new request")
    assert Run.objects.count() == 1


def test_without_a_key_each_request_starts_a_job(start: Start) -> None:
    assert start(DOUBLE).json()["id"] != start(DOUBLE).json()["id"]


def test_a_refused_request_uses_no_key_up(start: Start) -> None:
    key = str(uuid4())
    assert start({"kind": "double", "params": {}}, HTTP_IDEMPOTENCY_KEY=key).status_code == 400
    assert not IdempotencyKey.objects.exists()
    assert start(DOUBLE, HTTP_IDEMPOTENCY_KEY=key).status_code == 202


def test_a_key_is_forgotten_after_a_day(start: Start) -> None:
    key = str(uuid4())
    first = start(DOUBLE, HTTP_IDEMPOTENCY_KEY=key).json()["id"]
    row = IdempotencyKey.objects.get()
    IdempotencyKey.objects.update(created_at=row.created_at.replace(year=row.created_at.year - 1))
    assert start(DOUBLE, HTTP_IDEMPOTENCY_KEY=key).json()["id"] != first


@pytest.mark.parametrize("key", ["1", "", "x" * 201, "0123456789abcdef\x7f", "ключ-ключ-ключ-ключ"])
def test_a_key_that_is_guessable_or_odd_is_refused(key: str, start: Start) -> None:
    response = start(DOUBLE, HTTP_IDEMPOTENCY_KEY=key)
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert error["attr"] == "Idempotency-Key"
    assert error["allowed"].startswith("16 to 200 printable ASCII characters")


@pytest.mark.parametrize(
    ("body", "attr", "code", "allowed"),
    [
        (b"", None, "parse_error", "one JSON object"),
        ({}, "kind", "invalid", "a kind of job"),
        ({"kind": 1}, "kind", "invalid", "a kind of job"),
        ({"kind": "sing"}, "kind", "unknown_kind", "double"),
        ({"kind": "double", "params": []}, "params", "invalid", "a JSON object"),
        ({"kind": "double", "params": None}, "params", "invalid", "a JSON object"),
        ({"kind": "double", "params": {"number": "x"}}, "params.number", "invalid", "a number"),
        (
            {"kind": "double", "params": {"number": 1}, "priority": 1},
            "priority",
            "unknown_field",
            "One of: kind, params",
        ),
    ],
)
def test_bad_requests_name_the_member(
    body: Mapping[str, Any] | bytes, attr: str | None, code: str, allowed: str, start: Start
) -> None:
    response = start(body)
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert (error["attr"], error["code"]) == (attr, code)
    assert allowed in error["allowed"]
    assert not Run.objects.exists()


@pytest.mark.parametrize("name", [uuid4(), UUID(int=0), "1", "%00", "not-a-uuid"])
def test_an_unknown_job_is_404(name: Any, client: Client) -> None:
    for response in (client.get(f"/api/v1/runs/{name}/"), client.post(f"/api/v1/runs/{name}/cancel/")):
        assert response.status_code == 404
        assert response.json()["errors"][0]["code"] == "not_found"


def test_a_persons_job_is_not_shown_to_others(client: Client) -> None:
    owner = User.objects.create_user("ada")
    run = Run.objects.create(kind="double", params={}, owner=owner)
    assert client.get(f"/api/v1/runs/{run.uuid}/").status_code == 404
    assert client.post(f"/api/v1/runs/{run.uuid}/cancel/").status_code == 404
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_a_failed_job_says_why(start: Start, client: Client, announced: list[int]) -> None:
    location = start(DOUBLE).headers["Location"]
    Run.objects.update(params={"number": None})
    execute_run(run_id=announced[0])
    document = client.get(location).json()
    assert (document["status"], document["result"]) == ("failed", None)
    assert document["error"]["code"] == "internal_error"


@pytest.mark.parametrize(
    ("params", "attr", "code"),
    [
        ({}, "params.question", "invalid"),
        ({"question": {"model": "m"}}, "params.question.requests_per_second", "required"),
        ({"question": {"model": "m", "concurrency": "8"}}, "params.question.concurrency", "invalid"),
        ({"question": {"model": "m", "concurrency": 8, "x": 1}}, "params.question.x", "unknown_field"),
    ],
)
def test_a_sweep_is_refused_by_the_field_of_its_question(
    params: dict[str, Any], attr: str, code: str, start: Start
) -> None:
    response = start({"kind": "plan_sweep", "params": params})
    assert response.status_code == 400
    assert [(error["attr"], error["code"]) for error in response.json()["errors"]] == [(attr, code)]
