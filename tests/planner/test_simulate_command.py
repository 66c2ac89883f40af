"""``manage.py simulate``: the contract's shapes, and errors that name what is wrong."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

pytestmark = pytest.mark.usefixtures("catalog")

QUESTION = {
    "model": "meta-llama/Llama-3.1-8B",
    "requests_per_second": 1,
    "accelerators": ["h100-sxm"],
    "ttft_ms": 1000,
    "tpot_ms": 50,
}
TRACE = "arrival_s,input_tokens,output_tokens\n" + "".join(f"{10 + i / 4},{500 + i},{50}\n" for i in range(120))
Files = Callable[..., list[str]]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Write trace and plan; the command's arguments."""

    def write(trace: str = TRACE, plan: object = QUESTION) -> list[str]:
        (tmp_path / "trace.csv").write_text(trace, encoding="utf-8")
        (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        return [
            str(tmp_path / "trace.csv"),
            "--plan",
            str(tmp_path / "plan.json"),
            "--out",
            str(tmp_path / "out.json"),
            "--requests",
            str(tmp_path / "out.csv"),
        ]

    return write


def run(*arguments: str) -> str:
    """What the command says, which never is on standard output."""
    out, said = io.StringIO(), io.StringIO()
    call_command("simulate", *arguments, stdout=out, stderr=said)
    assert out.getvalue() == ""
    return said.getvalue()


def test_a_printed_result_is_json_alone(files: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = files()
    arguments[arguments.index("--out") + 1] = "-"
    call_command("simulate", *arguments)
    printed = capsys.readouterr()
    assert json.loads(printed.out)["requests"] == 120
    assert "simulated requests a wall second" in printed.err


@pytest.mark.parametrize("metric", ["kv_use", "utilization"])
def test_a_share_is_no_target_above_one(files: Callable[..., list[str]], tmp_path: Path, metric: str) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"autoscaler": "hpa", "scaling_metric": metric, "scaling_target": 32}))
    error = refused(*files(), "--scenario", str(path))
    assert error["attr"] == "scaling_target"
    assert error["detail"] == f"{metric} is a share and never passes 1."
    path.write_text(json.dumps({"autoscaler": "hpa", "scaling_metric": metric, "scaling_target": 0.7}))
    run(*files(), "--scenario", str(path))


def refused(*arguments: str) -> dict[str, Any]:
    errors = io.StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("simulate", *arguments, stderr=errors)
    assert stopped.value.code == 2
    (error,) = json.loads(errors.getvalue())["errors"]
    assert isinstance(error, dict)
    return error


