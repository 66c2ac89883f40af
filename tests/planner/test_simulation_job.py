"""The job ``simulation``: what is refused at once, what a worker makes of it, what stays out of the web process."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.core.files.storage import default_storage

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.setup import ClosedLoop
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.models import Run, RunStatus, StoredTrace
from planner.services import planned_traffic, runs
from planner.services.generated_traffic import MOST_REQUESTS
from planner.services.planning import plan_inference
from planner.services.run_execution import execute_run
from planner.services.run_kind import Spread, in_turn
from planner.services.run_progress import RunCancelled
from planner.services.runs import create_run, delete_old_runs
from planner.services.simulation_job import check_options, read_simulation
from planner.services.simulation_parts import serve_part
from planner.services.simulation_run import run_simulation
from planner.services.stored_traces import has_trace, may_use_trace, store_trace
from tests.planner.organizations import user_factory

QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 5, "accelerators": ["h100-sxm"], "ttft_ms": 2000}
TRAFFIC = {"requests_per_second": 4, "hours": 0.02, "input_median": 500, "output_median": 50}
TRACE = b"arrival_s,input_tokens,output_tokens\n" + b"".join(b"%d,200,20\n" % second for second in range(50))

IMPORTS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "planner.settings"
import django
django.setup()
from django.urls import resolve
resolve("/health/")
import planner.services.run_kinds, planner.wsgi
sys.exit("numba" in sys.modules or "llvmlite" in sys.modules)
"""


def alone(params: Mapping[str, Any]) -> Spread:
    """Parts one after another in this process."""
    return in_turn(serve_part, params)


