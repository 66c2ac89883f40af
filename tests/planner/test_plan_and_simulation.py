"""Eight ordinary questions, planned and simulated at the load that the plan is for: latencies and money.

A replica that gets its share by chance is what the plan reckons with. A gateway spreads requests more evenly than that,
so that a whole fleet's first tokens and answers come sooner; what it costs is the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_like import traffic_like
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.simulation import PlannedCluster, planned_cluster

REQUESTS = 5000
SOONER = 0.75
"""Of the planned time, what a gateway that looks at loads leaves at least: most is won where answers are short."""


def asked(model: str, tokens: tuple[int, int], rate: float, ttft_ms: float, tpot_ms: float) -> dict[str, Any]:
    return {
        "model": model,
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "requests_per_second": rate,
        "ttft_ms": ttft_ms,
        "tpot_ms": tpot_ms,
        "peak_factor": 1,
    }


QUESTIONS: dict[str, dict[str, Any]] = {
    "8B, chat": asked("Llama 3.1 8B", (1000, 250), 20, 1000, 50),
    "8B, classification": asked("Llama 3.1 8B", (500, 10), 50, 500, 50),
    "70B, chat": asked("Llama 3.1 70B", (1000, 250), 10, 2000, 60),
    "70B, documents": asked("Llama 3.1 70B", (4000, 300), 5, 4000, 80),
    "70B, summaries": asked("Llama 3.1 70B", (8000, 400), 2, 6000, 80),
    "32B, code": asked("Qwen2.5 32B", (2000, 500), 4, 2000, 50),
    "Mixtral, chat": asked("Mixtral 8x7B", (1000, 250), 10, 1000, 50),
    "DeepSeek-V3, chat": asked("DeepSeek-V3", (1000, 250), 10, 2000, 80),
}


def simulated(cluster: PlannedCluster, question: dict[str, Any], rate: float, **scenario: Any) -> dict[str, Any]:
    """``REQUESTS`` of the question, at so many a second."""
    given = traffic_like(parse_question(InferenceQuestion, question), {})
    traffic = given | {"requests_per_second": rate, "hours": REQUESTS / rate / 3600}
    source = GeneratedTraffic(question=parse_question(TrafficQuestion, traffic))
    return cluster.run(source, SimulationQuestion(**scenario)).document


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_replica_and_a_fleet_do_what_the_plan_says(name: str) -> None:
    question = QUESTIONS[name]
    cluster = planned_cluster(question, "")
    option, rate = cluster.option, question["requests_per_second"]
    ttft_ms, tpot_ms = option.speed.ttft_ms["mean"], option.speed.tpot_ms["mean"]
    assert tpot_ms is not None
    one = simulated(cluster, question, rate / option.layout.replicas, replicas=1)
    assert one["ttft_ms"]["mean"] == pytest.approx(ttft_ms, rel=0.06)
    assert one["tpot_ms"]["mean"] == pytest.approx(tpot_ms, rel=0.02)
    fleet = simulated(cluster, question, rate)
    assert SOONER * ttft_ms < fleet["ttft_ms"]["mean"] < 1.03 * ttft_ms
    assert SOONER * tpot_ms < fleet["tpot_ms"]["mean"] < 1.02 * tpot_ms
    assert float(fleet["usd_per_month"]) == pytest.approx(float(option.price.usd_per_month), rel=1e-4)
    tokens = ("", "input_", "output_")
    planned = (option.usd_per_million_tokens, option.usd_per_million_input, option.usd_per_million_output)
    for side, usd, within in zip(tokens, planned, (0.02, 0.1, 0.1), strict=True):
        assert float(fleet[f"usd_per_million_{side}tokens"]) == pytest.approx(float(usd or 0), rel=within)