def test_result_and_requests(files: Files, tmp_path: Path) -> None:
    said = run(*files())
    assert "simulated requests a wall second" in said
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (result["requests"], result["completed"], result["dropped"]) == (120, 120, 0)
    for latency in ("ttft_ms", "tpot_ms", "e2e_ms"):
        assert set(result[latency]) == {"mean", "p50", "p90", "p95", "p99"}
    assert result["goodput"]["share"] == 1.0
    assert {"requests", "replicas", "queue", "kv", "heat"} == set(result["timeline"])
    assert sum(result["timeline"]["requests"]["completed"]) == 120
    with (tmp_path / "out.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["request_id", "arrival_s", "scheduled_s", "first_token_s", "last_token_s", "replica"]
    assert [int(row["request_id"]) for row in rows] == list(range(120))
    assert float(rows[0]["arrival_s"]) == 10.0
    ttft_ms = [1e3 * (float(row["first_token_s"]) - float(row["arrival_s"])) for row in rows]
    assert result["ttft_ms"]["mean"] == pytest.approx(sum(ttft_ms) / 120, rel=1e-3)
    tpot_ms = [1e3 * (float(row["last_token_s"]) - float(row["first_token_s"])) / 49 for row in rows]
    assert result["tpot_ms"]["mean"] == pytest.approx(sum(tpot_ms) / 120, rel=1e-3)


def test_cost_is_price_times_hours_times_nodes(files: Files, tmp_path: Path) -> None:
    run(*files(), "--replicas", "3")
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    hours = result["duration_s"] / 3600
    assert result["gpu_hours"] == pytest.approx(3 * hours, rel=1e-6)
    money = [float(result[f"usd_per_million_{side}_tokens"]) for side in ("input", "output")]
    tokens = [result["input_tokens"], result["output_tokens"]]
    bill = sum(usd * count for usd, count in zip(money, tokens, strict=True)) / 1e6
    assert bill == pytest.approx(float(result["cost_usd"]), abs=0.006)


def test_same_seed_same_result(files: Files, tmp_path: Path) -> None:
    documents = []
    for _ in range(2):
        run(*files(), "--seed", "5")
        document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        documents.append({key: value for key, value in document.items() if "wall" not in key})
    assert documents[0] == documents[1]


def scenario(
    files: Files, tmp_path: Path, traffic: dict[str, Any], settings: dict[str, Any], plan: object = QUESTION
) -> dict[str, Any]:
    """The result of generated traffic under a scenario."""
    arguments = files(plan=plan)[1:]
    for name, document in (("--generate", traffic), ("--scenario", settings)):
        path = tmp_path / f"{name[2:]}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        arguments += [name, str(path)]
    run(*arguments)
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert isinstance(result, dict)
    return result


def test_generated_day_on_an_autoscaled_fleet(files: Files, tmp_path: Path) -> None:
    traffic = {"requests_per_second": 4, "hours": 6, "daily_peak": 3, "peak_hour": 3, "output_median": 300}
    settings = {"autoscaler": "hpa", "scaling_target": 12, "max_replicas": 6, "provision_s": 60}
    result = scenario(files, tmp_path, traffic, settings)
    assert result["completed"] == result["requests"] > 50_000
    assert result["incidents"]["counts"]["scaled"] >= 2
    ready = [count for count in result["timeline"]["replicas"]["ready"] if count is not None]
    assert max(ready) > 1
    assert result["gpu_hours"] < 6 * max(ready)
    with (tmp_path / "out.csv").open(encoding="utf-8") as stream:
        assert sum(1 for _ in stream) == result["requests"] + 1


def test_the_smallest_fleet_holds_and_one_fewer_does_not(files: Files, tmp_path: Path) -> None:
    (tmp_path / "generate.json").write_text(json.dumps({"requests_per_second": 60, "hours": 0.1}), encoding="utf-8")
    run(*files()[1:], "--generate", str(tmp_path / "generate.json"), "--smallest")
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    found = result["search"]
    by_size = {point["replicas"]: point for point in found["tried"]}
    assert result["replicas"] == found["replicas"] > 1
    assert by_size[found["replicas"]]["met"] is True
    assert by_size[found["replicas"] - 1]["met"] is False
    assert by_size[found["replicas"]]["ttft_ms"] <= QUESTION["ttft_ms"]
    assert by_size[found["replicas"]]["tpot_ms"] <= QUESTION["tpot_ms"]


def test_a_smallest_fleet_needs_limits(files: Files) -> None:
    plan = {name: value for name, value in QUESTION.items() if not name.endswith("_ms")}
    assert refused(*files(plan=plan), "--smallest")["attr"] == "ttft_ms"
    assert refused(*files(plan={**QUESTION, "ttft_ms": 1}), "--smallest")["attr"] in ("ttft_ms", "plan")


def test_a_scenario_of_several_regions_with_a_fallback(files: Files, tmp_path: Path) -> None:
    (tmp_path / "east.csv").write_text("arrival_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n", encoding="utf-8")
    west = {"name": "west", "scenario": {"max_outstanding": 1}, "fallback": ["east"], "round_trip_ms": 40}
    regions = [west, {"name": "east", "trace": "east.csv"}]
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"replicas": 1, "regions": regions}), encoding="utf-8")
    (tmp_path / "generate.json").write_text(json.dumps({"requests_per_second": 4, "hours": 0.05}), encoding="utf-8")
    generate = ("--generate", str(tmp_path / "generate.json"))
    run(*files()[1:5], *generate, "--scenario", str(path))
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [region["name"] for region in result["regions"]] == ["west", "east"]
    assert result["completed"] == result["requests"] > 500
    assert result["replicas"] == 2
    run(*files()[1:5], *generate, "--scenario", str(path), "--smallest")
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["search"]["replicas"] == 2
    assert [region["settings"]["replicas"] for region in found["regions"]] == [1, 1]
    assert refused(*files(), "--scenario", str(path))["attr"] == "trace"
    assert refused(*files()[1:], "--scenario", str(path))["attr"] == "requests"
    (tmp_path / "east.csv").unlink()
    assert refused(*files()[1:5], *generate, "--scenario", str(path))["attr"] == "regions.1.trace"