def faults(params: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation(params)
    return {fault.field: fault.message for fault in raised.value.errors}


def test_the_web_process_never_imports_the_compiler() -> None:
    assert subprocess.run([sys.executable, "-c", IMPORTS], check=False).returncode == 0


def test_every_fault_is_named_with_its_part(catalog: object) -> None:
    found = faults(
        {
            "question": {"model": "Llama 3.1 8B", "requests_per_second": -1},
            "scenario": {"policy": "dice", "seed": "1"},
            "traffic": {"hours": 0, "gap": 1},
            "extra": 1,
        }
    )
    assert set(found) == {
        "question.requests_per_second",
        "scenario.policy",
        "scenario.seed",
        "traffic.hours",
        "traffic.gap",
        "extra",
    }


def test_too_many_requests_are_refused_with_a_length_that_would_do(catalog: object) -> None:
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation({"question": QUESTION, "traffic": {"requests_per_second": 1000, "hours": 100}})
    (fault,) = raised.value.errors
    assert fault.field == "traffic.hours"
    assert f"{MOST_REQUESTS:,}" in fault.allowed
    assert fault.allowed.startswith("up to 5.556 h")


QUIET = {"requests_per_second": 0.001, "hours": 8784}


@pytest.mark.parametrize(
    "scenario",
    [
        {"autoscaler": "hpa", "scrape_s": 0.1},
        {"autoscaler": "keda", "polling_s": 1, "max_replicas": 5000},
        {"replicas": 1000, "node_failure_hours": 0.1},
        {"replicas": 1000, "spot_interruptions_per_hour": 1000},
    ],
)
def test_a_time_in_which_more_happens_than_one_run_can_simulate_is_refused(
    catalog: object, scenario: dict[str, Any]
) -> None:
    def check(hours: float) -> None:
        check_options(
            read_simulation({"question": QUESTION, "scenario": scenario, "traffic": QUIET | {"hours": hours}})
        )

    with pytest.raises(InvalidQuestion) as raised:
        check(8784)
    (fault,) = raised.value.errors
    assert (fault.field, fault.code) == ("traffic.hours", "conflict")
    allowed = re.fullmatch(r"up to ([\d.]+) h with this fleet and scenario", fault.allowed)
    assert allowed is not None
    check(float(allowed[1]) * 0.99)


@pytest.mark.parametrize(
    "scenario", [{"autoscaler": "hpa", "replicas": 100}, {"replicas": 1000, "node_failure_hours": 1000}]
)
def test_a_year_of_a_usual_fleet_is_simulated(catalog: object, scenario: dict[str, Any]) -> None:
    check_options(read_simulation({"question": QUESTION, "scenario": scenario, "traffic": QUIET}))


def test_a_trace_of_more_time_than_one_run_can_simulate_is_refused_when_it_is_read(catalog: object) -> None:
    trace = store_trace([b"arrival_s,input_tokens,output_tokens\n0,1,1\n1e12,1,1\n"])
    for places in ({"trace": trace}, {"regions": [{"name": "a", "trace": trace}, {"name": "b", "fallback": ["a"]}]}):
        params = {"question": QUESTION, "scenario": {"autoscaler": "hpa"}, "traffic": TRAFFIC} | places
        params = {name: value for name, value in params.items() if name != "traffic" or "regions" in places}
        with pytest.raises(InvalidQuestion) as raised:
            run_simulation(params, lambda share, message: None, alone(params))
        (fault,) = raised.value.errors
        assert fault.field == "trace"
        assert "lost nodes" in fault.message
    steady = {"question": QUESTION, "trace": trace}
    assert run_simulation(steady, lambda share, message: None, alone(steady))["completed"] == 2


def test_a_trend_counts_among_the_requests_of_a_run(catalog: object) -> None:
    grown = {"requests_per_second": 1e-6, "hours": 8784, "trend_per_week": 10}
    assert faults({"question": QUESTION, "traffic": grown}) == {"traffic.hours": "Too many requests."}
    fewer = {"requests_per_second": 50, "hours": 8784, "trend_per_week": -0.9}
    read_simulation({"question": QUESTION, "traffic": fewer})
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation({"question": QUESTION, "traffic": fewer | {"requests_per_second": 200}})
    hours = re.match(r"up to ([\d.]+) h", raised.value.errors[0].allowed)
    assert hours is not None
    read_simulation({"question": QUESTION, "traffic": fewer | {"requests_per_second": 200, "hours": float(hours[1])}})


@pytest.mark.parametrize(
    ("load", "rate"),
    [
        ({"requests_per_second": 10}, 10.0),
        ({"users": 86_400, "requests_per_user_per_day": 3}, 3.0),
        ({"offline_requests": 7200, "offline_hours": 1}, 2.0),
    ],
)
def test_traffic_that_isnt_given_is_the_questions(catalog: object, load: dict[str, Any], rate: float) -> None:
    question = {"model": "Llama 3.1 8B", "input_tokens": 1024, "output_tokens": 256, **load}
    for params in ({"traffic": {"hours": 0.1}}, {"traffic": {"hours": 0.1}, "regions": [{"name": "a"}]}):
        traffic = read_simulation({"question": question, **params}).regions[0].traffic
        assert traffic is not None
        assert (traffic.requests_per_second, traffic.hours) == (rate, 0.1)
        assert (traffic.mean_input_tokens, traffic.mean_output_tokens) == (1024, 256)
    own = {"requests_per_second": 4, "input_median": 500, "output_sigma": 0.5}
    given = read_simulation({"question": question, "traffic": own}).regions[0].traffic
    assert given == TrafficQuestion(
        requests_per_second=4, input_median=500, output_median=256, output_sigma=0.5, input_max=100_000
    )


CLOSED = {"model": "Llama 3.1 8B", "concurrency": 200, "accelerators": ["h100-sxm"]}


def test_a_fixed_number_of_clients_waits_for_its_answers(catalog: object) -> None:
    region = read_simulation({"question": CLOSED, "traffic": {"hours": 0.1}}).regions[0]
    assert region.traffic is not None
    assert (region.traffic.clients, region.traffic.think_s, region.traffic.hours) == (200, 0.0, 0.1)
    assert region.traffic.loop == ClosedLoop(clients=200, until_s=360.0)
    own = read_simulation({"question": CLOSED, "traffic": {"clients": 5, "think_s": 2}}).regions[0].traffic
    assert own is not None
    assert (own.clients, own.think_s) == (5, 2.0)
    given = read_simulation({"question": CLOSED, "traffic": {"requests_per_second": 3}}).regions[0].traffic
    assert given is not None
    assert (given.requests_per_second, given.clients) == (3, None)


def test_too_many_clients_for_one_run_are_a_load(catalog: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_traffic, "MOST_CLIENTS", 100)
    traffic = read_simulation({"question": CLOSED}).regions[0].traffic
    assert traffic is not None
    assert traffic.clients is None
    assert traffic.requests_per_second > 5
    assert list(faults({"question": CLOSED, "traffic": {"clients": 2_000_000}})) == ["traffic.clients"]


def test_an_open_plan_may_be_asked_what_clients_get(catalog: object) -> None:
    traffic = read_simulation({"question": QUESTION, "traffic": {"clients": 7}}).regions[0].traffic
    assert traffic is not None
    assert traffic.clients == 7
    assert traffic.requests_per_second == TrafficQuestion().requests_per_second


LINKED: list[dict[str, Any]] = [{"name": "a", "fallback": ["b"]}, {"name": "b"}]


@pytest.mark.parametrize("parts", [{"traffic": {"daily_peak": 2}}, {"regions": LINKED}])
def test_clients_whose_requests_come_at_given_times_send_what_the_plan_serves_them(
    catalog: object, parts: dict[str, Any]
) -> None:
    """Where the traffic says when requests come, or regions take each other's, which can't wait for answers."""
    plan = plan_inference(CLOSED)
    for option in ("", plan.options[-1].id):
        region = read_simulation({"question": CLOSED, "scenario": {"option": option}, **parts}).regions[0]
        assert region.traffic is not None
        chosen = next(each for each in plan.options if each.id == (option or plan.options[0].id))
        assert region.traffic.clients is None
        assert region.traffic.requests_per_second == pytest.approx(chosen.speed.peak_requests_s, rel=1e-3)
        assert region.traffic.requests_per_second > 5


@pytest.mark.parametrize(
    ("traffic", "field"),
    [
        ({"clients": 5, "requests_per_second": 2}, "traffic.requests_per_second"),
        ({"clients": 5, "gap_cv": 3}, "traffic.gap_cv"),
        ({"clients": 5, "daily_peak": 2}, "traffic.daily_peak"),
        ({"clients": 0}, "traffic.clients"),
        ({"requests_per_second": 2, "think_s": 1}, "traffic.think_s"),
    ],
)
def test_clients_and_a_rate_exclude_each_other(catalog: object, traffic: dict[str, Any], field: str) -> None:
    assert list(faults({"question": QUESTION, "traffic": traffic})) == [field]


def test_linked_regions_have_no_clients_that_wait(catalog: object) -> None:
    found = faults({"question": QUESTION, "traffic": {"clients": 5}, "regions": LINKED})
    assert set(found) == {"regions.0.traffic.clients", "regions.1.traffic.clients"}


def test_a_plans_clients_get_the_throughput_it_promises(catalog: object) -> None:
    """As many requests as the plan says, and never more of them out than there are clients."""
    params = {"question": CLOSED, "traffic": {"hours": 0.5, "output_sigma": 0.5, "output_median": 221}}
    result = run_simulation(params, lambda share, message: None, alone(params))
    promised = plan_inference(CLOSED).options[0].speed.peak_requests_s
    assert result["throughput"]["requests_s"] == pytest.approx(promised, rel=0.05)
    queue = result["timeline"]["queue"]
    assert max(w + r for w, r in zip(queue["waiting"], queue["running"], strict=True)) <= 200
    assert result["dropped"] == 0
    assert any("200 clients" in note for note in result["notes"])
    assert run_simulation(params, lambda share, message: None, alone(params)) == result


def test_clients_progress_with_the_clock_and_can_be_cancelled(catalog: object) -> None:
    params = {"question": CLOSED, "traffic": {"hours": 1.0}}
    shares: list[float] = []

    def told(share: float, message: str) -> None:
        shares.append(share)
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_simulation(params, told, alone(params))
    assert shares == sorted(shares)
    assert shares[-1] < 0.6


def test_long_answers_of_the_question_are_not_cut(catalog: object) -> None:
    question = QUESTION | {"output_tokens": 20_000}
    traffic = read_simulation({"question": question}).regions[0].traffic
    assert traffic is not None
    assert (traffic.output_median, traffic.output_max) == (20_000, 20_000)


def test_a_simulation_without_traffic_fields_runs_the_questions_load(catalog: object) -> None:
    question = QUESTION | {"requests_per_second": 10, "input_tokens": 1024, "output_tokens": 256}
    params = {"question": question, "traffic": {"hours": 0.05}}
    result = run_simulation(params, lambda share, message: None, alone(params))
    assert result["requests"] == pytest.approx(1800, rel=0.1)
    assert result["input_tokens"] == 1024 * result["requests"]
    assert result["output_tokens"] == 256 * result["requests"]


@pytest.mark.parametrize("trace", ["../../etc/passwd", "0" * 32, 7, ""])
def test_only_a_stored_trace_is_known(catalog: object, trace: object) -> None:
    assert faults({"question": QUESTION, "trace": trace}) == {"trace": "No such trace."}


def test_traffic_and_trace_exclude_each_other(catalog: object) -> None:
    trace = store_trace([TRACE])
    assert "traffic" in faults({"question": QUESTION, "trace": trace, "traffic": TRAFFIC})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The file is empty."),
        (b"arrival_s,input_tokens,output_tokens\n", "no requests"),
        (b"arrival_s,input_tokens\n1,2\n", "output_tokens"),
        (b"arrival_s,input_tokens,output_tokens\n0,5,5\n1,nan,5\n", "row 3, column input_tokens"),
        (b"arrival_s,input_tokens,output_tokens\n0,-5,5\n", "row 2, column input_tokens"),
        (b"\xff\xfea\x00", "UTF-16"),
    ],
)
def test_a_bad_trace_is_refused_at_once_and_not_kept(content: bytes, message: str) -> None:
    before = len(default_storage.listdir("traces")[1]) if default_storage.exists("traces") else 0
    with pytest.raises(InvalidQuestion) as raised:
        store_trace([content])
    assert message in raised.value.errors[0].message
    assert raised.value.errors[0].field == "trace"
    assert (len(default_storage.listdir("traces")[1]) if default_storage.exists("traces") else 0) == before


