"""The job ``capacity_search``: what it refuses, what it finds, that it finds the same in any number of workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.services.capacity_job import read_capacity
from planner.services.capacity_run import run_capacity_search, serve_capacity_part
from planner.services.fleet_search import rank, scaling_changes
from planner.services.run_kind import ReportProgress, Spread, Task, in_turn

QUESTION = {
    "model": "Llama 3.1 8B",
    "requests_per_second": 60,
    "accelerators": ["h100-sxm"],
    "ttft_ms": 800,
    "tpot_ms": 40,
    "slo_percentile": "p95",
}
TRAFFIC = {"requests_per_second": 40, "hours": 0.05, "input_median": 600, "output_median": 150}
PARAMS = {"question": QUESTION, "traffic": TRAFFIC}

pytestmark = pytest.mark.usefixtures("catalog")


def search(params: Mapping[str, Any], told: list[float] | None = None) -> dict[str, Any]:
    def report(share: float, message: str) -> None:
        if told is not None:
            told.append(share)

    return run_capacity_search(params, report, in_turn(serve_capacity_part, params))


def by_size(result: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    return {point["replicas"]: point for point in result["search"]["tried"] if not point["autoscaled"]}


def test_finds_the_smallest_that_holds_and_shows_what_was_tried() -> None:
    told: list[float] = []
    result = search(PARAMS, told)
    found = result["search"]
    tried = by_size(result)
    assert tried[found["replicas"]]["met"] is True
    assert tried[found["replicas"] - 1]["met"] is False
    assert (result["replicas"], result["settings"]["replicas"]) == (found["replicas"], found["replicas"])
    assert result["ttft_ms"]["p95"] == tried[found["replicas"]]["ttft_ms"] <= 800
    assert found["limits_ms"] == {"ttft": 800.0, "tpot": 40.0}
    assert found["tried"][found["chosen"]]["replicas"] == found["replicas"]
    rates = [float(point["usd_per_hour"]) for point in found["tried"]]
    assert rates == sorted(rates)
    assert all(point["scaling_metric"] is None for point in found["tried"])
    shares = [tried[size]["goodput_share"] for size in sorted(tried)]
    assert shares == sorted(shares)
    assert told == sorted(told)
    assert told[-1] <= 1
    assert search(PARAMS) == result


def test_the_order_in_which_runs_end_changes_nothing() -> None:
    def backwards(tasks: Sequence[Task], report: ReportProgress) -> list[bytes]:
        return in_turn(serve_capacity_part, PARAMS)(tasks[::-1], report)[::-1]

    spread: Spread = backwards
    assert run_capacity_search(PARAMS, lambda share, message: None, spread) == search(PARAMS)


def test_a_narrow_search_finds_the_same_size() -> None:
    assert search(PARAMS | {"search": {"parallel": 1}})["search"]["replicas"] == search(PARAMS)["search"]["replicas"]


def test_an_autoscaler_is_tried_around_the_size_found() -> None:
    traffic = TRAFFIC | {"hours": 3, "requests_per_second": 12, "daily_peak": 3, "peak_hour": 2}
    scenario = {"autoscaler": "hpa", "provision_s": 30, "scaling_metric": "concurrency"}
    result = search({"question": QUESTION, "traffic": traffic, "scenario": scenario})
    found = result["search"]
    scaled = [point for point in found["tried"] if point["autoscaled"]]
    floors = {point["min_replicas"] for point in scaled}
    assert len(scaled) == 4 * len(floors) >= 4
    assert all(point["max_replicas"] >= found["replicas"] for point in scaled)
    assert {point["scaling_metric"] for point in scaled} == {"concurrency"}
    met = [point for point in found["tried"] if point["met"]]
    chosen = found["tried"][found["chosen"]]
    assert chosen["usd_per_hour"] == min((point["usd_per_hour"] for point in met), key=float)
    assert result["cost_usd"] == chosen["cost_usd"]
    if chosen["autoscaled"]:
        assert result["settings"]["scaling_target"] == chosen["scaling_target"]
        assert result["settings"]["autoscaler"] == "hpa"


def test_limits_that_nothing_holds_show_what_came_closest() -> None:
    # The plan is made for short prompts; those that come take longer than the limit however many replicas there are.
    question = QUESTION | {"ttft_ms": 200, "input_tokens": 100, "requests_per_second": 1}
    traffic = TRAFFIC | {"input_median": 20_000, "input_sigma": 0.1, "requests_per_second": 2}
    result = search({"question": question, "traffic": traffic, "search": {"most_replicas": 8}})
    assert result["search"]["replicas"] is None
    assert not any(point["met"] for point in result["search"]["tried"])
    best = max(point["goodput_share"] for point in result["search"]["tried"])
    assert result["search"]["tried"][result["search"]["chosen"]]["goodput_share"] == best


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"question": {**QUESTION, "ttft_ms": None, "tpot_ms": None}}, ["question.ttft_ms"]),
        ({"search": {"parallel": 0}}, ["search.parallel"]),
        ({"search": {"most_replicas": 1e9}}, ["search.most_replicas"]),
        ({"search": []}, ["search"]),
        ({"regions": [{"name": ""}]}, ["regions.0.name"]),
        (
            {"regions": [{"name": "a", "traffic": {"requests_per_second": 100, "hours": 48}}]},
            ["regions.0.traffic.hours"],
        ),
        ({"traffic": {"requests_per_second": 100, "hours": 48}}, ["traffic.hours"]),
        ({"traffic": {"hours": 0}, "search": {"speed": 1}}, ["search.speed", "traffic.hours"]),
    ],
)
def test_every_fault_is_named(change: dict[str, Any], fields: list[str]) -> None:
    params = PARAMS | change
    if change.get("question"):
        params["question"] = {name: value for name, value in change["question"].items() if value is not None}
    with pytest.raises(InvalidQuestion) as raised:
        read_capacity(params)
    assert [fault.field for fault in raised.value.errors] == fields


def regions(*, linked: bool, **busier: Any) -> list[dict[str, Any]]:
    """Two regions of 75 and 5 requests a second."""
    shared = {"round_trip_ms": 30, "spill_outstanding": 60}
    first, second = [{"fallback": [other], **shared} if linked else {} for other in ("b", "a")]
    return [
        {"name": "a", "traffic": {"requests_per_second": 75}, **first, **busier},
        {"name": "b", "traffic": {"requests_per_second": 5}, **second},
    ]


def test_each_region_is_as_large_as_it_must_be() -> None:
    told: list[float] = []
    result = search(PARAMS | {"regions": regions(linked=False)}, told)
    assert [(each["name"], each["replicas"]) for each in result["regions"]] == [("a", 3), ("b", 1)]
    assert all(each["ttft_ms"]["p95"] <= 800 for each in result["regions"])
    assert result["regions"][0]["settings"] == {"autoscaler": "none", "replicas": 3}
    found = result["search"]
    assert (found["replicas"], found["tried"][found["chosen"]]["met"]) == (4, True)
    fewer = [point for point in found["tried"] if point["replicas"] < 4]
    assert fewer
    assert not any(point["met"] for point in fewer)
    assert sum(Decimal(each["cost_usd"]) for each in result["regions"]) == Decimal(result["cost_usd"])
    assert told == sorted(told)


def test_regions_that_help_each_other_need_fewer() -> None:
    """Alone the busy one needs three; two do where the quiet one takes what they can't."""
    params = PARAMS | {"regions": regions(linked=True)}
    result = search(params)
    assert [(each["name"], each["replicas"]) for each in result["regions"]] == [("a", 2), ("b", 1)]
    assert all(each["ttft_ms"]["p95"] <= 800 and each["completed"] == each["requests"] for each in result["regions"])
    sizes = [tuple(region["replicas"] for region in point["regions"]) for point in result["search"]["tried"]]
    assert len(sizes) == len(set(sizes))
    assert result == search(params)


