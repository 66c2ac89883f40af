"""Simulating from the page: the form, and what it starts."""

from __future__ import annotations

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from frontend.stated import option_words
from planner.models import Role, Run, RunStatus
from planner.services.stored_traces import has_trace
from tests.frontend.simulation_pages import FORM, TRACE, post
from tests.planner.organizations import tenant_factory

pytestmark = pytest.mark.django_db
REGIONS = b'{"max_outstanding": 9, "regions": [{"name": "Jakarta"}, {"name": "Singapore", "traffic": {"hours": 0.1}}]}'


def test_the_form_is_filled_in_from_the_question(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&users=864&requests_per_user_per_day=100&input_tokens=77"
    text = client.get(f"{FORM}?{question}").content.decode()
    assert re.search(r'name="traffic-requests_per_second"[^>]* value="1"', text)
    assert re.search(r'name="traffic-input_median"[^>]* value="77"', text)


def test_a_plans_clients_are_clients_in_the_form(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&concurrency=64&accelerators=h100-sxm"
    text = client.get(f"{FORM}?{question}").content.decode()
    assert re.search(r'name="traffic-clients"[^>]* value="64"', text)
    assert re.search(r'name="traffic-requests_per_second"[^>]* value=""', text)
    typed = {"question": question, "traffic-clients": "32", "traffic-think_s": "1.5", "traffic-hours": "0.1"}
    assert client.post(FORM, typed).status_code == 302
    assert Run.objects.get().params["traffic"] == {"clients": 32, "think_s": 1.5, "hours": 0.1}
    both = client.post(FORM, typed | {"traffic-requests_per_second": "3"})
    assert both.status_code == 400
    assert "Clients that wait for their answers send at no given rate" in both.content.decode()


def test_a_plans_job_is_one_in_the_form(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&offline_requests=5000&offline_hours=2&accelerators=h100-sxm"
    text = client.get(f"{FORM}?{question}").content.decode()
    assert re.search(r'name="traffic-requests"[^>]* value="5000"', text)
    for name in ("requests_per_second", "hours"):
        assert re.search(rf'name="traffic-{name}"[^>]* value=""', text), name
    assert "Sized to answer 5,000 requests within 2 h, 20% of that time kept free." in text
    assert "needs-limits" not in text
    assert client.post(FORM, {"question": question, "traffic-requests": "5000"}).status_code == 302
    assert Run.objects.get().params["traffic"] == {"requests": 5000}
    smallest = {"question": question, "traffic-requests": "5000", "goal": "smallest"}
    assert client.post(FORM, smallest).status_code == 302
    both = client.post(FORM, {"question": question, "traffic-requests": "5000", "traffic-hours": "3"})
    assert both.status_code == 400
    assert "all there at the beginning" in both.content.decode()


def test_an_option_is_where_its_plan_says(catalog: object) -> None:
    id_of = "genesis/HGX H100 8x/{}/on_demand:tp4-pp1-ep1-x2:fp8".format
    places = [option_words(id_of(region)).partition(" · ")[0] for region in ("no-*", "*", "oslo-1")]
    assert places == [f"HGX H100 8x at Genesis Cloud, {place}" for place in ("Norway", "region not stated", "oslo-1")]


def test_a_post_starts_the_job_with_typed_values(client: Client, catalog: object) -> None:
    response = post(client, **{"traffic-hours": "0.5", "fleet-policy": "round_robin", "fleet-replicas": "3"})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.uuid}/"
    assert run.kind == "simulation"
    assert run.params["scenario"] == {"replicas": 3, "policy": "round_robin"}
    assert run.params["traffic"] == {"hours": 0.5}
    assert run.params["question"]["requests_per_second"] == 2.0


def test_an_upload_is_kept_instead_of_the_generated_traffic(client: Client, catalog: object) -> None:
    post(client, trace=SimpleUploadedFile("day.csv", TRACE))
    params = Run.objects.get().params
    assert "traffic" not in params
    assert has_trace(params["trace"])


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"traffic-hours": "never"}, "Not a number: never."),
        ({"fleet-policy": "dice"}, "Not a known choice: dice."),
        (
            {"traffic-hours": "8784", "traffic-requests_per_second": "9999"},
            "Too many requests: 316,192,377,600 in 8784 h. Allowed: ",
        ),
        ({"question": "model=Llama+3.1+8B&requests_per_second=-1"}, "Out of range"),
        ({"question": "model=no-such-model&requests_per_second=1"}, "no-such-model"),
    ],
)
def test_faults_come_back_in_the_form(client: Client, catalog: object, fields: dict[str, str], shown: str) -> None:
    response = post(client, **fields)
    assert response.status_code == 400
    assert shown in response.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "KV use is a share and never passes 1: 32. Allowed: more than 0 to 1, such as 0.7"),
        ("id", "adalah pangsa dan tidak pernah melewati 1: 32. Yang boleh: lebih dari 0 sampai 1"),
    ],
)
def test_a_share_is_no_target_above_one(client: Client, catalog: object, language: str, said: str) -> None:
    client.cookies["django_language"] = language
    typed = {"fleet-autoscaler": "hpa", "fleet-scaling_metric": "kv_use", "fleet-scaling_target": "32"}
    response = post(client, **typed)
    assert response.status_code == 400
    assert said in response.content.decode()
    assert not Run.objects.exists()
    assert post(client, **typed | {"fleet-scaling_target": "0.8"}).status_code == 302
    # A search finds the target itself.
    limited = typed | {"question": "model=Llama+3.1+8B&requests_per_second=2&ttft_ms=900", "goal": "smallest"}
    assert client.post(FORM, limited).status_code == 302