def test_the_same_seed_gives_the_same_result(catalog: object) -> None:
    params = {"question": QUESTION, "traffic": TRAFFIC, "scenario": {"seed": 3}}
    told: list[float] = []
    first = run_simulation(params, lambda share, message: told.append(share), alone(params))
    assert run_simulation(params, lambda share, message: None, alone(params)) == first
    assert told == sorted(told)
    assert first["requests"] == first["completed"] == pytest.approx(288, rel=0.25)
    assert first["catalog_version"]
    assert first["settings"]["seed"] == 3
    assert len(first["ecdf"]["shares"]) == len(first["ecdf"]["ttft_ms"])
    assert first["ecdf"]["ttft_ms"] == sorted(first["ecdf"]["ttft_ms"])


@pytest.mark.django_db
def test_an_uploaded_trace_is_served_and_forgotten_with_its_run(catalog: object) -> None:
    trace = store_trace([gzip.compress(TRACE)])
    run = create_run(kind="simulation", params={"question": QUESTION, "trace": trace})
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.SUCCEEDED, run.error
    assert run.result is not None
    assert run.result["requests"] == 50
    assert run.result["trace"] == trace
    assert run.catalog_version == run.result["catalog_version"]
    Run.objects.filter(pk=run.pk).update(created_at="2020-01-01T00:00:00Z")
    assert delete_old_runs() == 1
    assert not has_trace(trace)


