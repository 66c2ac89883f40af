"""A simulation lasts as long as its traffic was asked for: what it costs, an hour and a month, follows from that."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.services import fleet_checks, simulation_parts
from planner.services.planning import plan_inference
from planner.services.simulation_job import check_options, read_simulation
from planner.services.simulation_parts import sites_of
from planner.services.simulation_run import run_simulation
from planner.services.stored_traces import store_trace
from tests.planner.simulated_jobs import QUESTION, TRACE, alone

NOBODY = {"requests_per_second": 1e-6, "hours": 1.0, "input_median": 500, "output_median": 50}
A_FEW = NOBODY | {"requests_per_second": 2e-3}

pytestmark = pytest.mark.usefixtures("catalog")


def run(**params: Any) -> dict[str, Any]:
    asked = {"question": QUESTION, **params}
    return run_simulation(asked, lambda share, message: None, alone(asked))


def price_of(question: Mapping[str, Any]) -> Decimal:
    """Of a node an hour, where a replica of the first option is one GPU of it."""
    option = plan_inference(question).options[0]
    assert option.layout.gpus_per_replica == option.cluster.gpus_per_node == 1
    return option.price.usd_per_node_hour


@pytest.mark.parametrize("traffic", [NOBODY, A_FEW, NOBODY | {"clients": 2, "think_s": 3600, "seed": 5}])
def test_an_hour_of_three_nodes_is_three_node_hours(traffic: dict[str, Any]) -> None:
    if "clients" in traffic:
        traffic = {name: value for name, value in traffic.items() if name != "requests_per_second"}
    result = run(traffic=traffic, scenario={"replicas": 3})
    assert (result["requests"] > 0) == (traffic != NOBODY)
    price = price_of(QUESTION)
    assert result["duration_s"] == 3600.0
    assert result["gpu_hours"] == 3.0
    assert Decimal(result["cost_usd"]) == round(3 * price, 2)
    assert Decimal(result["usd_per_hour"]) == round(3 * price, 4)
    assert Decimal(result["usd_per_month"]) == round(3 * price * 730, 2)


def test_the_plans_own_fleet_costs_what_the_plan_says() -> None:
    option = plan_inference(QUESTION).options[0]
    result = run(traffic=A_FEW)
    assert result["replicas"] == option.layout.replicas
    assert Decimal(result["usd_per_hour"]) == round(option.price.usd_per_hour, 4)
    assert Decimal(result["usd_per_month"]) == option.price.usd_per_month


def test_the_fleet_shrinks_and_breaks_when_nobody_comes() -> None:
    scaled = run(traffic=NOBODY, scenario={"replicas": 4, "autoscaler": "hpa", "min_replicas": 1})
    assert scaled["incidents"]["counts"]["scaled"] == 1
    assert scaled["gpu_hours"] == pytest.approx(1.0 + 3 * 315.0 / 3600.0)
    assert scaled["timeline"]["replicas"]["ready"][-1] == 1.0
    slept = run(
        traffic=NOBODY, scenario={"replicas": 1, "autoscaler": "keda", "min_replicas": 0, "scaling_metric": "queue"}
    )
    assert slept["timeline"]["replicas"]["billed"][-1] == 0.0
    assert slept["gpu_hours"] < 0.2
    broken = run(traffic=NOBODY | {"hours": 24.0}, scenario={"replicas": 4, "node_failure_hours": 8.0})
    assert broken["incidents"]["counts"]["failed"] > 4
    for timeline in (scaled["timeline"], broken["timeline"]):
        for part in ("requests", "replicas", "queue", "kv"):
            column = next(value for name, value in timeline[part].items() if isinstance(value, list))
            span_s = 3600.0 if timeline is scaled["timeline"] else 24 * 3600.0
            assert len(column) * timeline[part]["bin_s"] == pytest.approx(span_s, abs=timeline[part]["bin_s"])


def test_a_trace_and_a_job_end_with_their_last_answer() -> None:
    served = run(trace=store_trace([TRACE]), scenario={"replicas": 2})
    assert 49.0 < served["duration_s"] < 55.0
    job = run(
        question={"model": "Llama 3.1 8B", "accelerators": ["h100-sxm"], "offline_requests": 500, "offline_hours": 1}
    )
    assert 0.0 < job["duration_s"] < 600.0
    assert job["gpu_hours"] * 3600 == pytest.approx(job["duration_s"] * job["replicas"])


@pytest.mark.parametrize("linked", [False, True])
def test_all_regions_are_kept_until_the_last_one_ends(linked: bool) -> None:
    """One has traffic for an hour, one for two, one a trace of a minute: six replica hours, whoever is served."""
    regions: list[dict[str, Any]] = [
        {"name": "a", "traffic": {"hours": 1.0}},
        {"name": "b", "traffic": {"hours": 2.0}},
        {"name": "c", "trace": store_trace([TRACE])},
    ]
    if linked:
        regions[0]["fallback"] = ["b"]
    scaling = {"replicas": 1, "node_failure_hours": 1e6}
    result = run(traffic=A_FEW, scenario=scaling, regions=regions)
    assert result["duration_s"] == 7200.0
    assert [region["gpu_hours"] for region in result["regions"]] == [2.0, 2.0, 2.0]
    bills = [Decimal(region["cost_usd"]) for region in result["regions"]]
    assert max(bills) - min(bills) <= Decimal("0.01")
    assert sum(bills) == Decimal(result["cost_usd"]) == round(6 * price_of(QUESTION), 2)


def test_a_region_scales_down_while_another_goes_on() -> None:
    scenario = {"replicas": 2, "autoscaler": "hpa", "min_replicas": 1}
    regions = [{"name": "a", "traffic": {"hours": 0.05}}, {"name": "b", "traffic": {"hours": 1.0}}]
    result = run(traffic=NOBODY, scenario=scenario, regions=regions)
    a, b = (region["gpu_hours"] for region in result["regions"])
    assert a == b == pytest.approx(1.0 + 315.0 / 3600.0)


def test_a_time_too_long_for_a_region_is_refused_whoever_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_checks, "MOST_LOOKS", 20_000_000)
    scales = {"name": "a", "scenario": {"autoscaler": "hpa"}, "traffic": {"hours": 1.0}}
    check_options(read_simulation({"question": QUESTION, "traffic": NOBODY, "regions": [scales]}))
    params = {
        "question": QUESTION,
        "traffic": NOBODY,
        "regions": [scales, {"name": "b", "traffic": {"hours": 100.0}}],
    }
    with pytest.raises(InvalidQuestion) as raised:
        check_options(read_simulation(params))
    (fault,) = raised.value.errors
    assert (fault.field, fault.value) == ("regions.0.traffic.hours", 100.0)


def test_parts_without_requests_end_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"traffic": A_FEW, "scenario": {"policy": "round_robin", "replicas": 12}}
    whole = run(**params)
    assert 0 < whole["requests"] < 12
    monkeypatch.setattr(simulation_parts, "SHARD_REQUESTS", 1)
    assert len(sites_of(read_simulation({"question": QUESTION, **params})).tasks()) > 3
    cut = run(**params)
    assert cut == whole
    assert cut["gpu_hours"] == 12.0