def test_failures_are_reported(files: Files, tmp_path: Path) -> None:
    traffic = {"requests_per_second": 2, "hours": 3}
    settings = {"replicas": 3, "node_failure_hours": 0.5, "repair_s": 600, "max_retries": 100}
    result = scenario(files, tmp_path, traffic, settings)
    assert result["incidents"]["counts"]["failed"] > 5
    assert result["retries"] > 0
    assert result["dropped"] == 0


def test_split_prefill(files: Files, tmp_path: Path) -> None:
    result = scenario(files, tmp_path, {"requests_per_second": 3, "hours": 0.2}, {"prefill_replicas": 1, "replicas": 1})
    assert result["completed"] == result["requests"]
    assert result["replicas"] == 2


def test_a_vision_model_in_dynamic_batches(files: Files, tmp_path: Path) -> None:
    """Handbook 10: t(b) = 2 ms + 0.15 ms b. In batches of 8 one GPU serves 2,500/s; preferred sizes go at once."""
    traffic = {"requests_per_second": 1500, "hours": 0.02, "input_sigma": 0, "output_median": 1, "output_sigma": 0}
    batches = {
        "batching": "dynamic",
        "batch_ms": 2,
        "item_ms": 0.15,
        "max_batch": 64,
        "preferred_batches": ["8", "16"],
        "queue_delay_ms": 5,
        "replicas": 1,
    }
    dynamic = scenario(files, tmp_path, traffic, batches)
    assert dynamic["completed"] == dynamic["requests"] > 100_000
    # 8 come in 5.3 ms on average, and are served in 3.2 ms.
    assert 4.0 < dynamic["ttft_ms"]["mean"] < 9.0
    assert dynamic["ttft_ms"]["p99"] < 5.0 + 2 * (2 + 0.15 * 16)
    assert any("Batches of up to 64" in note for note in dynamic["notes"])
    whole = {**batches, "batching": "static", "queue_delay_ms": 1000}
    static = scenario(files, tmp_path, {**traffic, "output_median": 20}, whole)
    assert static["completed"] == static["requests"]
    # However many tokens an answer has, it comes at once: none has a time or a price of its own.
    assert set(static["tpot_ms"].values()) == {None}
    assert set(static["timeline"]["requests"]["tpot_ms"]["p95"]) == {None}
    assert static["usd_per_million_output_tokens"] is None
    bill = float(static["usd_per_million_input_tokens"]) * static["input_tokens"] / 1e6
    assert bill == pytest.approx(float(static["cost_usd"]), rel=0.01)
    # A full batch of 64 takes 42.7 ms to gather and 11.6 ms to run.
    assert static["ttft_ms"]["mean"] == pytest.approx(63 / 2 / 1.5 + 11.6, rel=0.05)


def test_drafts_caches_queues_and_time_outs_by_scenario(files: Files, tmp_path: Path) -> None:
    """Speculative decoding, prefix caching, queue limits and time-outs are a scenario's fields."""
    traffic = {"requests_per_second": 3, "hours": 0.1, "prefixes": 3, "prefix_tokens": 2000}
    plain = scenario(files, tmp_path, traffic, {"replicas": 1})
    drafted = scenario(files, tmp_path, traffic, {"replicas": 1, "draft_tokens": 4, "acceptance": 0.8})
    assert drafted["tpot_ms"]["mean"] < 0.5 * plain["tpot_ms"]["mean"]
    uncached = scenario(files, tmp_path, traffic, {"replicas": 1, "prefix_caching": False})
    assert plain["ttft_ms"]["mean"] < 0.6 * uncached["ttft_ms"]["mean"]
    crowd = {**traffic, "requests_per_second": 150, "prefixes": 0, "hours": 0.02}
    for limit in ({"max_waiting": 20}, {"queue_timeout_s": 1}, {"client_timeout_s": 2}):
        assert scenario(files, tmp_path, crowd, {"replicas": 1, **limit})["dropped"] > 100
    sent = {"replicas": 1, "max_outstanding": 64}
    waited = scenario(files, tmp_path, crowd, sent)
    limited = scenario(files, tmp_path, crowd, {**sent, "max_waiting": 20})
    assert waited["dropped"] == 0
    assert limited["dropped_by_reason"]["queue_full"] == limited["dropped"] > 1000
    assert max(limited["timeline"]["queue"]["waiting_max"]) <= 64 + 20
    assert limited["ttft_ms"]["p95"] < 0.2 * waited["ttft_ms"]["p95"]


