"""Static and dynamic batching of answers, and offline jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.profiles import serving_profiles
from planner.engine.drained_batches import batch_s, batches_state
from planner.engine.serving import AdmissionLimits, ServingLoad, steady_state
from planner.engine.serving_coefficients import build_coefficients
from planner.engine.serving_cycle import Batching
from tests.engine.serving_cases import LLAMA_8B, candidates

C = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
LIMITS = AdmissionLimits(kv_sequences=400.0, max_num_seqs=32.0, max_num_batched_tokens=8192.0)


def open_load(rate: float, batching: Batching, **changes: float) -> ServingLoad:
    return ServingLoad(
        kind="open",
        input_tokens=500.0,
        output_tokens=200.0,
        requests_s=np.array([rate]),
        batching=batching,
        **changes,
    )


def test_capacity_of_static_batches() -> None:
    """N / (t_prefill + longest answer x t_step)."""
    load = open_load(1.0, "static")
    prefill = 32 * 500 / 8192 * C.iteration_s(0.0, 0.0, 8192.0, 8192.0 * 250.0)
    step = C.iteration_s(32.0, 32 * 600.0)
    assert batches_state(C, load, LIMITS).capacity_requests_s == pytest.approx(32 / (prefill + 199 * step))


def test_a_batch_lasts_as_long_as_its_longest_answer() -> None:
    even, _, _ = batch_s(C, open_load(1.0, "static"), LIMITS, np.array([32.0]))
    spread, prefill, _ = batch_s(C, open_load(1.0, "static", length_cv=0.5), LIMITS, np.array([32.0]))
    longest = 1 + 0.5 * np.sqrt(2 * np.log(32))
    assert (spread - prefill) / (even - prefill) == pytest.approx(longest)


def test_a_static_batch_waits_until_it_is_full() -> None:
    found = steady_state(C, open_load(0.5, "static"), LIMITS)
    assert float(found.ttft_s["mean"][0]) > 31 / 0.5 / 2
    dynamic = steady_state(C, open_load(0.5, "dynamic", batch_delay_s=0.05), LIMITS)
    assert float(dynamic.ttft_s["mean"][0]) < 1.5


def test_dynamic_batches_grow_with_the_load() -> None:
    sizes = [
        float(batches_state(C, open_load(rate, "dynamic", batch_delay_s=0.02), LIMITS).sequences[0])
        for rate in (0.1, 4.0, 10.0)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < 1.2
    assert sizes[-1] > 10


@given(st.floats(0.05, 0.97))
def test_a_dynamic_batch_holds_what_comes_while_the_last_is_served(share: float) -> None:
    capacity = float(batches_state(C, open_load(1.0, "dynamic"), LIMITS).capacity_requests_s[0])
    found = batches_state(C, open_load(share * capacity, "dynamic"), LIMITS)
    expected = max(1.0, share * capacity * float(found.batch_s[0]))
    assert float(found.sequences[0]) == pytest.approx(expected, rel=0.01)


@given(st.sampled_from(("static", "dynamic")), st.floats(0.05, 0.9))
def test_beyond_capacity_all_waits(batching: Batching, share: float) -> None:
    capacity = float(batches_state(C, open_load(1.0, batching), LIMITS).capacity_requests_s[0])
    below = steady_state(C, open_load(share * capacity, batching), LIMITS)
    above = steady_state(C, open_load(1.01 * capacity, batching), LIMITS)
    assert np.isfinite(below.ttft_s["p99"][0])
    assert float(below.requests_s[0]) == pytest.approx(share * capacity)
    assert np.isinf(above.ttft_s["mean"][0])
    assert float(above.requests_s[0]) == pytest.approx(capacity)


def test_continuous_batching_serves_more_of_scattered_answers() -> None:
    static = steady_state(C, open_load(1.0, "static", length_cv=1.0), LIMITS)
    continuous = steady_state(C, open_load(1.0, "continuous", length_cv=1.0), LIMITS)
    assert float(continuous.capacity_requests_s[0]) > 1.5 * float(static.capacity_requests_s[0])


def test_clients_of_a_closed_loop_queue_for_the_next_batch() -> None:
    def first(clients: float) -> float:
        load = ServingLoad(
            kind="closed", input_tokens=500.0, output_tokens=200.0, concurrency=clients, batching="static"
        )
        return float(steady_state(C, load, LIMITS).ttft_s["mean"][0])

    whole, _, _ = batch_s(C, open_load(1.0, "static"), LIMITS, np.array([32.0]))
    assert first(64) - first(32) == pytest.approx(float(whole[0]))
