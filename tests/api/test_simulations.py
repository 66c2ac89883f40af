"""Simulations over REST: started once, with generated traffic or an uploaded trace."""

from __future__ import annotations

import errno
import gzip
import json
import os
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from celery import current_app
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client

from planner.api.simulation_views import CAPACITY_EXAMPLE, SIMULATION_EXAMPLE
from planner.models import Role, Run, StoredTrace, User
from planner.services.api_keys import create_key
from planner.services.disk import RESERVE_BYTES
from planner.services.organization_inputs import KeyInput
from planner.services.stored_traces import MAX_TRACE_BYTES, delete_trace
from tests.api.documented import faults
from tests.planner.organizations import Tenant, tenant_factory

pytestmark = pytest.mark.django_db
TRACE = b"arrival_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n"
QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 2}


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app, "send_task", lambda name, args: None)


def start(client: Client, body: Any, **headers: str) -> Any:
    return client.post("/api/v1/simulations/", json.dumps(body), content_type="application/json", headers=headers)


def upload(client: Client, content: bytes, kind: str = "text/csv", **extra: Any) -> Any:
    return client.post("/api/v1/traces/", content, content_type=kind, **extra)


def test_the_example_starts_a_job_at_its_own_address(client: Client, catalog: object) -> None:
    assert faults("SimulationRequest", SIMULATION_EXAMPLE) == []
    response = start(client, SIMULATION_EXAMPLE)
    assert response.status_code == 202
    run = Run.objects.get()
    assert response.headers["Location"] == f"/api/v1/runs/{run.uuid}/"
    assert (run.kind, run.params) == ("simulation", SIMULATION_EXAMPLE)
    polled = client.get(response.headers["Location"]).json()
    assert (polled["status"], polled["progress"]) == ("queued", 0.0)
    assert client.post(f"{response.headers['Location']}cancel/").json()["status"] == "cancelled"


def test_traffic_like_a_trace_is_fitted_and_can_be_asked_for(client: Client, catalog: object) -> None:
    rows = "".join(f"{at * at / 40},{90 if at % 3 else 4000 + at},{5 + at % 7}\n" for at in range(400))
    trace = upload(client, b"arrival_s,input_tokens,output_tokens\n" + rows.encode()).json()["id"]
    response = client.get(f"/api/v1/traces/{trace}/traffic/")
    assert response.status_code == 200
    found = response.json()
    assert len(found["input_lengths"]) == 200
    assert faults("TrafficQuestion", found) == []
    assert start(client, {"question": QUESTION, "traffic": found}).status_code == 202
    assert Run.objects.get().params["traffic"] == found
    short = upload(client, TRACE).json()["id"]
    refused = client.get(f"/api/v1/traces/{short}/traffic/")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["detail"] == "Too short to be fitted."
    for unknown in ("0" * 32, "x"):
        assert client.get(f"/api/v1/traces/{unknown}/traffic/").status_code == 404


def test_nobody_elses_trace_is_fitted(client: Client, catalog: object) -> None:
    ours, theirs = (tenant_factory(name).people[Role.PLANNER] for name in ("Ours", "Theirs"))
    client.force_login(ours)
    trace = upload(client, TRACE).json()["id"]
    assert client.get(f"/api/v1/traces/{trace}/traffic/").status_code == 400
    client.force_login(theirs)
    assert client.get(f"/api/v1/traces/{trace}/traffic/").status_code == 404


@pytest.mark.parametrize("metric", ["kv_use", "utilization"])
def test_a_share_is_no_target_above_one(client: Client, catalog: object, metric: str) -> None:
    scenario = {"autoscaler": "hpa", "scaling_metric": metric}
    for refused in (scenario, scenario | {"scaling_target": 1.5}):
        response = start(client, {"question": QUESTION, "scenario": refused})
        assert response.status_code == 400
        (error,) = response.json()["errors"]
        assert error["attr"] == "scenario.scaling_target"
        assert error["detail"] == f"{metric} is a share and never passes 1."
        assert error["allowed"] == "more than 0 to 1, such as 0.7"
    assert start(client, {"question": QUESTION, "scenario": scenario | {"scaling_target": 0.7}}).status_code == 202
    assert start(client, {"question": QUESTION, "scenario": {"scaling_metric": metric}}).status_code == 202
    searched = {"question": QUESTION | {"ttft_ms": 900}, "scenario": scenario}
    sent = client.post("/api/v1/capacity-searches/", json.dumps(searched), content_type="application/json")
    assert sent.status_code == 202


