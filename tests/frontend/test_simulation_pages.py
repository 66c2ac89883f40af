"""How a simulation's result is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from frontend.answers.compared import compare
from frontend.figures.canvas import Axis
from frontend.figures.curves import over_time
from frontend.stated import option_words
from planner.engine.field_spec import specs
from planner.engine.workload import InferenceQuestion
from planner.models import Run, RunStatus
from planner.services.run_parts import invalid_error
from planner.services.stored_traces import trace_refused
from planner.services.trace_columns import TraceError
from planner.services.trace_values import lengths
from tests.frontend.simulation_pages import figures_of, post, result

pytestmark = pytest.mark.django_db


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


def test_progress_is_told_in_the_pages_language(client: Client, finished: Run) -> None:
    message = "2, 4 replicas: 65,536 requests, 1.50 h simulated"
    Run.objects.update(status=RunStatus.RUNNING, result=None, message=message, lease_expires_at=timezone.now())
    assert message in client.get(f"/runs/{finished.uuid}/").content.decode()
    client.cookies["django_language"] = "id"
    assert (
        "2, 4 replika: 65.536 permintaan, 1,50 jam disimulasikan"
        in client.get(f"/runs/{finished.uuid}/").content.decode()
    )


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


def test_both_prices_of_a_million_tokens_are_shown(client: Client, finished: Run) -> None:
    """Output alone isn't the bill."""
    Run.objects.update(result=result())
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "$0.40 per million input, $3.10 per million output tokens" in text
    Run.objects.update(result=result() | {"usd_per_million_input_tokens": None, "usd_per_million_output_tokens": None})
    assert "per million" not in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_answers_that_come_whole_have_no_time_between_tokens(client: Client, finished: Run) -> None:
    """One token each, or batches of whole requests: no TPOT in sentence, figures or charts, and no price of output."""
    nothing: dict[str, Any] = dict.fromkeys(("mean", "p50", "p90", "p95", "p99"))
    whole = result() | {"tpot_ms": nothing, "usd_per_million_output_tokens": None}
    whole["ecdf"] |= {"tpot_ms": [None, None]}
    whole["timeline"]["requests"] |= {"tpot_ms": {at: [None, None] for at in ("p50", "p90", "p95", "p99")}}
    Run.objects.update(result=whole)
    text = client.get(f"/runs/{finished.uuid}/").content.decode().replace("\xa0", " ")
    assert "90.0 % within the limits, p95 answer in 120 ms, $1.20 for the time" in text
    assert "p95 to the answer; p99 150 ms" in text
    assert "Wait for the answer: p95 at worst 100 ms" in text
    assert "Half the requests wait less than 80 ms for the answer" in text
    assert "run-tpot" not in text
    assert "TPOT" not in text
    assert "$0.40 per million input tokens; output: not applicable" in text
    assert "tokens/s" in text
    whole["settings"] |= {"batching": "dynamic"}
    Run.objects.update(result=whole)
    batches = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "Queues by replica" in batches
    for absent in ("KV cache", "tokens/s", "found cached"):
        assert absent not in batches
    client.cookies["django_language"] = "id"
    assert "p95 sampai jawaban; p99 150 ms" in client.get(f"/runs/{finished.uuid}/").content.decode()


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


def test_a_difference_reads_as_percent_or_as_times() -> None:
    base = result()
    rows = {label: difference for label, _here, _there, difference in compare(base | {"gpu_hours": 5.0}, base)}
    assert rows["GPU hours"] == "× 50"
    assert rows["Requests"] == "0 %"
    assert rows["Within the limits"] == ""
    rows = {label: difference for label, *_values, difference in compare(base | {"cost_usd": "1.23"}, base)}
    assert rows["Cost"] == "+2.5 %"


def test_demand_is_averaged_until_the_last_request_came(client: Client, finished: Run) -> None:
    given = result()
    given["timeline"]["requests"] |= {"arrived": [12, 0]}
    Run.objects.update(result=given)
    assert "0.2 on average" in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_demand_is_averaged_over_the_time_asked_for_where_that_outlasts_the_answers(
    client: Client, finished: Run
) -> None:
    given = result()
    given["timeline"]["requests"] |= {"arrived": [12, 0], "completed": [11, 0], "dropped": [1, 0]}
    Run.objects.update(result=given)
    assert "0.1 on average" in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_one_request_is_one(client: Client, finished: Run) -> None:
    Run.objects.update(result=result() | {"requests": 1})
    assert "1 request in 2" in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_a_traces_run_does_not_repeat_the_questions_traffic(client: Client, finished: Run) -> None:
    question = {"model": "Llama 3.1 8B", "requests_per_second": 2.0, "input_tokens": 1155, "headroom": 0.1}
    Run.objects.update(params={"question": question, "trace": "a" * 32})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert '<p class="hint">Model Llama 3.1 8B · Headroom 0.1 share</p>' in text


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"traffic": {"requests_per_second": 60.0}}, "Input 1155 · Output 211 · TTFT · Mean load 60 req/s"),
        ({"traffic": {"clients": 8, "input_median": 300}}, "Output 211 · TTFT · Clients 8 clients · Input, median 300"),
        ({"traffic": {"hours": 2.0}}, "Input 1155 · Output 211 · Mean load 10 req/s · TTFT"),
        ({"regions": [{"name": "a", "traffic": {"requests_per_second": 7.0}}]}, "Input 1155 · Output 211 · TTFT"),
        ({"trace": "x"}, "TTFT"),
    ],
)
def test_what_stands_under_the_title_is_what_was_served(
    client: Client, finished: Run, params: dict[str, Any], said: str
) -> None:
    question = {"model": "Llama 3.1 8B", "requests_per_second": 10.0, "output_tokens": 211, "ttft_ms": 2000}
    Run.objects.update(params={"question": question, **params})
    hint = re.search(r'<p class="hint">(Model[^<]*)</p>', client.get(f"/runs/{finished.uuid}/").content.decode())
    assert hint is not None
    default = f"{specs(InferenceQuestion)['input_tokens'][1]:,}"
    expected = said.replace("1155", f"{default} tokens").replace("211", "211 tokens").replace("300", "300 tokens")
    assert hint[1] == "Model Llama 3.1 8B · " + expected.replace("TTFT", "TTFT limit 2,000 ms")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "row 150,002, column input_tokens: Negative. (-4) Allowed: a whole number from 0 to 2,147,483,647"),
        (
            "id",
            "baris 150.002, kolom input_tokens: Negatif. (-4) Yang boleh: bilangan bulat dari 0 sampai 2.147.483.647",
        ),
    ],
)
def test_what_a_run_found_wrong_in_its_trace_is_told_in_the_pages_language(
    client: Client, catalog: object, language: str, said: str
) -> None:
    with pytest.raises(TraceError) as found:
        lengths(["5", "-4"], [150_001, 150_002], "input_tokens")
    error = invalid_error(trace_refused(found.value))
    run = Run.objects.create(
        kind="simulation", params={"question": {}}, status=RunStatus.FAILED, error=json.loads(json.dumps(error))
    )
    client.cookies["django_language"] = language
    assert said in client.get(f"/runs/{run.uuid}/").content.decode()