@pytest.mark.django_db
def test_traces_that_were_never_simulated_go_a_day_later(catalog: object, monkeypatch: pytest.MonkeyPatch) -> None:
    used, unused = store_trace([TRACE]), store_trace([TRACE])
    create_run(kind="simulation", params={"question": QUESTION, "trace": used})
    delete_old_runs()
    assert has_trace(unused)
    monkeypatch.setattr(runs, "UNUSED_TRACE_AGE", timedelta(0))
    delete_old_runs()
    assert (has_trace(used), has_trace(unused)) == (True, False)


@pytest.mark.django_db
def test_a_trace_stays_while_another_run_serves_it(catalog: object) -> None:
    trace = store_trace([TRACE])
    old, _new = (create_run(kind="simulation", params={"question": QUESTION, "trace": trace}) for _ in range(2))
    Run.objects.filter(pk=old.pk).update(created_at="2020-01-01T00:00:00Z")
    assert delete_old_runs() == 1
    assert has_trace(trace)


@pytest.mark.django_db
def test_a_fault_in_a_compressed_trace_fails_the_run_with_its_row(catalog: object) -> None:
    trace = store_trace([gzip.compress(TRACE + b"60,0.5,1\n")])
    run = create_run(kind="simulation", params={"question": QUESTION, "trace": trace})
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED
    assert run.error is not None
    assert "row 52, column input_tokens" in run.error["detail"]
    assert run.error["errors"][0]["attr"] == "trace"


