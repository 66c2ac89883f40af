"""Capacity, utilization and headroom are those within the latency limits, where a limit decides."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.answers import InferenceOption
from tests.engine.test_inference_plan import plan

LIMITS: dict[str, Any] = {"model": "llama-3.1-70b", "tensor_parallel": 8, "pipeline_parallel": 1, "peak_factor": 1}


def only(**asked: Any) -> InferenceOption:
    return plan(**LIMITS | asked).options[0]


@pytest.mark.parametrize("limits", [{"ttft_ms": 400}, {"tpot_ms": 25}, {"ttft_ms": 400, "tpot_ms": 25}])
def test_the_fleet_holds_its_limits_up_to_its_capacity_and_not_beyond(limits: dict[str, Any]) -> None:
    fleet = only(requests_per_second=10, headroom=0, **limits)
    capacity = fleet.speed.capacity_requests_s
    assert capacity >= 10
    assert fleet.speed.utilization == pytest.approx(10 / capacity)
    same = only(requests_per_second=capacity * 0.99, headroom=0, **limits)
    assert same.layout.replicas == fleet.layout.replicas
    larger = only(requests_per_second=capacity * 1.05, headroom=0, **limits)
    assert larger.layout.replicas > fleet.layout.replicas


@pytest.mark.parametrize("headroom", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("limits", [{"ttft_ms": 400}, {"tpot_ms": 25}, {}])
def test_headroom_is_kept_within_the_limits(headroom: float, limits: dict[str, Any]) -> None:
    option = only(requests_per_second=20, headroom=headroom, **limits)
    assert option.speed.utilization <= 1 - headroom + 0.01
    # One replica fewer would not do: what is free is less than a replica's share.
    assert (
        option.layout.replicas == 1
        or option.speed.utilization * option.layout.replicas / (option.layout.replicas - 1) > (1 - headroom) * 0.97
    )


def test_without_limits_capacity_is_all_that_is_served() -> None:
    loose, none = only(requests_per_second=5, ttft_ms=3e6, tpot_ms=1e5), only(requests_per_second=5)
    assert loose.speed.capacity_requests_s == pytest.approx(none.speed.capacity_requests_s, rel=0.02)


def test_clients_within_the_limits() -> None:
    fleet = only(requests_per_second=None, concurrency=64, tpot_ms=30)
    assert fleet.speed.utilization <= 1
    free = only(requests_per_second=None, concurrency=64)
    assert (
        fleet.speed.capacity_requests_s / fleet.layout.replicas < free.speed.capacity_requests_s / free.layout.replicas
    )


def test_no_first_token_is_likely_before_its_own_parts() -> None:
    for model in ("llama-3.1-8b", "Qwen3-30B-A3B", "DeepSeek-V3"):
        for option in plan(model=model, requests_per_second=5, max_nodes=64).options:
            own = sum(t.value for t in option.working if t.group == "ttft" and t.name in ("prefill", "front_end"))
            soonest = option.ttft_confidence.low * option.speed.ttft_ms["mean"]
            assert soonest >= own / option.confidence.high * 0.999
            assert option.ttft_confidence.low <= 1


@pytest.mark.parametrize("limits", [{"ttft_ms": 500}, {"tpot_ms": 25}, {"ttft_ms": 500, "tpot_ms": 25}])
def test_split_pools_hold_their_limits_with_headroom_and_up_to_their_capacity(limits: dict[str, Any]) -> None:
    asked = LIMITS | limits | {"tensor_parallel": 4, "pools": "split", "max_nodes": 64}
    for option in plan(**asked, requests_per_second=20, headroom=0.3).options:
        assert option.speed.utilization <= 0.7 + 0.01
    fleet = plan(**asked, requests_per_second=20, headroom=0).options[0]
    free = plan(**asked | dict.fromkeys(limits), requests_per_second=20, headroom=0).options[0]
    capacity = fleet.speed.capacity_requests_s
    assert capacity >= 20
    assert free.prefill_pool is not None
    again = plan(**asked, requests_per_second=capacity * 0.98, headroom=0).options
    assert fleet.id in {option.id for option in again}
    beyond = plan(**asked, requests_per_second=capacity * 1.1, headroom=0).options
    assert fleet.id not in {option.id for option in beyond}
