"""What a million tokens cost: a plan and its simulation share one bill alike between prompts and answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_like import traffic_like
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.simulation import planned_cluster
from planner.services.simulation_report import Costs, RentedTime

H100 = ["h100-sxm", "h200-sxm"]
LLAMA_8B: dict[str, Any] = {"model": "Llama 3.1 8B", "accelerators": H100}
LLAMA_70B: dict[str, Any] = {"model": "Llama 3.1 70B", "accelerators": H100}
QWEN: dict[str, Any] = {"model": "Qwen3-30B-A3B", "accelerators": H100}
CASES: dict[str, dict[str, Any]] = {
    "chat": LLAMA_8B | {"input_tokens": 1155, "output_tokens": 211, "requests_per_second": 60, "ttft_ms": 2000},
    "summaries": LLAMA_8B | {"input_tokens": 8000, "output_tokens": 150, "requests_per_second": 8, "ttft_ms": 4000},
    "classes": LLAMA_8B | {"input_tokens": 500, "output_tokens": 10, "requests_per_second": 150, "ttft_ms": 500},
    "long answers": LLAMA_8B | {"input_tokens": 200, "output_tokens": 1000, "requests_per_second": 10, "tpot_ms": 80},
    "hardly any": LLAMA_8B | {"input_tokens": 1000, "output_tokens": 200, "requests_per_second": 0.2},
    "spares": LLAMA_8B | {"input_tokens": 1000, "output_tokens": 200, "requests_per_second": 9, "spare_replicas": 2},
    "documents": LLAMA_70B | {"input_tokens": 4000, "output_tokens": 300, "requests_per_second": 5, "ttft_ms": 4000},
    "stages": LLAMA_70B
    | {"input_tokens": 2000, "output_tokens": 200, "requests_per_second": 2, "pipeline_parallel": 2},
    "experts": QWEN | {"input_tokens": 1000, "output_tokens": 250, "requests_per_second": 10, "tpot_ms": 50},
    "wide experts": {"model": "DeepSeek-V3", "tpot_ms": 80}
    | {"input_tokens": 1000, "output_tokens": 250, "requests_per_second": 10, "ttft_ms": 2000},
    "clients": QWEN | {"input_tokens": 1000, "output_tokens": 250, "concurrency": 64},
    "job": LLAMA_8B | {"input_tokens": 2000, "output_tokens": 500, "offline_requests": 20_000, "offline_hours": 1},
    "pools sharing a node": LLAMA_70B
    | {"input_tokens": 4000, "output_tokens": 300, "requests_per_second": 5, "ttft_ms": 4000, "pools": "split"},
    "pools apart": QWEN
    | {"input_tokens": 4000, "output_tokens": 300, "requests_per_second": 30, "tpot_ms": 30, "pools": "split"},
}
WITHIN = {"clients": 0.1, "job": 0.12}
"""Clients that wait come together more than reckoned with; a job whose KV cache is full computes prompts twice."""
REQUESTS = 4000


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("name", CASES)
def test_a_plan_and_its_simulation_ask_the_same_for_a_million_tokens(name: str) -> None:
    case = CASES[name] | ({"peak_factor": 1} if "requests_per_second" in CASES[name] else {})
    cluster = planned_cluster(case, "")
    option, asked = cluster.option, parse_question(InferenceQuestion, case)
    traffic = traffic_like(asked, {})
    if "requests" not in traffic:
        hours = REQUESTS / case["requests_per_second"] / 3600 if "requests_per_second" in case else 0.2
        traffic |= {"hours": hours}
    source = GeneratedTraffic(question=parse_question(TrafficQuestion, traffic))
    run = cluster.run(source, SimulationQuestion()).document
    assert option.usd_per_million_output is not None
    within = WITHIN.get(name, 0.07)
    simulated = {side: float(run[f"usd_per_million_{side}_tokens"]) for side in ("input", "output")}
    assert float(option.usd_per_million_input) == pytest.approx(simulated["input"], rel=within)
    assert float(option.usd_per_million_output) == pytest.approx(simulated["output"], rel=within)
    if option.job is not None:
        tokens = {"input": case["input_tokens"], "output": case["output_tokens"]}
        bill = sum(float(getattr(option, f"usd_per_million_{side}")) * each for side, each in tokens.items())
        assert bill * option.job.requests / 1e6 == pytest.approx(float(option.job.usd), rel=0.005)


def rented(usd: str, hours: float, busy_s: float, prefill_s: float) -> RentedTime:
    return RentedTime(usd_per_hour=Decimal(usd), hours=hours, busy_s=busy_s, prefill_s=prefill_s)


def test_each_pool_of_a_run_shares_its_own_bill() -> None:
    """A prefill pool of 30 USD, mostly idle, and a decode pool of 10 USD: prompts bear three quarters."""
    split = Costs(rented=(rented("10", 3.0, 50.0, 50.0), rented("5", 2.0, 5000.0, 0.0)))
    assert split.usd == Decimal(40)
    assert split.input_share == pytest.approx(0.75)


def test_a_pool_that_never_ran_is_shared_like_the_others() -> None:
    costs = Costs(rented=(rented("10", 1.0, 100.0, 40.0), rented("10", 1.0, 0.0, 0.0)))
    assert costs.input_share == pytest.approx(0.4)
    assert Costs(rented=(rented("10", 1.0, 0.0, 0.0),)).input_share is None