def test_a_cancellation_stops_it_between_batches(catalog: object) -> None:
    def report(share: float, message: str) -> None:
        if "simulated" in message:
            raise RunCancelled

    with pytest.raises(RunCancelled):
        run_simulation({"question": QUESTION, "traffic": TRAFFIC}, report, alone({}))


@pytest.mark.django_db
def test_traces_kept_before_they_had_owners_are_those_of_their_first_run() -> None:
    one, other = (user_factory(name) for name in ("one", "other"))
    mine, anyones, unused = (store_trace([TRACE]) for _ in range(3))
    StoredTrace.objects.all().delete()
    for owner, params in (
        (one, {"trace": mine}),
        (None, {"regions": [{"name": "a", "trace": anyones}, {}]}),
        (other, {}),
    ):
        Run.objects.create(kind="simulation", params=params, owner=owner)
    Run.objects.create(kind="simulation", params={"trace": mine}, owner=other)
    import_module("planner.migrations.0011_stored_trace").own_the_traces_of_runs(apps, None)
    assert dict(StoredTrace.objects.values_list("name", "owner")) == {mine: one.pk, anyones: None}
    assert [may_use_trace(mine, user=user) for user in (one, other, None)] == [True, False, False]
    assert [may_use_trace(anyones, user=user) for user in (one, None)] == [True, True]
    assert not may_use_trace(unused, user=None)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("scenario", "field"),
    [
        ({"autoscaler": "hpa", "min_replicas": 10, "max_replicas": 2}, "scenario.max_replicas"),
        ({"autoscaler": "hpa", "min_replicas": 10}, "scenario.min_replicas"),
        ({"autoscaler": "hpa", "min_replicas": 0}, "scenario.min_replicas"),
        ({"upgrade_at_s": 5, "max_surge": 0}, "scenario.max_surge"),
        ({"batching": "dynamic", "batch_ms": 2, "preferred_batches": ["64"]}, "scenario.preferred_batches"),
        ({"batching": "dynamic", "batch_ms": 2, "preferred_batches": ["9" * 5000]}, "scenario.preferred_batches"),
        (
            {"batching": "dynamic", "batch_ms": 2, "preferred_batches": [str(size) for size in range(1, 10)]},
            "scenario.preferred_batches",
        ),
        ({"prefill_replicas": 100_000}, "scenario.prefill_replicas"),
        ({"replicas": 60_000, "prefill_replicas": 50_000}, "scenario.replicas"),
        ({"autoscaler": "hpa", "replicas": 60_000}, "scenario.replicas"),
        ({"replicas": 10_000, "block_tokens": 4096}, "scenario.replicas"),
    ],
)
def test_a_scenario_that_contradicts_itself_is_refused_at_once(scenario: dict[str, Any], field: str) -> None:
    for params, name in (
        ({"scenario": scenario}, field),
        ({"regions": [{"name": "north"}, {"name": "south", "scenario": scenario}]}, f"regions.1.{field}"),
    ):
        with pytest.raises(InvalidQuestion) as caught:
            create_run(kind="simulation", params={"question": QUESTION} | params)
        assert [fault.field for fault in caught.value.errors] == [name]


@pytest.mark.usefixtures("catalog")
def test_regions_in_one_run_have_one_bound() -> None:
    regions = [{"name": "north", "fallback": ["south"]}, {"name": "south"}]
    params = {"question": QUESTION, "scenario": {"replicas": 60_000}, "regions": regions}
    with pytest.raises(InvalidQuestion) as caught:
        create_run(kind="simulation", params=params)
    assert [fault.field for fault in caught.value.errors] == ["regions"]
    create_run(kind="simulation", params={**params, "regions": [{"name": "north"}, {"name": "south"}]})


@pytest.mark.usefixtures("catalog")
def test_more_looking_than_hours_allow_is_refused_at_once() -> None:
    traffic = {"requests_per_second": 2000, "hours": 1}
    scenario = {"replicas": 50_000}
    with pytest.raises(InvalidQuestion) as caught:
        create_run(kind="simulation", params={"question": QUESTION, "scenario": scenario, "traffic": traffic})
    assert [fault.field for fault in caught.value.errors] == ["traffic.hours"]
    turns = {**scenario, "policy": "round_robin"}
    create_run(kind="simulation", params={"question": QUESTION, "scenario": turns, "traffic": traffic})