def test_a_body_in_chunks_is_no_empty_one(client: Client) -> None:
    for path in ("traces", "simulations", "plans/inference"):
        response = client.generic("POST", f"/api/v1/{path}/", headers={"Transfer-Encoding": "chunked"})
        assert response.status_code == 400
        assert "Content-Length" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_fault_of_the_code_and_nothing_half_written_stays(
    client: Client, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    client.raise_request_exception = False
    written: list[str] = []

    def save(name: str, content: Any) -> str:
        written.append(kept(name, ContentFile(b"arr")))
        raise OSError(fault, os.strerror(fault))

    kept = default_storage.save
    monkeypatch.setattr(default_storage, "save", save)
    response = upload(client, TRACE)
    assert response.status_code == 503
    assert [error["detail"] for error in response.json()["errors"]] == ["No room is left to keep this."]
    assert [default_storage.exists(name) for name in written] == [False]
    assert StoredTrace.objects.count() == 0


def test_uploads_leave_room_for_what_else_is_on_the_disk(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.raise_request_exception = False
    for free, status in ((RESERVE_BYTES + len(TRACE) - 1, 503), (RESERVE_BYTES + len(TRACE), 201)):
        monkeypatch.setattr("shutil.disk_usage", lambda _folder, free=free: Mock(free=free))
        assert upload(client, TRACE).status_code == status
    assert StoredTrace.objects.count() == 1


def test_a_capacity_search_starts_at_its_own_address(client: Client, catalog: object) -> None:
    assert faults("CapacityRequest", CAPACITY_EXAMPLE) == []
    response = client.post("/api/v1/capacity-searches/", json.dumps(CAPACITY_EXAMPLE), content_type="application/json")
    assert response.status_code == 202
    run = Run.objects.get()
    assert response.headers["Location"] == f"/api/v1/runs/{run.uuid}/"
    assert (run.kind, run.params) == ("capacity_search", CAPACITY_EXAMPLE)
    refused = client.post(
        "/api/v1/capacity-searches/", json.dumps({"question": QUESTION}), content_type="application/json"
    )
    assert [error["attr"] for error in refused.json()["errors"]] == ["question.ttft_ms"]


def test_regions_are_documented_and_started(client: Client, catalog: object) -> None:
    body = {"question": QUESTION, "regions": [{"name": "a", "fallback": ["b"]}, {"name": "b", "round_trip_ms": 9}]}
    assert faults("SimulationRequest", body) == []
    assert start(client, body).status_code == 202
    response = start(client, {"question": QUESTION, "regions": [{"name": "a", "trace": "x"}]})
    assert [error["attr"] for error in response.json()["errors"]] == ["regions.0.trace"]


def test_the_same_key_starts_one(client: Client, catalog: object) -> None:
    key = str(uuid4())
    for _ in range(2):
        assert start(client, {"question": QUESTION}, **{"Idempotency-Key": key}).status_code == 202
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "question"),
        ({"question": QUESTION, "traffic": {"hours": "1"}}, "traffic.hours"),
        ({"question": QUESTION, "scenario": []}, "scenario"),
        ({"question": QUESTION, "trace": "x"}, "trace"),
        ({"question": QUESTION | {"headroom": 2}}, "question.headroom"),
        ({"question": QUESTION, "speed": 1}, "speed"),
    ],
)
def test_faults_are_named_as_the_body_names_them(client: Client, catalog: object, body: Any, attr: str) -> None:
    response = start(client, body)
    assert response.status_code == 400
    assert [error["attr"] for error in response.json()["errors"]] == [attr]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("content", "kind"),
    [(TRACE, "text/csv"), (gzip.compress(TRACE, mtime=0), "application/gzip"), (TRACE, "text/csv; charset=utf-8")],
)
def test_a_trace_is_kept_and_served(client: Client, catalog: object, content: bytes, kind: str) -> None:
    kept = upload(client, content, kind)
    assert kept.status_code == 201
    assert faults("StoredTrace", kept.json()) == []
    assert start(client, {"question": QUESTION, "trace": kept.json()["id"]}).status_code == 202


def test_a_wrong_row_is_named(client: Client) -> None:
    response = upload(client, TRACE + b"2,-1,5\n")
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert (error["attr"], error["code"]) == ("trace", "invalid_trace")
    assert "row 4, column input_tokens" in error["detail"]