def test_autoscalers_of_regions_are_tried_together() -> None:
    scenario = {"autoscaler": "hpa", "provision_s": 30, "scaling_metric": "concurrency"}
    result = search(PARAMS | {"regions": regions(linked=True, scenario=scenario)})
    scaled = [point for point in result["search"]["tried"] if point["autoscaled"]]
    assert len(scaled) >= 4
    for point in scaled:
        busy, quiet = point["regions"]
        assert busy["scaling_target"] > 0
        assert busy["scaling_metric"] == "concurrency"
        unset = dict.fromkeys(("min_replicas", "max_replicas", "scaling_target", "scaling_metric"))
        assert quiet == {"name": "b", "replicas": 1, **unset}
        assert point["max_replicas"] == busy["max_replicas"] + 1


def test_a_region_that_no_fleet_can_serve_shows_what_came_closest() -> None:
    hopeless = {"input_median": 20_000, "input_sigma": 0.1, "requests_per_second": 2}
    question = QUESTION | {"ttft_ms": 200, "input_tokens": 100, "requests_per_second": 1}
    both = [{"name": "a", "traffic": hopeless}, {"name": "b"}]
    result = search({"question": question, "traffic": TRAFFIC, "regions": both, "search": {"most_replicas": 8}})
    assert result["search"]["replicas"] is None
    assert not any(point["met"] for point in result["search"]["tried"])


