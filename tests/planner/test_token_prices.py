"""What a million tokens cost: a plan and its simulation share one bill alike between prompts and answers."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_like import traffic_like
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.simulation import planned_cluster

CHAT: dict[str, Any] = {"model": "Llama 3.1 8B", "accelerators": ["h100-sxm", "h200-sxm"], "peak_factor": 1}
CASES: list[dict[str, Any]] = [
    {"input_tokens": 1155, "output_tokens": 211, "requests_per_second": 60, "ttft_ms": 2000, "tpot_ms": 100},
    {"input_tokens": 8000, "output_tokens": 150, "requests_per_second": 8, "ttft_ms": 4000},
    {"input_tokens": 800, "output_tokens": 5, "requests_per_second": 60, "ttft_ms": 500, "tpot_ms": 100},
    {"input_tokens": 200, "output_tokens": 1000, "requests_per_second": 10, "tpot_ms": 80},
    {"input_tokens": 1000, "output_tokens": 200, "requests_per_second": 0.5},
    {"input_tokens": 2000, "output_tokens": 500, "offline_requests": 20_000, "offline_hours": 1},
]


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['input_tokens']} to {case['output_tokens']}")
def test_prompts_and_answers_bear_the_same_shares_in_a_plan_and_its_simulation(case: dict[str, Any]) -> None:
    cluster = planned_cluster(CHAT | case, "")
    option, asked = cluster.option, parse_question(InferenceQuestion, CHAT | case)
    traffic = traffic_like(asked, {})
    if "requests" not in traffic:
        traffic |= {"hours": 3000 / case["requests_per_second"] / 3600}
    source = GeneratedTraffic(question=parse_question(TrafficQuestion, traffic))
    run = cluster.run(source, SimulationQuestion()).document
    tokens = {"input": case["input_tokens"], "output": case["output_tokens"]}
    planned = {side: float(getattr(option, f"usd_per_million_{side}")) * n for side, n in tokens.items()}
    simulated = {side: float(run[f"usd_per_million_{side}_tokens"]) * n for side, n in tokens.items()}
    share = planned["input"] / sum(planned.values())
    assert share == pytest.approx(simulated["input"] / sum(simulated.values()), abs=0.04)
    if option.job is not None:
        assert sum(planned.values()) * option.job.requests / 1e6 == pytest.approx(float(option.job.usd), rel=0.005)
