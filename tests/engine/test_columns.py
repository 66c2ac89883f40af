"""Candidates that are alike are sized once, and statistics of few are those of all."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.profiles import serving_profiles
from planner.engine import sizing
from planner.engine.columns import alike, taken
from planner.engine.serving import AdmissionLimits, ServingLoad, saturation_of, steady_state
from planner.engine.serving_coefficients import build_coefficients
from planner.engine.sizing import demand_of, size_replicas
from planner.engine.workload import InferenceQuestion
from tests.engine.serving_cases import LLAMA_8B, candidates

SIZES = (1, 2, 1, 4, 2, 1)
C = build_coefficients(LLAMA_8B, candidates(SIZES), serving_profiles())
LIMITS = AdmissionLimits(
    kv_sequences=np.array([60.0, 200.0, 60.0, 500.0, 200.0, 90.0]), max_num_seqs=256.0, max_num_batched_tokens=8192.0
)
LOAD = ServingLoad(kind="open", input_tokens=1500.0, output_tokens=200.0, requests_s=2.0)


def test_rows_alike_have_every_column_in_common() -> None:
    first, same = alike((C, LIMITS), len(SIZES))
    assert sorted(first.tolist()) == [0, 1, 3, 5]
    assert first[same].tolist() == [0, 1, 0, 3, 1, 5]


def test_sizes_are_those_of_candidates_by_themselves() -> None:
    question = InferenceQuestion(model="m", requests_per_second=40, ttft_ms=400, tpot_ms=20)
    demand = demand_of(question)
    found = size_replicas(C, LIMITS, question, demand)
    assert found.replicas[0] == found.replicas[2] > 1
    for row in range(len(SIZES)):
        only = np.array([row])
        alone = size_replicas(taken(C, only), taken(LIMITS, only), question, demand)
        assert found.replicas[row] == alone.replicas[0]
        assert found.estimate.ttft_s["p99"][row] == pytest.approx(alone.estimate.ttft_s["p99"][0], rel=1e-3)


@pytest.mark.parametrize("requests_s", [3, 40, 5000])
def test_steps_of_the_search_in_one_pass_lead_where_single_ones_do(
    monkeypatch: pytest.MonkeyPatch, requests_s: float
) -> None:
    question = InferenceQuestion(model="m", requests_per_second=requests_s, ttft_ms=60, tpot_ms=9, headroom=0.3)
    demand = demand_of(question)
    found = size_replicas(C, LIMITS, question, demand).replicas
    monkeypatch.setattr(sizing, "ROWS_A_PASS", 1)
    assert found.tolist() == size_replicas(C, LIMITS, question, demand).replicas.tolist()
    assert len(set(found.tolist())) > 1


@pytest.mark.parametrize("arrival_cv", [1.0, 2.0])
@pytest.mark.parametrize("input_tokens", [1500.0, 20_000.0])
def test_percentiles_of_some_candidates_are_those_of_all(arrival_cv: float, input_tokens: float) -> None:
    load = ServingLoad(
        kind="open", input_tokens=input_tokens, output_tokens=200.0, requests_s=0.5, arrival_cv=arrival_cv
    )
    found = steady_state(C, load, LIMITS)
    rows = np.array([4, 0, 0])
    some = found.ttft_s.take(rows).take(np.array([2, 0]))  # type: ignore[attr-defined]
    for name in ("mean", "p50", "p99"):
        assert some[name] == pytest.approx(found.ttft_s[name][[0, 4]], rel=1e-12)


def test_saturation_is_the_same_at_any_load() -> None:
    given = saturation_of(C, LOAD, LIMITS)
    known, found = steady_state(C, LOAD, LIMITS, given), steady_state(C, LOAD, LIMITS)
    assert known.capacity_requests_s.tolist() == found.capacity_requests_s.tolist()
    assert known.ttft_s["p95"].tolist() == found.ttft_s["p95"].tolist()