def test_targets_follow_what_a_replica_carries() -> None:
    job = read_capacity(PARAMS | {"scenario": {"autoscaler": "keda", "scaling_metric": "utilization"}})
    scenario = job.simulation.scenario
    changes = scaling_changes(scenario, 8, None)  # type: ignore[arg-type]
    assert sorted({change["min_replicas"] for change in changes}) == [1, 2, 4]
    assert sorted({change["scaling_target"] for change in changes}) == [0.4, 0.55, 0.7, 0.85]
    assert {(change["replicas"], change["max_replicas"]) for change in changes} == {(8, 16)}


def test_where_no_request_is_within_the_limits_the_soonest_fleet_is_the_closest() -> None:
    cheap = {"met": False, "goodput_share": 0.0, "ttft_ms": 13e6, "tpot_ms": 30.0, "cost_usd": Decimal("1")}
    soon = cheap | {"ttft_ms": 10_300.0, "cost_usd": Decimal("256")}
    unknown = cheap | {"ttft_ms": None, "cost_usd": Decimal("0.5")}
    some = cheap | {"goodput_share": 0.1, "ttft_ms": 20e6}
    assert sorted([cheap, soon, unknown, some], key=rank) == [some, soon, cheap, unknown]


def test_without_a_load_of_its_own_a_search_is_sized_for_what_the_plan_is() -> None:
    question = QUESTION | {"requests_per_second": 40, "peak_factor": 3, "headroom": 0.2}
    lengths = {"hours": 0.02, "input_median": 600, "output_median": 150}
    result = search({"question": question, "traffic": lengths})
    given = search({"question": question, "traffic": {**lengths, "requests_per_second": 40}})
    assert result["traffic"]["requests_per_second"] == 150
    assert result["search"]["replicas"] > given["search"]["replicas"]
    assert "150 requests/s, as the plan is: 40 on average, peak factor 3, 20%" in result["search"]["sized_for"]
    assert given["search"]["sized_for"].startswith("Sized for this traffic as it is")
    daily = read_capacity({"question": question, "traffic": {**lengths, "daily_peak": 1.5}})
    assert daily.simulation.regions[0].traffic is not None
    assert daily.simulation.regions[0].traffic.requests_per_second == 100
    stepwise = read_capacity({"question": question, "traffic": {**lengths, "rates": [1, 3], "rate_s": 3600}})
    assert stepwise.simulation.regions[0].traffic is not None
    assert stepwise.simulation.regions[0].traffic.requests_per_second == 100
    both = read_capacity({"question": question, "regions": [{"name": "north"}, {"name": "south"}]})
    assert [region.traffic and region.traffic.requests_per_second for region in both.simulation.regions] == [150, 150]
    waiting = QUESTION | {"requests_per_second": None, "concurrency": 20}
    assert read_capacity({"question": waiting}).sized_for.startswith("Sized for this traffic as it is")


def test_a_week_of_ten_requests_a_second_may_be_searched() -> None:
    week = {"question": QUESTION, "traffic": TRAFFIC | {"requests_per_second": 10, "hours": 168}}
    assert read_capacity(week).simulation.regions[0].traffic is not None
    with pytest.raises(InvalidQuestion) as refused:
        read_capacity({"question": QUESTION, "traffic": TRAFFIC | {"requests_per_second": 20, "hours": 168}})
    (fault,) = refused.value.errors
    assert (fault.field, fault.message) == ("traffic.hours", "Too many requests: 12,096,000 in 168 h.")
    assert "10,000,000 requests" in fault.allowed


def test_a_search_that_ends_at_its_bound_says_so_and_its_rates_are_a_fleets() -> None:
    tight = {"question": QUESTION, "traffic": TRAFFIC | {"requests_per_second": 2000, "hours": 0.002}}
    result = search(tight | {"search": {"most_replicas": 4}})
    assert (result["search"]["replicas"], result["search"]["most_replicas"]) == (None, 4)
    for tried in result["search"]["tried"]:
        hourly = Decimal(tried["usd_per_hour"])
        assert Decimal(tried["usd_per_month"]) == pytest.approx(hourly * 730, rel=Decimal("1e-4"))
    rates = {tried["replicas"]: float(tried["usd_per_hour"]) for tried in result["search"]["tried"]}
    assert rates[4] == pytest.approx(4 * rates[1], rel=1e-3) if 1 in rates else rates
    assert result["usd_per_hour"] == result["search"]["tried"][result["search"]["chosen"]]["usd_per_hour"]
