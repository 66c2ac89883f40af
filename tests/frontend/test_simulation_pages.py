"""Simulating from the page: the form, what it starts, and how a result is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from frontend.answers.simulation import compare
from frontend.figures.canvas import Axis
from frontend.figures.curves import over_time
from frontend.stated import option_words
from planner.models import Role, Run, RunStatus
from planner.services.stored_traces import has_trace
from tests.planner.organizations import tenant_factory

pytestmark = pytest.mark.django_db
FORM = "/simulations/new/"
TRACE = b"arrival_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n"


def post(client: Client, **fields: Any) -> Any:
    return client.post(FORM, {"question": "model=Llama+3.1+8B&requests_per_second=2", **fields})


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
        ({"traffic-hours": "8784", "traffic-requests_per_second": "9999"}, "Too many requests"),
        ({"question": "model=Llama+3.1+8B&requests_per_second=-1"}, "Out of range"),
        ({"question": "model=no-such-model&requests_per_second=1"}, "no-such-model"),
    ],
)
def test_faults_come_back_in_the_form(client: Client, catalog: object, fields: dict[str, str], shown: str) -> None:
    response = post(client, **fields)
    assert response.status_code == 400
    assert shown in response.content.decode()
    assert not Run.objects.exists()


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


def result() -> dict[str, Any]:
    times = {at: [100.0, None] for at in ("p50", "p90", "p95", "p99")}
    latency = {"mean": 90.0, "p50": 80.0, "p90": 110.0, "p95": 120.0, "p99": 150.0}
    return {
        "requests": 12, "completed": 11, "dropped": 1, "duration_s": 120.0, "replicas": 2, "option": "a",
        "throughput": {"requests_s": 0.1, "input_tok_s": 5.0, "output_tok_s": 7.0},
        "ttft_ms": latency, "tpot_ms": latency, "goodput": {"share": 0.9}, "preemptions": 0, "utilization": 0.4,
        "gpu_hours": 0.1, "cost_usd": "1.20", "usd_per_million_output_tokens": "3.10", "catalog_version": "v",
        "settings": {"seed": 4}, "notes": ["Generated traffic."],
        "ecdf": {"shares": [0.5, 1.0], "ttft_ms": [80.0, 150.0], "tpot_ms": [80.0, 150.0]},
        "incidents": {"first": [{"at_s": 60.0, "kind": "scaled", "replica": None, "replicas": 3, "lost_requests": 0}]},
        "timeline": {
            "requests": {
                "bin_s": 60.0, "arrived": [6, 6], "completed": [5, 6], "dropped": [1, 0],
                "input_tokens": [10, 10], "output_tokens": [10, 10], "ttft_ms": times, "tpot_ms": times,
            },
            "replicas": {"bin_s": 60.0, "ready": [2.0, 3.0], "ready_min": [2.0, 2.0], "billed": [2.0, 3.0]},
            "queue": {"bin_s": 60.0, "waiting": [0, 1], "waiting_max": [1, 4], "running": [1, 2]},
            "kv": {"bin_s": 60.0, "used": [0.1, 0.2], "used_max": [0.2, 0.3]},
            "heat": {"bin_s": 60.0, "kv": [[0.1, 0.5], [0.2, 0.4]], "waiting": [[0, 0], [0, 1]]},
        },
    }  # fmt: skip


@pytest.fixture
def finished(client: Client) -> Run:
    return Run.objects.create(
        kind="simulation",
        params={"question": {"model": "Llama 3.1 8B", "requests_per_second": 2.0}, "traffic": {"hours": 0.5}},
        status=RunStatus.SUCCEEDED,
        progress=1.0,
        result=result(),
    )


def test_a_result_has_its_sentence_charts_and_incidents(client: Client, finished: Run) -> None:
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "12 requests in 2 min: 90.0\xa0% within the limits, p95 TTFT 120\xa0ms" in text
    assert text.count("data-figure=") == 11
    assert "At most 4 requests waited" in text
    assert "The KV cache is 50 % full at its fullest" in text
    assert "Replicas wanted: 3" in text
    assert "traffic-hours=0.5" in text


def test_a_run_started_from_another_is_shown_beside_it(client: Client, catalog: object, finished: Run) -> None:
    response = post(client, **{"from": str(finished.uuid), "traffic-seed": "9"})
    later = Run.objects.exclude(pk=finished.pk).get()
    assert response["Location"] == f"/runs/{later.uuid}/?with={finished.uuid}"
    assert f'hx-get="/runs/{later.uuid}/?with={finished.uuid}"' in client.get(response["Location"]).content.decode()
    Run.objects.filter(pk=later.pk).update(status=RunStatus.SUCCEEDED, result={**result(), "requests": 24})
    text = client.get(response["Location"]).content.decode()
    assert re.search(r"<th[^>]*>Requests</th><td>24</td><td>12</td><td>\+100 %</td>", text)


def test_a_person_compares_with_runs_of_their_own(client: Client, finished: Run, django_user_model: Any) -> None:
    assert 'name="with"' not in client.get(f"/runs/{finished.uuid}/").content.decode()
    one, other = (django_user_model.objects.create_user(f"{name}@example.org") for name in ("one", "other"))
    own = {"kind": "simulation", "status": RunStatus.SUCCEEDED, "params": {}, "result": {**result(), "requests": 24}}
    mine, theirs = Run.objects.create(owner=one, **own), Run.objects.create(owner=other, **own)
    Run.objects.create(owner=one, **(own | {"status": RunStatus.FAILED, "result": None}))
    client.force_login(one)
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert re.findall(r'<option value="([^"]*)"', text) == [str(mine.uuid)]
    text = client.get(f"/runs/{finished.uuid}/?with={mine.uuid}").content.decode()
    assert re.search(r"<th[^>]*>Requests</th><td>12</td><td>24</td><td>−50 %</td>", text)
    assert "The other run" not in client.get(f"/runs/{finished.uuid}/?with={theirs.uuid}").content.decode()


def test_a_post_may_ask_for_the_smallest_fleet(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&requests_per_second=2&ttft_ms=900"
    assert "the question has none yet" not in client.get(f"{FORM}?{question}").content.decode()
    client.post(FORM, {"question": question, "goal": "smallest", "fleet-autoscaler": "hpa"})
    run = Run.objects.get()
    assert (run.kind, run.params["scenario"]) == ("capacity_search", {"autoscaler": "hpa"})


def test_the_smallest_fleets_of_several_regions_may_be_asked_for(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&requests_per_second=2&ttft_ms=900"
    regions = [{"name": "a", "fallback": ["b"]}, {"name": "b"}]
    scenario = SimpleUploadedFile("scenario.json", json.dumps({"regions": regions}).encode())
    client.post(FORM, {"question": question, "goal": "smallest", "scenario": scenario})
    run = Run.objects.get()
    assert (run.kind, run.params["regions"]) == ("capacity_search", regions)


def test_the_smallest_fleet_needs_a_limit(client: Client, catalog: object) -> None:
    assert "the question has none yet" in client.get(f"{FORM}?model=Llama+3.1+8B").content.decode()
    response = post(client, goal="smallest")
    assert response.status_code == 400
    assert "ttft_ms: A smallest fleet needs a limit to hold." in response.content.decode()


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


REGIONS = b'{"max_outstanding": 9, "regions": [{"name": "Jakarta"}, {"name": "Singapore", "traffic": {"hours": 0.1}}]}'


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


def test_progress_is_told_in_the_pages_language(client: Client, finished: Run) -> None:
    message = "2, 4 replicas: 65,536 requests, 1.50 h simulated"
    Run.objects.update(status=RunStatus.RUNNING, result=None, message=message, lease_expires_at=timezone.now())
    assert message in client.get(f"/runs/{finished.uuid}/").content.decode()
    client.cookies["django_language"] = "id"
    assert (
        "2, 4 replika: 65.536 permintaan, 1,50 jam disimulasikan"
        in client.get(f"/runs/{finished.uuid}/").content.decode()
    )


def searched() -> dict[str, Any]:
    base = {
        "replicas": 2, "autoscaled": False, "scaling_target": None, "min_replicas": None, "max_replicas": None,
        "met": True, "ttft_ms": 120.0, "tpot_ms": 20.0, "goodput_share": 0.97, "goodput_requests_s": 3.5, "dropped": 0,
        "gpu_hours": 2.0, "cost_usd": "4.00",
    }  # fmt: skip
    scaled = {"autoscaled": True, "scaling_target": 12.5, "min_replicas": 1, "max_replicas": 4, "cost_usd": "3.00"}
    one = {"replicas": 1, "met": False, "goodput_share": 0.4, "cost_usd": "2.00", "ttft_ms": None}
    tried = [base | one, base | scaled, base]
    limits = {"ttft": 500.0, "tpot": None}
    return {"replicas": 2, "percentile": "p95", "limits_ms": limits, "chosen": 1, "tried": tried}


@pytest.fixture
def search(client: Client, finished: Run) -> Run:
    Run.objects.filter(pk=finished.pk).update(kind="capacity_search", result={**result(), "search": searched()})
    return Run.objects.get()


def test_a_search_shows_attainment_against_cost_and_the_chosen_run(client: Client, search: Run) -> None:
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "The cheapest fleet that holds the limits: 1 to 4 replicas, target 12.5, $3.00 for the time" in text
    assert "Without an autoscaler the fewest replicas that hold them are 2." in text
    assert text.count("data-figure=") == 13
    assert "12 requests in 2 min" in text
    rows = re.findall(r"<tr( class=\"is-chosen\"[^>]*)?><td data-sort=\"[^\"]*\" class=\"text\">([^<]*)</td>", text)
    assert [(bool(chosen), fleet) for chosen, fleet in rows] == [
        (False, "1 replica"),
        (True, "1 to 4 replicas, target 12.5"),
        (False, "2 replicas"),
    ]


def test_a_search_that_found_nothing_says_what_came_closest(client: Client, search: Run) -> None:
    nothing = searched() | {"replicas": None, "chosen": 0}
    Run.objects.update(result={**result(), "search": nothing})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "No fleet tried holds the limits; the closest, 1 replica, keeps 40.0\xa0% of requests within them" in text


def test_a_search_over_regions_names_each(client: Client, search: Run) -> None:
    point = searched()["tried"][2]
    unset = {"min_replicas": None, "max_replicas": None, "scaling_target": None}
    jakarta, singapore = ({"name": name, "replicas": 1, **unset} for name in ("Jakarta", "Singapore"))
    scaled = jakarta | {"replicas": 1, "min_replicas": 1, "max_replicas": 3, "scaling_target": 8.0}
    total = {"autoscaled": True, "min_replicas": 2, "max_replicas": 4, "scaling_target": None, "cost_usd": "3.00"}
    tried = [point | total | {"regions": [scaled, singapore]}, point | {"regions": [jakarta, singapore]}]
    Run.objects.update(result={**result(), "search": searched() | {"tried": tried, "chosen": 0}})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "2 replicas (Jakarta: 1 replica, Singapore: 1 replica)" in text
    assert "2 to 4 replicas (Jakarta: 1 to 3 replicas, target 8, Singapore: 1 replica), $3.00 for the time" in text
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{search.uuid}.csv?tried").content.decode())))
    assert [row["regions"] for row in rows] == ["Jakarta: 1; Singapore: 1"] * 2
    message = "Each region alone: 65,536 requests, 1.50 h simulated"
    Run.objects.update(status=RunStatus.RUNNING, result=None, message=message, lease_expires_at=timezone.now())
    client.cookies["django_language"] = "id"
    assert "Setiap wilayah sendiri-sendiri: 65.536 permintaan" in client.get(f"/runs/{search.uuid}/").content.decode()


def test_all_that_was_tried_comes_as_csv(client: Client, search: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{search.uuid}.csv?tried").content.decode())))
    assert [row["cost_usd"] for row in rows] == ["2.00", "3.00", "4.00"]
    assert [row["scaling_target"] for row in rows] == ["", "12.5", ""]
    assert "arrived" in client.get(f"/runs/{search.uuid}.csv").content.decode()


def test_regions_have_a_row_each(client: Client, finished: Run) -> None:
    latency = result()["ttft_ms"]
    alone = {
        "name": "Jakarta",
        "replicas": 2,
        "requests": 7,
        "goodput_share": 0.9,
        "ttft_ms": latency,
        "tpot_ms": latency,
    }
    linked = dict.fromkeys(alone, None) | {"name": "Singapore"}
    regions = [alone | {"cost_usd": "1.00"}, linked | {"cost_usd": "0.20"}]
    Run.objects.update(result={**result(), "regions": regions})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert re.search(
        r">Jakarta</th><td>2</td><td>7</td><td>90.0 %</td><td>120 ms</td><td>120 ms</td><td>\$1.00</td>", text
    )
    assert re.search(r">Singapore</th><td>–</td>", text)


def test_a_result_says_what_it_was_asked_with(client: Client, finished: Run) -> None:
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "<dt>Traffic</dt><dd>Duration 0.5 h</dd>" in text


@pytest.mark.parametrize("other", ["x", "00000000-0000-0000-0000-000000000000", ""])
def test_an_unknown_other_run_is_left_out(client: Client, finished: Run, other: str) -> None:
    response = client.get(f"/runs/{finished.uuid}/?with={other}")
    assert response.status_code == 200
    assert "Side by side" not in response.content.decode()


def test_the_timeline_comes_as_csv(client: Client, finished: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{finished.uuid}.csv").content.decode())))
    assert [row["arrived"] for row in rows] == ["6", "6"]
    assert [row["replicas_ready"] for row in rows] == ["2.0", "3.0"]
    assert [row["ttft_ms_p95"] for row in rows] == ["100.0", ""]


def test_a_run_without_a_timeline_has_no_csv(client: Client) -> None:
    run = Run.objects.create(kind="simulation", params={})
    assert client.get(f"/runs/{run.uuid}.csv").status_code == 404


def test_time_axes_take_a_unit_that_reads_well(finished: Run) -> None:
    for chart_s, unit in ((100.0, "s"), (7200.0, "min"), (40 * 3600.0, "h"), (30 * 86_400.0, "d")):
        figure = over_time(10.0, chart_s, {"x": [1.0]}, Axis(title="y", tick=str), is_log=False)
        assert figure["layout"]["xaxis"]["title"]["text"] == f"Simulated time, {unit}"


def test_no_more_than_four_charts_are_in_view(client: Client, finished: Run, search: Run) -> None:
    for kind, open_at_first in (("simulation", 1), ("capacity_search", 0)):
        Run.objects.update(kind=kind)
        text = client.get(f"/runs/{finished.uuid}/").content.decode()
        groups = re.findall(r'<details class="chart-group" name="run-charts"[^>]*?( open)?>(.*?)</details>', text, re.S)
        counts = [group.count("data-figure=") for _open, group in groups]
        assert counts == [4, 4, 3]
        assert [bool(is_open) for is_open, _group in groups].count(True) == open_at_first
        assert text.count("data-figure=") - sum(counts) == (2 if kind == "capacity_search" else 0)


OLD_NOTES = [
    "Replicas of 2 GPUs (H200 SXM (HGX), fp8); extrapolated speed.",
    "Generated traffic: 10 req/s for 1.5 h.",
    "Jakarta: KV cache: 18,259 blocks of 16 tokens a replica.",
    "Batches of up to 64 requests, timed as the scenario says: not the plan's model.",
    "1,200 requests with 0 output tokens were left out.",
    "Rows were not in order of arrival (3 steps back in time); they were sorted.",
    "Written by an older release.",
]


def test_what_a_stored_run_rests_on_is_said_in_the_pages_language(client: Client, finished: Run) -> None:
    regions = [dict.fromkeys(("replicas", "requests", "goodput_share", "ttft_ms", "tpot_ms", "cost_usd"))]
    Run.objects.update(result={**result(), "notes": OLD_NOTES, "regions": [regions[0] | {"name": "Jakarta"}]})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "Replicas of 2 GPUs (H200 SXM (HGX), FP8); extrapolated speed." in text
    client.cookies["django_language"] = "id"
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    for said in (
        "Replika dari 2 GPU (H200 SXM (HGX), FP8); kecepatan ekstrapolasi.",
        "Lalu lintas buatan: 10 perm./dtk selama 1,5 jam.",
        "Jakarta: Cache KV: 18.259 blok berisi 16 token per replika.",
        "Batch hingga 64 permintaan",
        "1.200 permintaan dengan 0 token keluaran tidak diikutkan.",
        "Baris tidak urut menurut kedatangan (3 kali mundur dalam waktu)",
        "Written by an older release.",
    ):
        assert f"<li>{said}" in text


def test_values_read_as_people_write_them(client: Client, catalog: object, finished: Run) -> None:
    option = "aws/p5.48xlarge/us-east-1/on_demand:tp8-pp1-ep1-x2:fp8"
    question = {"model": "Llama 3.1 8B", "requests_per_second": 2000.5, "countries": ["ID"], "ttft_ms": 2000}
    params = {
        "question": question,
        "traffic": {"input_median": 1000, "gap_cv": 1.5, "hours": 1},
        "scenario": {"autoscaler": "hpa", "seed": 2026},
    }
    Run.objects.update(params=params, result={**result(), "option": option})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "TTFT limit 2,000 ms" in text
    assert "Countries Indonesia" in text
    assert "Burstiness 1.5 CV · Input, median 1,000 tokens</dd>" in text
    assert "Seed 2026" in text
    assert "Autoscaler Kubernetes HPA" in text
    assert "<dt>Option</dt><dd>p5.48xlarge at Amazon Web Services, us-east-1 · On demand · TP8 · FP8</dd>" in text
    client.cookies["django_language"] = "id"
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "2.000,5 perm./dtk" in text
    assert "median 1.000 token" in text
    assert '"separators":",."' in text


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("packet-ai/NVIDIA B200 NVL 180GB/*/on_demand:tp1-pp1-ep1-x3:fp8", "region not stated · On demand · 1 GPU a c"),
        ("aws/a/b/us/spot:tp8-pp2-ep16-x1-b8192-prefill-tp4-pp1-ep1-x2:bf16", "TP8 · PP2 · EP16, prefill TP4 · BF16"),
        ("own node", "own node"),
    ],
)
def test_an_options_id_is_said_in_words(catalog: object, option: str, words: str) -> None:
    assert words in option_words(option)


def figures_of(client: Client, run: Run) -> dict[str, Any]:
    text = client.get(f"/runs/{run.uuid}/").content.decode()
    found = re.findall(r'<script id="figure-([^"]+)" type="application/json">(.*?)</script>', text, re.S)
    return {name: json.loads(figure) for name, figure in found}


def test_axes_read_as_their_charts_titles(client: Client, finished: Run) -> None:
    drawn = figures_of(client, finished)
    for name in ("run-kv", "run-ecdf"):
        assert all(text.endswith(" %") for text in drawn[name]["layout"]["yaxis"]["ticktext"])
    assert ":.1%" in drawn["run-kv"]["data"][0]["hovertemplate"]
    assert ":.1%" in drawn["run-heat-kv"]["data"][0]["hovertemplate"]


def test_what_comes_whole_has_no_ticks_between(client: Client, finished: Run) -> None:
    for name in ("run-replicas", "run-queue"):
        ticks = figures_of(client, finished)[name]["layout"]["yaxis"]["tickvals"]
        assert len(ticks) >= 2
        assert all(tick == int(tick) for tick in ticks)


def test_a_scale_of_requests_counts_whole_ones(client: Client, finished: Run) -> None:
    for waiting, legend in (([[0, 1]], ["0", "1"]), ([[0, 5]], ["0", "2", "5"]), ([[0, 0]], ["0"])):
        given = result()
        given["timeline"]["heat"]["waiting"] = waiting
        Run.objects.update(result=given)
        text = client.get(f"/runs/{finished.uuid}/").content.decode()
        figure = re.search(r'<figure class="chart-run-heat-waiting">(.*?)</figure>', text, re.S)
        assert figure is not None
        assert re.findall(r"<b>([^<]*)</b>", figure[1]) == legend


def test_shares_on_an_axis_have_the_places_they_need(client: Client, search: Run) -> None:
    close = [
        point | {"goodput_share": share} for point, share in zip(searched()["tried"], (0.997, 0.999, 1), strict=True)
    ]
    for tried, places in ((searched()["tried"], 0), (close, 2)):
        Run.objects.update(result={**result(), "search": searched() | {"tried": tried}})
        texts = figures_of(client, search)["capacity-attainment"]["layout"]["yaxis"]["ticktext"]
        assert {len(text.removesuffix(" %").partition(".")[2]) for text in texts} == {places}


def test_a_difference_reads_as_percent_or_as_times() -> None:
    base = result()
    rows = {label: difference for label, _here, _there, difference in compare(base | {"gpu_hours": 5.0}, base)}
    assert rows["GPU hours"] == "× 50"
    assert rows["Requests"] == "0 %"
    assert rows["Within the limits"] == ""
    rows = {label: difference for label, *_values, difference in compare(base | {"cost_usd": "1.23"}, base)}
    assert rows["Cost"] == "+2.5 %"


def test_a_fleet_of_a_fixed_size_that_holds_the_limits_can_be_quoted(client: Client, search: Run) -> None:
    assert "Quote this fleet" not in client.get(f"/runs/{search.uuid}/").content.decode()
    Run.objects.update(result={**result(), "search": searched() | {"chosen": 2}})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    link = re.search(r'href="(/save/inference/[^"]*)">Quote this fleet', text)
    assert link is not None
    assert "then=quote&amp;replicas=2" in link[1]
    assert "option=a" in link[1]
    Run.objects.update(result={**result(), "search": searched() | {"chosen": 0}})
    assert "Quote this fleet" not in client.get(f"/runs/{search.uuid}/").content.decode()


def test_a_bill_is_also_a_pace(client: Client, search: Run) -> None:
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "$36.00 an hour, $26,300 a month</dd>" in text
    assert "At this pace: $90.00 an hour, $65,700 a month." in text
    assert "The limits hold from $3.00 on" in text


def test_demand_is_averaged_until_the_last_request_came(client: Client, finished: Run) -> None:
    given = result()
    given["timeline"]["requests"] |= {"arrived": [12, 0]}
    Run.objects.update(result=given)
    assert "0.2 on average" in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_one_request_is_one(client: Client, finished: Run) -> None:
    Run.objects.update(result=result() | {"requests": 1})
    assert "1 request in 2" in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_a_traces_run_does_not_repeat_the_questions_traffic(client: Client, finished: Run) -> None:
    question = {"model": "Llama 3.1 8B", "requests_per_second": 2.0, "input_tokens": 1155, "headroom": 0.1}
    Run.objects.update(params={"question": question, "trace": "a" * 32})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert '<p class="hint">Model Llama 3.1 8B · Headroom 0.1 share</p>' in text


def test_the_form_says_what_is_simulated(client: Client, catalog: object) -> None:
    option = "aws/p5.48xlarge/us-east-1/on_demand:tp8-pp1-ep1-x2:fp8"
    link = f"{FORM}?model=Llama+3.1+8B&requests_per_second=2000"
    text = client.get(link).content.decode()
    assert "Model Llama 3.1 8B · Mean load 2,000 req/s" in text
    assert "<dd>The plan's first</dd>" in text
    assert "us-east-1 · On demand · TP8 · FP8" in client.get(f"{link}&fleet-option={option}").content.decode()


def test_the_smallest_fleet_of_an_unchanged_form_is_sized_for_the_plans_load(client: Client, catalog: object) -> None:
    asked = "model=Llama+3.1+8B&requests_per_second=4&peak_factor=2&headroom=0.2&ttft_ms=2000&tpot_ms=60"
    text = client.get(f"{FORM}?{asked}").content.decode()
    assert "Sized for 10 requests/s, as the plan is: 4 on average, peak factor 2, 20% of capacity kept free." in text
    for load, expected in (("4", None), ("7", 7.0)):
        typed = {"traffic-requests_per_second": load, "traffic-hours": "0.1", "goal": "smallest"}
        answer = client.post(FORM, {"question": asked, **typed})
        assert answer.status_code == 302
        run = Run.objects.latest("created_at")
        assert run.kind == "capacity_search"
        assert run.params["traffic"].get("requests_per_second") == expected


def test_a_search_says_what_it_is_sized_for_and_where_it_ended(client: Client, search: Run) -> None:
    sized = "Sized for this traffic as it is: no peak factor or headroom is added."
    more = {"replicas": None, "most_replicas": 512, "sized_for": sized}
    Run.objects.update(result={**result(), "search": searched() | more})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert sized in text
    assert "It ended at 512 replicas, the most to be tried: more may do, or none." in text
    Run.objects.update(result={**result(), "usd_per_hour": "2.2500", "search": None})
    assert "$2.25 an hour" in client.get(f"/runs/{search.uuid}/").content.decode()