@pytest.mark.parametrize(("metric", "unit"), [("kv_use", "share"), ("queue", "requests a replica")])
def test_a_targets_unit_is_its_metrics(client: Client, catalog: object, metric: str, unit: str) -> None:
    text = client.get(f"{FORM}?model=Llama+3.1+8B&requests_per_second=2&fleet-scaling_metric={metric}").content.decode()
    assert re.search(rf'name="fleet-scaling_target"[^>]*><span class="unit">{unit}</span>', text)


def test_a_setting_that_is_none_is_named(client: Client, catalog: object) -> None:
    response = post(client, scenario=SimpleUploadedFile("s.json", b'{"nope": 1}'))
    assert "scenario.nope: Unknown field: nope." in response.content.decode()


def test_a_bad_trace_is_named_by_row_and_column(client: Client, catalog: object) -> None:
    response = post(client, trace=SimpleUploadedFile("bad.csv", TRACE + b"2,none,5\n"))
    assert response.status_code == 400
    assert "row 4, column input_tokens" in response.content.decode()
    assert not Run.objects.exists()


def test_a_bad_traces_fault_is_told_in_the_pages_language(client: Client, catalog: object) -> None:
    client.cookies["django_language"] = "id"
    for row, said in (
        (
            b"2,none,5\n",
            "baris 4, kolom input_tokens: Bukan bilangan: none. Yang boleh: bilangan bulat dari 0 sampai 2.147.483.647",
        ),
        (b"2,0,5\n", "baris 4, kolom input_tokens: Prompt tanpa token. (0) Yang boleh: 1 sampai 2.147.483.647"),
        (b"2,3\n", "baris 4: 2 nilai dalam baris dengan 3 kolom."),
    ):
        response = post(client, trace=SimpleUploadedFile("bad.csv", TRACE + row))
        assert said in response.content.decode()


def test_an_upload_that_says_it_is_too_long_is_not_read(client: Client, catalog: object) -> None:
    response = client.post(FORM, {"trace": SimpleUploadedFile("day.csv", TRACE)}, CONTENT_LENGTH=str(2**30))
    assert response.status_code == 400
    assert not Run.objects.exists()


def test_a_form_serves_nobody_elses_trace(client: Client, catalog: object) -> None:
    ours, theirs = tenant_factory("Ours"), tenant_factory("Theirs")
    own, stranger = Client(), Client()
    own.force_login(ours.people[Role.PLANNER])
    stranger.force_login(theirs.people[Role.PLANNER])
    post(own, trace=SimpleUploadedFile("day.csv", TRACE))
    run = Run.objects.get()
    trace = run.params["trace"]
    for visitor in (client, stranger):
        scenario = SimpleUploadedFile("s.json", json.dumps({"regions": [{"name": "a", "trace": trace}]}).encode())
        response = post(visitor, scenario=scenario)
        assert response.status_code == 400
        assert f"No such trace: {trace}." in response.content.decode()
        post(visitor, **{"from": str(run.uuid), "again-trace": "on"})
    assert [each.uuid for each in Run.objects.filter(params__trace=trace)] == [run.uuid]
    assert post(own, **{"from": str(run.uuid), "again-trace": "on"}).status_code == 302
    assert Run.objects.filter(params__trace=trace, owner=ours.people[Role.PLANNER]).count() == 2


