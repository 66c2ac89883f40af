"""Offline jobs simulated: all requests at the beginning, until the last is answered; and what a fleet for one is."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.traffic_like import traffic_like
from planner.engine.simulate.traffic_question import MOST_QUEUED, TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.capacity_job import read_capacity
from planner.services.capacity_run import run_capacity_search, serve_capacity_part
from planner.services.planning import plan_inference
from planner.services.run_kind import in_turn
from planner.services.simulation_job import read_simulation
from planner.services.simulation_parts import serve_part
from planner.services.simulation_run import run_simulation

JOB: dict[str, Any] = {
    "model": "Llama 3.1 8B",
    "input_tokens": 1000,
    "output_tokens": 200,
    "offline_requests": 20_000,
    "offline_hours": 0.25,
    "accelerators": ["h100-sxm"],
}

pytestmark = pytest.mark.usefixtures("catalog")


def simulated(params: dict[str, Any]) -> dict[str, Any]:
    return run_simulation(params, lambda share, message: None, in_turn(serve_part, params))


def searched(params: dict[str, Any]) -> dict[str, Any]:
    return run_capacity_search(params, lambda share, message: None, in_turn(serve_capacity_part, params))


def test_a_job_is_simulated_as_one_and_takes_what_its_plan_says() -> None:
    planned = plan_inference(JOB).options[0].job
    result = simulated({"question": JOB})
    assert planned is not None
    assert (result["requests"], result["completed"]) == (20_000, 20_000)
    job = result["job"]
    assert Decimal(job["hours"]) == round(Decimal(repr(result["duration_s"] / 3600)), 4)
    assert float(job["hours"]) == pytest.approx(planned.hours, rel=0.05)
    assert float(job["usd"]) == pytest.approx(float(planned.usd), rel=0.05)
    assert job["within_hours"] == 0.25
    # The last waits for nearly all others.
    assert result["ttft_ms"]["p99"] > 900 * result["duration_s"]
    assert result["notes"][1] == "Generated job: 20,000 requests, all queued at the beginning."
    assert not any("by chance" in note for note in result["notes"])


def test_of_a_job_too_large_for_one_run_a_part_gives_the_pace() -> None:
    whole = simulated({"question": JOB})["job"]
    longer = JOB | {"offline_requests": 2_000_000, "offline_hours": 25}
    part = simulated({"question": longer, "traffic": {"requests": 20_000}})["job"]
    assert (part["requests"], part["simulated_requests"]) == (2_000_000, 20_000)
    assert float(part["hours"]) == pytest.approx(100 * float(whole["hours"]), rel=0.001)
    chat = {"question": {"model": "Llama 3.1 8B", "requests_per_second": 5}, "traffic": {"requests": 10}}
    assert read_simulation(chat).regions[0].traffic == TrafficQuestion(
        requests=10, input_median=1000, input_sigma=0, output_median=250, output_sigma=0
    )
    question = InferenceQuestion(model="m", offline_requests=30_000_000, offline_hours=24.0)
    assert traffic_like(question, {})["requests"] == MOST_QUEUED


def test_requests_over_time_are_no_job() -> None:
    for given in ({"hours": 0.02}, {"requests_per_second": 20.0, "hours": 0.02}, {"daily_peak": 2.0, "hours": 0.02}):
        read = read_simulation({"question": JOB, "traffic": given}).regions[0].traffic
        assert read is not None
        assert read.requests is None, given
    result = simulated({"question": JOB, "traffic": {"hours": 0.02}})
    assert "job" not in result


def test_a_job_comes_at_no_rate() -> None:
    for other in ({"hours": 2.0}, {"requests_per_second": 5.0}, {"clients": 4}, {"burst_factor": 2.0}):
        with pytest.raises(InvalidQuestion) as refused:
            read_simulation({"question": JOB, "traffic": {"requests": 10, **other}})
        assert [fault.field for fault in refused.value.errors] == [f"traffic.{next(iter(other))}"]


def test_the_smallest_fleet_of_a_job_is_done_in_its_time() -> None:
    params: dict[str, Any] = {"question": JOB | {"offline_hours": 0.05}}
    found = searched(params)
    search = found["search"]
    assert search["within_s"] == pytest.approx(0.05 * 3600 * 0.8)
    assert search["sized_for"] == "Sized to answer 20,000 requests within 0.05 h, 20% of that time kept free."
    by_size = {point["replicas"]: point for point in search["tried"]}
    fewest = search["replicas"]
    assert by_size[fewest]["duration_s"] <= search["within_s"] < by_size[fewest - 1]["duration_s"]
    assert found["duration_s"] == by_size[found["replicas"]]["duration_s"]
    assert found["job"]["simulated_requests"] == 20_000
    with pytest.raises(InvalidQuestion, match="limit to hold"):
        read_capacity({"question": JOB, "traffic": {"requests_per_second": 5}})


def test_a_job_of_too_many_requests_is_told_how_many_may_be() -> None:
    regions = [{"name": str(place), "traffic": {"requests": 700_000}} for place in range(16)]
    question = {"model": "Llama 3.1 8B", "requests_per_second": 5, "ttft_ms": 800}
    with pytest.raises(InvalidQuestion) as refused:
        read_capacity({"question": question, "regions": regions})
    first = refused.value.errors[0]
    assert (first.field, str(first.allowed)) == ("regions.0.traffic.requests", "up to 625,000 requests")


def test_regions_are_sized_for_what_they_say_they_are() -> None:
    question = {name: value for name, value in JOB.items() if not name.startswith("offline")}
    question |= {"requests_per_second": 40, "ttft_ms": 800}
    stated = [{"name": "a", "traffic": {"requests_per_second": 4}}, {"name": "b", "traffic": {"clients": 3}}]
    as_given = read_capacity({"question": question, "regions": stated})
    assert as_given.sized_for.startswith("Sized for this traffic as it is")
    rates = [region.traffic and region.traffic.requests_per_second for region in as_given.simulation.regions]
    assert rates == [4, 1]
    some = read_capacity({"question": question, "regions": [*stated, {"name": "c"}]})
    assert some.sized_for.endswith("the others for their traffic as it is.")
    assert [region.traffic and region.traffic.requests_per_second for region in some.simulation.regions][2] == 100
    peaks = [{"name": "a"}, {"name": "b", "traffic": {"daily_peak": 2}}]
    each = read_capacity({"question": question, "regions": peaks})
    assert each.sized_for.startswith("Each region is sized as the plan is: 40 requests/s on average")
    assert [region.traffic and region.traffic.requests_per_second for region in each.simulation.regions] == [100, 50]


def test_the_command_simulates_a_plans_job_without_a_trace(tmp_path: Path) -> None:
    plan, out = tmp_path / "job.json", tmp_path / "out.json"
    plan.write_text(json.dumps(JOB), encoding="utf-8")
    call_command("simulate", "--plan", str(plan), "--out", str(out))
    job = json.loads(out.read_text(encoding="utf-8"))["job"]
    assert job["simulated_requests"] == TrafficQuestion(requests=20_000).requests
    call_command("simulate", "--plan", str(plan), "--out", str(out), "--smallest")
    assert json.loads(out.read_text(encoding="utf-8"))["search"]["within_s"] == 720