def test_spot_and_upgrade_by_scenario(files: Files, tmp_path: Path) -> None:
    traffic = {"requests_per_second": 2, "hours": 3}
    settings = {
        "replicas": 3,
        "spot_interruptions_per_hour": 2,
        "spot_notice_s": 120,
        "upgrade_at_s": 3600,
        "max_retries": 50,
    }
    counts = scenario(files, tmp_path, traffic, settings)["incidents"]["counts"]
    assert counts["noticed"] > 3
    assert counts["upgraded"] == 1


def test_what_comes_later_is_said_to_take_time(files: Files, tmp_path: Path) -> None:
    """120 s of provisioning and 20 s of image come before the weights and 60 s of engine start."""
    traffic = {"requests_per_second": 1, "hours": 0.01}
    times = {"weights_gib_s": 1000, "provision_s": 120, "image_gib": 10, "image_gib_s": 0.5, "warm_up_s": 60}
    said = "A replica serves 200 s after it is asked for on a new node, 60 s on one that has the image."
    assert said not in scenario(files, tmp_path, traffic, times)["notes"]
    for change in ({"autoscaler": "hpa"}, {"upgrade_at_s": 5}, {"node_failure_hours": 9}):
        assert said in scenario(files, tmp_path, traffic, {**times, **change})["notes"]


def test_spot_nodes_that_are_never_taken_back_are_said_to_be(files: Files, tmp_path: Path) -> None:
    spot = {**QUESTION, "purchase_options": ["spot"]}
    said = "Nodes are bought as spot, but none is taken back: the scenario doesn't say how often."
    traffic = {"requests_per_second": 1, "hours": 0.01}
    assert said in scenario(files, tmp_path, traffic, {}, spot)["notes"]
    assert said not in scenario(files, tmp_path, traffic, {"spot_interruptions_per_hour": 0.01}, spot)["notes"]
    assert said not in scenario(files, tmp_path, traffic, {})["notes"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"batching": "dynamic", "batch_ms": 2, "preferred_batches": ["8", "many"]}, "preferred_batches"),
        ({"batching": "dynamic", "batch_ms": 2, "preferred_batches": "64", "max_batch": 32}, "preferred_batches"),
        ({"batching": "static"}, "batch_ms"),
        ({"batching": "static", "item_ms": 1, "prefill_replicas": 1}, "prefill_replicas"),
        ({"autoscaler": "hpa", "min_replicas": 0}, "min_replicas"),
        ({"autoscaler": "hpa", "min_replicas": 5, "max_replicas": 2}, "max_replicas"),
        ({"upgrade_at_s": 10, "max_surge": 0}, "max_surge"),
        ({"policy": "by_magic"}, "policy"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_settings_that_do_not_go_together(files: Files, tmp_path: Path, settings: dict[str, Any], field: str) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    assert refused(*files(), "--scenario", str(path))["attr"] == field


def test_a_trace_or_a_generator_not_both(files: Files, tmp_path: Path) -> None:
    (tmp_path / "generate.json").write_text("{}", encoding="utf-8")
    assert refused(*files(), "--generate", str(tmp_path / "generate.json"))["attr"] == "trace"
    assert refused(*files()[1:])["attr"] == "trace"


def test_a_plan_is_as_good_as_its_question(files: Files, tmp_path: Path) -> None:
    run(*files(plan={"question": QUESTION, "options": []}))
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["requests"] == 120


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"trace": "arrival_s,input_tokens,output_tokens\n1,2,x\n"}, "trace"),
        ({"plan": {**QUESTION, "accelerators": ["abacus"]}}, "accelerators"),
        ({"plan": {**QUESTION, "surprise": 1}}, "surprise"),
        ({"plan": {**QUESTION, "budget_usd_per_month": 1}}, "plan"),
    ],
)
def test_bad_input_names_its_field(files: Files, change: dict[str, Any], field: str) -> None:
    error = refused(*files(**change))
    assert error["attr"] == field
    assert error["allowed"]


def test_bad_trace_names_row_and_column(files: Files) -> None:
    error = refused(*files(trace="arrival_s,input_tokens,output_tokens\n1,2,3\n2,-5,3\n"))
    assert error["detail"] == "row 3, column input_tokens: Negative. (-5)"


def test_no_such_option(files: Files) -> None:
    error = refused(*files(), "--option", "9999")
    assert error["attr"] == "option"


def test_out_must_be_writable(files: Files, tmp_path: Path) -> None:
    arguments = files()
    arguments[4] = str(tmp_path / "nowhere" / "out.json")
    assert refused(*arguments)["attr"] == "out"
