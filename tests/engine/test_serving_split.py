"""Split prefill and decode pools: laws and limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.profiles import serving_profiles
from planner.engine.serving_coefficients import build_coefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad
from planner.engine.serving_split import SplitPools, prompt_prefill_s, split_state
from planner.engine.step_time import step_time
from tests.engine.serving_cases import LLAMA_8B, candidates

LIMITS = AdmissionLimits(kv_sequences=300.0, max_num_seqs=256.0, max_num_batched_tokens=8192.0)


def pools(prefill: float, decode: float, transfer_bytes_s: float = 50e9) -> SplitPools:
    return SplitPools(
        prefill_replicas=prefill,
        decode_replicas=decode,
        transfer_bytes=2048 * 131_072.0,
        transfer_bytes_s=transfer_bytes_s,
    )


def closed(clients: float, requests: float | None = None) -> ServingLoad:
    return ServingLoad(kind="closed", input_tokens=2048.0, output_tokens=256.0, concurrency=clients, requests=requests)


def test_decoding_is_not_interrupted_by_prompts():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    found = split_state(c, closed(32.0), LIMITS, pools(1.0, 1.0))
    alone = step_time(c.step, found.decoding, found.decoding * (2048 + 128), 0.0, 0.0)
    assert found.tpot_s[0] == pytest.approx(float(alone[0]), rel=0.01)


@given(st.floats(1, 512), st.integers(1, 4), st.integers(1, 4))
def test_closed_loop_obeys_littles_law(clients, prefill, decode):
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    found = split_state(c, closed(clients), LIMITS, pools(float(prefill), float(decode)))
    residence = found.ttft_s[0] - c.request_s[0] + found.tpot_s[0] * 255
    assert found.requests_s[0] * residence == pytest.approx(clients, rel=0.02)


def test_throughput_never_exceeds_the_prefill_pool():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    roomy = AdmissionLimits(kv_sequences=4000.0, max_num_seqs=4000.0, max_num_batched_tokens=8192.0)
    found = split_state(c, closed(4000.0), roomy, pools(1.0, 8.0))
    most = 1.0 / prompt_prefill_s(c, closed(1.0), LIMITS, 4.0)
    assert found.requests_s[0] <= most[0]
    assert found.prefill_utilization[0] == pytest.approx(0.98, abs=0.03)


def test_more_prefill_replicas_lower_the_first_token():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    one, four = (split_state(c, closed(256.0), LIMITS, pools(n, 4.0)) for n in (1.0, 4.0))
    assert four.ttft_s[0] < one.ttft_s[0]
    assert four.output_tok_s[0] >= one.output_tok_s[0] * 0.99


def test_a_slow_network_delays_the_first_token_by_the_transfer():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    fast, slow = (split_state(c, closed(1.0), LIMITS, pools(1.0, 1.0, rate)) for rate in (50e9, 1e9))
    moved = 2048 * 131_072.0
    assert slow.ttft_s[0] - fast.ttft_s[0] == pytest.approx(moved / 1e9 - moved / 50e9, rel=0.05)


def test_an_open_loop_serves_what_is_asked_while_it_can():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    asked = ServingLoad(kind="open", input_tokens=2048.0, output_tokens=256.0, requests_s=np.array([2.0]))
    assert split_state(c, asked, LIMITS, pools(1.0, 1.0)).requests_s[0] == pytest.approx(2.0, rel=0.01)
