"""The job ``simulation``: what is refused at once, what a worker makes of it, what stays out of the web process."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.services.generated_traffic import MOST_REQUESTS
from planner.services.run_progress import RunCancelled
from planner.services.runs import create_run
from planner.services.simulation_job import check_options, read_simulation
from planner.services.simulation_run import run_simulation
from planner.services.stored_traces import store_trace
from tests.planner.simulated_jobs import QUESTION, TRAFFIC, alone, faults

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
    assert fault.message == "Too many requests: 360,000,000 in 100 h."
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


def test_regions_share_what_one_run_can_simulate(catalog: object) -> None:
    scenario = {"autoscaler": "hpa", "replicas": 200}
    params = {"question": QUESTION, "scenario": scenario, "traffic": QUIET}
    check_options(read_simulation(params))
    regions = [{"name": str(place)} for place in range(8)]
    with pytest.raises(InvalidQuestion) as raised:
        check_options(read_simulation({**params, "regions": regions}))
    assert [fault.field for fault in raised.value.errors] == [f"regions.{place}.traffic.hours" for place in range(8)]


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
    (message,) = faults({"question": QUESTION, "traffic": grown}).values()
    assert re.fullmatch(r"Too many requests: [\d,]+ in 8784 h\.", message)
    fewer = {"requests_per_second": 25, "hours": 8784, "trend_per_week": -0.9}
    read_simulation({"question": QUESTION, "traffic": fewer})
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation({"question": QUESTION, "traffic": fewer | {"requests_per_second": 100}})
    hours = re.match(r"up to ([\d.]+) h", raised.value.errors[0].allowed)
    assert hours is not None
    read_simulation({"question": QUESTION, "traffic": fewer | {"requests_per_second": 100, "hours": float(hours[1])}})


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


def test_a_cancellation_stops_it_between_batches(catalog: object) -> None:
    def report(share: float, message: str) -> None:
        if "simulated" in message:
            raise RunCancelled

    with pytest.raises(RunCancelled):
        run_simulation({"question": QUESTION, "traffic": TRAFFIC}, report, alone({}))


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