def test_an_anonymous_upload_may_be_served_again(client: Client, catalog: object) -> None:
    post(client, trace=SimpleUploadedFile("day.csv", TRACE))
    post(client, **{"from": str(Run.objects.get().uuid), "again-trace": "on"})
    assert len({run.params["trace"] for run in Run.objects.all()}) == 1
    assert Run.objects.count() == 2


def test_the_trace_of_the_run_before_is_used_again(client: Client, catalog: object) -> None:
    post(client, trace=SimpleUploadedFile("day.csv", TRACE))
    first = Run.objects.get()
    Run.objects.filter(pk=first.pk).update(status=RunStatus.CANCELLED)
    again = re.search(r'href="(/simulations/new/[^"]*)"', client.get(f"/runs/{first.uuid}/").content.decode())
    assert again is not None
    assert 'name="again-trace"' in client.get(again[1].replace("&amp;", "&")).content.decode()
    post(client, **{"from": str(first.uuid), "again-trace": "1", "fleet-replicas": "2"})
    second = Run.objects.exclude(pk=first.pk).get()
    assert second.params["trace"] == first.params["trace"]
    post(client, **{"from": str(first.uuid)})
    assert "trace" not in Run.objects.exclude(pk__in=(first.pk, second.pk)).get().params


def test_a_scenario_file_brings_settings_and_regions(client: Client, catalog: object) -> None:
    given = {"fleet-replicas": "2", "fleet-max_outstanding": "4", "traffic-hours": "0.2"}
    post(client, scenario=SimpleUploadedFile("scenario.json", REGIONS), **given)
    first = Run.objects.get()
    assert first.params["scenario"] == {"replicas": 2, "max_outstanding": 9}
    assert [region["name"] for region in first.params["regions"]] == ["Jakarta", "Singapore"]
    Run.objects.filter(pk=first.pk).update(status=RunStatus.CANCELLED)
    assert "run before again: Jakarta, Singapore" in client.get(f"{FORM}?from={first.uuid}").content.decode()
    post(client, **{"from": str(first.uuid), "again-regions": "1"})
    assert Run.objects.exclude(pk=first.pk).get().params["regions"] == first.params["regions"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"{", "Not JSON:"),
        (b"[]", "one JSON object"),
        (b"{" + b" " * 300_000 + b"}", "Too large."),
        (b'{"regions": [{"name": "a"}, {"name": "a"}]}', "regions.1.name: Named twice."),
        (b'{"speed": 1}', "scenario.speed:"),
    ],
)
def test_a_bad_scenario_file_is_said_on_the_form(client: Client, catalog: object, content: bytes, shown: str) -> None:
    response = post(client, scenario=SimpleUploadedFile("scenario.json", content))
    assert response.status_code == 400
    assert shown in response.content.decode()
    assert not Run.objects.exists()


def test_the_form_says_what_is_simulated(client: Client, catalog: object) -> None:
    option = "aws/p5.48xlarge/us-east-1/on_demand:tp8-pp1-ep1-x2:fp8"
    link = f"{FORM}?model=Llama+3.1+8B&requests_per_second=2000"
    text = client.get(link).content.decode()
    assert "Model Llama 3.1 8B · Mean load 2,000 req/s" in text
    assert "<dd>The plan's first</dd>" in text
    assert "us-east-1 · On demand · TP8 · FP8" in client.get(f"{link}&fleet-option={option}").content.decode()


@pytest.mark.parametrize("load", ["1e-999999999999", "1e999999999999", "-1e-999999999999", "0e999999999999"])
def test_a_number_is_not_written_out_in_as_many_digits_as_its_exponent_says(
    client: Client, catalog: object, load: str
) -> None:
    page = client.get(FORM, {"model": "Llama 3.1 8B", "requests_per_second": load}).content
    assert len(page) < 100_000
    assert f"Mean load {load} req/s" in page.decode()
