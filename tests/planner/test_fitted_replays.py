"""Traffic fitted to a public trace is like it: requests, tokens, what is found cached, and how long answers wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.services.fitted_traffic import fitted_fields
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.simulation import TrafficSource, planned_cluster
from planner.services.trace_files import read_trace

PUBLIC_TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
SEEDS = range(3)
MODEL = {"model": "Llama 3.1 70B", "accelerators": ["h100-sxm"]}
CASES = {
    "AzureLLMInferenceTrace_code.csv": {"requests_per_second": 2.57, "input_tokens": 2048, "output_tokens": 28},
    "AzureLLMInferenceTrace_conv.csv": {"requests_per_second": 5.53, "input_tokens": 1155, "output_tokens": 211},
    "mooncake_synthetic_trace.jsonl": {"requests_per_second": 3.91, "input_tokens": 15325, "output_tokens": 149},
}

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not PUBLIC_TRACES.exists(), reason="the public traces are not beside this checkout"),
]


@pytest.mark.parametrize("name", CASES)
def test_fitted_traffic_is_served_like_its_trace(catalog: object, name: str) -> None:
    trace = read_trace(PUBLIC_TRACES / name)
    fields = fitted_fields(trace)
    cluster = planned_cluster(MODEL | CASES[name])

    def served(source: TrafficSource) -> list[float]:
        found: dict[str, Any] = cluster.run(source, SimulationQuestion()).document
        figures = (*("requests", "input_tokens", "output_tokens", "cached_input_tokens"),)
        return [float(found[figure]) for figure in figures] + [found["ttft_ms"]["mean"], found["ttft_ms"]["p95"]]

    seen = np.array(served(trace))
    asked = [parse_question(TrafficQuestion, fields | {"seed": seed}) for seed in SEEDS]
    made = np.mean([served(GeneratedTraffic(question=question)) for question in asked], axis=0)
    requests, inputs, outputs, cached, mean, p95 = (made / np.where(seen > 0, seen, 1.0)).tolist()
    assert requests == pytest.approx(1, abs=0.04)
    assert inputs == pytest.approx(1, abs=0.05)
    assert outputs == pytest.approx(1, abs=0.05)
    assert cached == pytest.approx(1 if seen[3] else 0, abs=0.15)
    assert mean == pytest.approx(1, abs=0.2)
    assert p95 == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("name", CASES)
def test_lengths_of_a_fitted_trace_correlate_as_seen(name: str) -> None:
    trace = read_trace(PUBLIC_TRACES / name)
    fields = fitted_fields(trace)
    seen = np.corrcoef(trace.columns.input_tokens, trace.columns.output_tokens)[0, 1]
    found = []
    for seed in range(5):
        (made,) = GeneratedTraffic(question=parse_question(TrafficQuestion, fields | {"seed": seed})).batches()
        found.append(np.corrcoef(made.input_tokens, made.output_tokens)[0, 1])
    assert np.mean(found) == pytest.approx(seen, abs=0.03)
