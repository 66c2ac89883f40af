"""Simulated clients that wait for their answers: whose traffic it is, and what they get."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.simulate.setup import ClosedLoop
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.services import planned_traffic
from planner.services.planning import plan_inference
from planner.services.simulation_job import read_simulation
from planner.services.simulation_run import run_simulation
from tests.planner.simulated_jobs import QUESTION, alone, faults

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
