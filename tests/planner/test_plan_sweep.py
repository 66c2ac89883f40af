"""The job that plans one question under more and more load."""

from __future__ import annotations

import re
from typing import Any

import pytest

from catalog.services import LoadReport
from planner.engine.errors import InvalidQuestion
from planner.services.plan_sweep import check_sweep, read_sweep, run_sweep

QUESTION = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "input_tokens": 1500,
    "output_tokens": 300,
    "requests_per_second": 4,
    "ttft_ms": 2000,
    "tpot_ms": 60,
}

pytestmark = pytest.mark.usefixtures("catalog")


def _faults(params: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidQuestion) as caught:
        check_sweep(params, None)
    return {fault.field: fault.message for fault in caught.value.errors}


@pytest.mark.parametrize(
    ("params", "faults"),
    [
        ({}, {"question": "Not a JSON object."}),
        ({"question": [1]}, {"question": "Not a JSON object."}),
        ({"question": QUESTION, "speed": 1}, {"speed": "Unknown field."}),
        ({"question": QUESTION, "points": 1}, {"points": "Out of range."}),
        ({"question": QUESTION, "points": 51}, {"points": "Out of range."}),
        ({"question": QUESTION, "points": 2.5}, {"points": "Out of range."}),
        ({"question": QUESTION, "points": True}, {"points": "Out of range."}),
        ({"question": QUESTION, "lowest": 0}, {"lowest": "Out of range."}),
        ({"question": QUESTION, "lowest": "1"}, {"lowest": "Out of range."}),
        ({"question": QUESTION, "highest": float("nan")}, {"highest": "Out of range."}),
        ({"question": QUESTION, "lowest": 2, "highest": 2}, {"highest": "Not above lowest."}),
        ({"question": QUESTION | {"model": "no-such-model"}}, {"question.model": "Not in the catalog."}),
    ],
)
def test_names_every_fault(params: dict[str, Any], faults: dict[str, str]) -> None:
    assert _faults(params) == faults


def test_names_the_questions_own_faults() -> None:
    faults = _faults({"question": QUESTION | {"headroom": 2, "colour": "red"}, "points": 0})
    assert set(faults) == {"question.headroom", "question.colour", "points"}


def test_has_twelve_points_from_a_quarter_to_eight_times_the_load() -> None:
    factors = read_sweep({"question": QUESTION}).factors()
    assert (len(factors), factors[0], factors[-1]) == (12, 0.25, 8.0)


def test_more_load_never_costs_less(catalog: LoadReport) -> None:
    reports: list[tuple[float, str]] = []
    result = run_sweep(
        {"question": QUESTION, "lowest": 0.25, "highest": 64, "points": 5}, lambda *report: reports.append(report)
    )
    assert result["catalog_version"] == catalog.version
    assert result["traffic_field"] == "requests_per_second"
    points = result["points"]
    assert [point["mean_requests_s"] for point in points] == [1.0, 4.0, 16.0, 64.0, 256.0]
    costs = [float(point["best"]["usd_per_month"]) for point in points]
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]
    for point in points:
        assert point["reason"] is None
        assert point["best"]["ttft_ms"]["p95"] <= 2000
        assert point["best"]["tpot_ms"]["p95"] <= 60
        assert point["best"]["gpus_billed"] >= point["best"]["gpus_used"] > 0
    assert [share for share, _ in reports] == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert reports[0][1] == "Planning 0.25 times the load"


def test_scales_whichever_way_the_traffic_is_stated() -> None:
    plain = {"model": QUESTION["model"], "input_tokens": 1000, "output_tokens": 200}
    users = run_sweep(
        {
            "question": plain | {"users": 86_400, "requests_per_user_per_day": 10},
            "lowest": 0.5,
            "highest": 2,
            "points": 2,
        },
        lambda *_: None,
    )
    assert users["traffic_field"] == "users"
    assert [point["mean_requests_s"] for point in users["points"]] == pytest.approx([5.0, 20.0])
    clients = run_sweep(
        {"question": plain | {"concurrency": 3}, "lowest": 0.1, "highest": 10, "points": 2}, lambda *_: None
    )
    assert clients["traffic_field"] == "concurrency"
    assert all(point["best"] for point in clients["points"])


def test_says_what_the_options_that_came_closest_broke_on() -> None:
    result = run_sweep(
        {"question": QUESTION | {"max_nodes": 1}, "lowest": 1, "highest": 1000, "points": 2}, lambda *_: None
    )
    fits, too_much = result["points"]
    assert fits["best"] is not None
    assert too_much["best"] is None
    # Most of what is left out has too little memory at any load: not what this load breaks.
    assert re.fullmatch(r"\d+x .+: TP\d+.*: needs [\d,]+ nodes, more than 1\.", too_much["reason"])


def test_a_limit_nothing_meets_is_named_with_the_closest() -> None:
    result = run_sweep({"question": QUESTION | {"tpot_ms": 1}, "lowest": 1, "highest": 2, "points": 2}, lambda *_: None)
    assert all("over the limit of 1 ms" in point["reason"] for point in result["points"])


@pytest.mark.parametrize(
    ("traffic", "field", "most"),
    [({"requests_per_second": 1e5}, "requests_per_second", 1e7), ({"users": 2}, "users", 2e3)],
)
def test_plans_no_load_that_nobody_could_ask_for(traffic: dict[str, float], field: str, most: float) -> None:
    question = {"model": QUESTION["model"]} | traffic
    question |= {"requests_per_user_per_day": 10} if field == "users" else {}
    result = run_sweep({"question": question, "lowest": 0.001, "highest": 1000, "points": 4}, lambda *_: None)
    asked = traffic[field]
    loads = [point["load_factor"] * asked for point in result["points"]]
    assert max(loads) == most
    assert min(loads) >= (1 if field == "users" else 0)
    assert len(set(loads)) == len(loads)
    assert all("range" not in (point["reason"] or "") for point in result["points"])


def test_few_clients_are_planned_once_each() -> None:
    question = {"model": QUESTION["model"], "concurrency": 2}
    result = run_sweep({"question": question, "lowest": 0.1, "highest": 2, "points": 8}, lambda *_: None)
    assert [point["load_factor"] for point in result["points"]] == [0.5, 1.0, 1.5, 2.0]


def test_an_offline_job_grows_by_its_requests() -> None:
    question = {name: value for name, value in QUESTION.items() if name not in ("requests_per_second", "ttft_ms")}
    question |= {"offline_requests": 100_000, "offline_hours": 10}
    found = run_sweep({"question": question, "lowest": 0.5, "highest": 2, "points": 3}, lambda _share, _text: None)
    assert found["traffic_field"] == "offline_requests"
    assert [(point["load"], point["best"]["job"]["requests"]) for point in found["points"]] == [
        (50_000, 50_000),
        (100_000, 100_000),
        (200_000, 200_000),
    ]
    assert [point["peak_requests_s"] for point in found["points"]] == pytest.approx(
        [factor * 100_000 / 36_000 for factor in (0.5, 1, 2)]
    )


def test_a_draft_model_that_is_unknown_is_named() -> None:
    question = QUESTION | {"speculation": "draft_model", "draft_model": "no-such-model"}
    assert _faults({"question": question}) == {"question.draft_model": "Not in the catalog."}