def test_an_empty_body_and_another_type_are_refused(client: Client) -> None:
    assert upload(client, b"").status_code == 400
    assert upload(client, b"{}", "application/json").status_code == 415


def test_a_trace_that_says_it_is_too_long_is_not_read(client: Client) -> None:
    assert upload(client, TRACE, CONTENT_LENGTH=str(MAX_TRACE_BYTES + 1)).status_code == 413


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def with_key(tenant: Tenant) -> Client:
    """A program's client, with a key of the organization."""
    values = KeyInput(name="ci", service_account="ci", scopes=("plans",))
    key = create_key(scope=tenant.scope(), values=values).key
    return Client(headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("by_key", [False, True])
def test_a_trace_is_for_who_sent_it_alone(catalog: object, by_key: bool) -> None:
    ours, theirs = tenant_factory("Ours"), tenant_factory("Theirs")
    own = with_key(ours) if by_key else signed_in(ours.people[Role.PLANNER])
    trace = upload(own, TRACE).json()["id"]
    unknown = "0" * 32
    for stranger in (Client(), signed_in(theirs.people[Role.OWNER]), with_key(theirs)):
        for body in ({"trace": trace}, {"regions": [{"name": "a", "trace": trace}]}):
            refused = start(stranger, {"question": QUESTION} | body)
            same = start(stranger, json.loads(json.dumps({"question": QUESTION} | body).replace(trace, unknown)))
            assert (refused.status_code, same.status_code) == (400, 400)
            assert refused.content.replace(trace.encode(), unknown.encode()) == same.content
            (fault,) = refused.json()["errors"]
            assert fault["attr"] in ("trace", "regions.0.trace")
        params = {"question": QUESTION | {"ttft_ms": 900}, "trace": trace}
        for kind in ("simulation", "capacity_search"):
            run = json.dumps({"kind": kind, "params": params})
            refused = stranger.post("/api/v1/runs/", run, content_type="application/json")
            assert [error["attr"] for error in refused.json()["errors"]] == ["params.trace"]
    assert not Run.objects.exists()
    assert start(own, {"question": QUESTION, "trace": trace}).status_code == 202


def test_a_trace_sent_without_an_account_is_for_whoever_knows_its_id(client: Client, catalog: object) -> None:
    trace = upload(client, TRACE).json()["id"]
    for anyone in (client, signed_in(tenant_factory().people[Role.PLANNER])):
        assert start(anyone, {"question": QUESTION, "trace": trace}).status_code == 202
    delete_trace(trace)
    assert start(client, {"question": QUESTION, "trace": trace}).status_code == 400
    assert not StoredTrace.objects.exists()


NOWHERE = QUESTION | {"model": "Llama 3.1 70B", "accelerators": ["l4"], "max_nodes": 1}


@pytest.mark.parametrize("address", ["simulations", "capacity-searches"])
@pytest.mark.parametrize(
    ("body", "attr", "code"),
    [
        ({"scenario": {"option": "no-such-option"}}, "scenario.option", "unknown_option"),
        ({"scenario": {"option": "99999"}}, "scenario.option", "unknown_option"),
        (
            {"regions": [{"name": "a"}, {"name": "b", "scenario": {"option": "none"}}]},
            "regions.1.scenario.option",
            "unknown_option",
        ),
        ({"question": NOWHERE}, "question", "nothing_fits"),
        ({"question": QUESTION | {"providers": ["nobody"]}}, "question.providers", "unknown_name"),
    ],
)
def test_what_the_plan_lacks_is_refused_at_once(
    client: Client, catalog: object, address: str, body: dict[str, Any], attr: str, code: str
) -> None:
    asked = {"question": QUESTION, **body}
    limited = asked | {"question": asked["question"] | {"ttft_ms": 60_000}}
    response = client.post(f"/api/v1/{address}/", json.dumps(limited), content_type="application/json")
    assert response.status_code == 400
    assert [(fault["attr"], fault["code"]) for fault in response.json()["errors"]] == [(attr, code)]
    assert not Run.objects.exists()


def test_options_are_named_by_id_and_by_place(client: Client, catalog: object) -> None:
    planned = client.post("/api/v1/plans/inference/", json.dumps(QUESTION), content_type="application/json").json()
    for option in (planned["options"][1]["id"], "1"):
        assert start(client, {"question": QUESTION, "scenario": {"option": option}}).status_code == 202
