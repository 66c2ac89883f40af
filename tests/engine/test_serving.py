"""Steady state of continuous batching: laws, limits, regimes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.profiles import serving_profiles
from planner.engine.serving import LIMITS, AdmissionLimits, ServingLoad, capacity_within_slo, steady_state
from planner.engine.serving_coefficients import ServingCoefficients, build_coefficients
from planner.engine.step_time import step_terms, step_time
from tests.engine.serving_cases import LLAMA_8B, QWEN_30B_A3B, accelerator, candidates

LIMITS_8B = AdmissionLimits(kv_sequences=300.0, max_num_seqs=256.0, max_num_batched_tokens=8192.0)
MODELS = st.sampled_from([LLAMA_8B, QWEN_30B_A3B])
LENGTHS = st.tuples(st.integers(16, 16000), st.integers(2, 4000))
WORK = st.tuples(st.floats(0, 512), st.floats(1, 32000), st.floats(0, 8192))


def closed(isl: float, osl: float, clients: float) -> ServingLoad:
    return ServingLoad(kind="closed", input_tokens=float(isl), output_tokens=float(osl), concurrency=float(clients))


def opened(isl: float, osl: float, rate: float) -> ServingLoad:
    return ServingLoad(kind="open", input_tokens=float(isl), output_tokens=float(osl), requests_s=rate)


@given(MODELS, WORK, st.sampled_from([1, 2, 4]))
def test_terms_sum_to_the_step_time(arch, work, tp):
    sequences, context, prefill = work
    c = build_coefficients(arch, candidates((tp,)), serving_profiles()).step
    state = (sequences, sequences * context, prefill, prefill * context / 2)
    assert step_time(c, *state)[0] == pytest.approx(sum(float(t[0]) for t in step_terms(c, *state)), rel=1e-12)


@given(MODELS, WORK, st.floats(1.01, 4))
def test_more_bandwidth_or_flops_or_link_is_never_slower(arch, work, factor):
    sequences, context, prefill = work
    faster = {
        "bandwidth": accelerator(memory_bandwidth_bytes_s=3.35e12 * factor),
        "flops": accelerator(peak_flops={name: peak * factor for name, peak in accelerator().peak_flops.items()}),
    }
    cards = candidates((2, 2, 2), accelerators=(accelerator(), *faster.values()))
    times = step_time(
        build_coefficients(arch, cards, serving_profiles()).step,
        sequences,
        sequences * context,
        prefill,
        prefill * context,
    )
    assert times[1] <= times[0]
    assert times[2] <= times[0]
    links = candidates((4, 4))
    links.topology.link_bytes_s[1] *= factor
    with_link = step_time(build_coefficients(arch, links, serving_profiles()).step, sequences, 0.0, prefill, 0.0)
    assert with_link[1] <= with_link[0]


@given(LENGTHS, st.integers(1, 256), st.integers(1, 256))
def test_more_clients_never_lower_latency_and_throughput_never_falls(lengths, fewer, more):
    fewer, more = sorted((fewer, more))
    c = without_launches(build_coefficients(LLAMA_8B, candidates(), serving_profiles()))
    low = steady_state(c, closed(lengths[0], lengths[1], fewer), LIMITS_8B)
    high = steady_state(c, closed(lengths[0], lengths[1], more), LIMITS_8B)
    assert high.tpot_s["mean"][0] >= low.tpot_s["mean"][0] * (1 - 1e-3)
    assert high.ttft_s["mean"][0] >= low.ttft_s["mean"][0] * (1 - 1e-3)
    # Running sequences take room in the token budget, prompts their iterations: a hair is lost where prompts are all.
    assert high.output_tok_s[0] >= low.output_tok_s[0] * 0.99


def without_launches(c: ServingCoefficients) -> ServingCoefficients:
    """Iterations that no captured graph holds take as long as others.

    Where the host's launches last longer than the work, an iteration of more tokens than the largest graph holds is
    slower for everyone: 64 clients of 30 + 2 tokens then get a fifth less through than 48, simulated too.
    """
    return replace(c, step=c.step._replace(prefill_launch_s=0.0 * np.asarray(c.step.prefill_launch_s)))


@given(LENGTHS, st.integers(1, 256))
def test_launches_cost_no_more_than_one_for_every_iteration(lengths, clients):
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    least = steady_state(without_launches(c), closed(lengths[0], lengths[1], clients), LIMITS_8B)
    found = steady_state(c, closed(lengths[0], lengths[1], clients), LIMITS_8B)
    cycle_s = clients / found.requests_s[0] - clients / least.requests_s[0]
    launches = min(clients, lengths[1] + 2 + clients * (sum(lengths) / 8192)) * float(
        np.ravel(c.step.prefill_launch_s)[0]
    )
    assert -1e-9 <= cycle_s <= launches * 1.01


@given(LENGTHS, st.integers(1, 4000))
def test_closed_loops_get_no_more_through_than_their_capacity(lengths, clients):
    for pipeline in (1.0, 8.0):
        c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
        c = replace(c, step=c.step._replace(pipeline=np.array([pipeline])))
        estimate = steady_state(c, closed(lengths[0], lengths[1], clients), LIMITS_8B)
        assert estimate.requests_s[0] <= estimate.capacity_requests_s[0]
        residence = estimate.ttft_s["mean"][0] + estimate.tpot_s["mean"][0] * (lengths[1] - 1)
        assert estimate.requests_s[0] * residence == pytest.approx(clients, rel=0.01)
        late = [float(estimate.ttft_s[name][0]) for name in ("mean", "p90", "p95", "p99")]
        assert late == sorted(late)


def test_first_tokens_of_a_closed_loop_scatter():
    """One client meets nobody; of many, some meet a prompt or two before theirs and others twice as many as usual."""
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    alone, many = (steady_state(c, closed(1000, 250, clients), LIMITS_8B).ttft_s for clients in (1, 32))
    assert alone["p99"][0] == pytest.approx(alone["mean"][0])
    assert 1.3 < many["p99"][0] / many["mean"][0] < 2.0


@pytest.mark.parametrize("launches", [False, True])
@given(lengths=LENGTHS, less=st.floats(0.01, 0.95), more=st.floats(0.01, 0.95))
def test_more_load_never_lowers_latency(launches, lengths, less, more):
    """But for a percent or two where most iterations come to be launched without a graph, with prompts of a few tokens;
    and for the 95th percentile between the tokens of answers of a few, whose mean can't grow any more.
    """
    less, more = sorted((less, more))
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    c = c if launches else without_launches(c)
    capacity = float(steady_state(c, opened(lengths[0], lengths[1], 1e-6), LIMITS_8B).capacity_requests_s[0])
    low = steady_state(c, opened(lengths[0], lengths[1], less * capacity), LIMITS_8B)
    high = steady_state(c, opened(lengths[0], lengths[1], more * capacity), LIMITS_8B)
    for name in ("mean", "p95"):
        short = name == "p95" and lengths[1] < 20
        assert high.tpot_s[name][0] >= low.tpot_s[name][0] * (0.98 if launches or short else 0.999)
        assert high.ttft_s[name][0] >= low.ttft_s[name][0] * (0.98 if launches else 0.999)


@given(LENGTHS, st.integers(1, 4000))
def test_closed_loop_obeys_littles_law(lengths, clients):
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    c = replace(c, request_s=np.zeros(1), drain=np.ones(1))
    estimate = steady_state(c, closed(lengths[0], lengths[1], clients), LIMITS_8B)
    residence = estimate.ttft_s["mean"][0] + estimate.tpot_s["mean"][0] * (lengths[1] - 1)
    assert estimate.requests_s[0] * residence == pytest.approx(clients, rel=0.01)


@given(LENGTHS, st.integers(1, 256))
def test_throughput_stays_below_the_roofline(lengths, clients):
    isl, osl = lengths
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    estimate = steady_state(c, closed(isl, osl, clients), LIMITS_8B)
    weights_s = (8.03e9 - 128256 * 4096) * 2 / 3.35e12
    compute_s = 2 * 7.5e9 * (isl + osl) / 989e12
    assert estimate.requests_s[0] <= min(clients / (weights_s * osl), 1 / compute_s)


def test_saturation_is_a_cliff():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    limits = AdmissionLimits(kv_sequences=50.0, max_num_seqs=256.0, max_num_batched_tokens=8192.0)
    within, beyond = (steady_state(c, closed(5000, 500, clients), limits) for clients in (50, 250))
    assert beyond.ttft_s["mean"][0] > 20 * within.ttft_s["mean"][0]
    assert beyond.tpot_s["mean"][0] == pytest.approx(within.tpot_s["mean"][0], rel=0.05)
    assert beyond.output_tok_s[0] == pytest.approx(within.output_tok_s[0], rel=0.05)
    assert LIMITS[beyond.limit[0]] == "kv_memory"


def test_an_open_loop_beyond_capacity_never_settles():
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    capacity = float(steady_state(c, opened(1000, 250, 1e-6), LIMITS_8B).capacity_requests_s[0])
    estimate = steady_state(c, opened(1000, 250, 1.2 * capacity), LIMITS_8B)
    assert np.isinf(estimate.ttft_s["p95"][0])
    assert LIMITS[estimate.limit[0]] == "saturated"
    assert estimate.utilization[0] == pytest.approx(1.2)


def test_capacity_within_slo_meets_the_limits_and_not_much_less():
    c = build_coefficients(LLAMA_8B, candidates((1, 2, 4)), serving_profiles())
    load = opened(1000, 250, 0.0)
    rate = capacity_within_slo(c, load, LIMITS_8B, ttft_s=0.5, tpot_s=0.02, percentile="p95")
    assert (rate > 0).all()
    at = steady_state(c, replace(load, requests_s=rate), LIMITS_8B)
    beyond = steady_state(c, replace(load, requests_s=rate * 1.05), LIMITS_8B)
    assert (at.ttft_s["p95"] <= 0.5).all()
    assert (at.tpot_s["p95"] <= 0.02).all()
    assert ((beyond.ttft_s["p95"] > 0.5) | (beyond.tpot_s["p95"] > 0.02)).all()


def test_tensor_parallelism_over_pcie_gets_worse_when_the_batch_grows():
    nvlink = build_coefficients(LLAMA_8B, candidates((1, 8)), serving_profiles()).step
    pcie = build_coefficients(LLAMA_8B, candidates((1, 8), link="pcie"), serving_profiles()).step
    prefill = (0.0, 0.0, 8192.0, 8192.0 * 512)
    assert step_time(nvlink, *prefill)[1] < step_time(nvlink, *prefill)[0] / 2
    assert step_time(pcie, *prefill)[1] > step_time(pcie, *prefill)[0]


@settings(max_examples=20)
@given(st.floats(0, 0.9))
def test_a_prefix_cache_hit_never_slows(hit):
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    for clients in (1, 32):
        without = steady_state(c, closed(4000, 100, clients), LIMITS_8B)
        cached = steady_state(c, replace(closed(4000, 100, clients), prefix_cache_hit=hit), LIMITS_8B)
        assert cached.output_tok_s[0] >= without.output_tok_s[0] * (1 - 1e-9)
        if clients == 1:  # with more, shorter prompts share a step and may wait for each other
            assert cached.ttft_s["mean"][0] <= without.ttft_s["mean"][0] * (1 + 1e-9)


def test_small_token_budgets_take_more_iterations():
    """4,000 tokens in chunks of 64 are 63 iterations, whoever else decodes: 2.9 requests/s as simulated, not 15."""
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    rates = []
    for budget in (64, 256, 1024, 4096):
        limits = replace(LIMITS_8B, max_num_batched_tokens=float(budget))
        alone = steady_state(c, closed(4000, 250, 1), limits)
        assert alone.ttft_s["mean"][0] >= 4000 / budget * float(np.ravel(c.step.dense_weights_s)[0])
        rates.append(float(steady_state(c, opened(4000, 250, 1e-6), limits).capacity_requests_s[0]))
    assert rates[0] < rates[1] < rates[2]
    assert rates[2] == pytest.approx(rates[3], rel=0.15)


@pytest.mark.parametrize("lengths", [(3000, 1), (1, 1), (1000, 10), (1000, 250), (30_000, 3)])
@pytest.mark.parametrize("clients", [1, 64, 200])
def test_short_answers_obey_littles_law(lengths, clients):
    """Where others' prompts can't all pass while one decodes, one waits for them before."""
    c = build_coefficients(LLAMA_8B, candidates(), serving_profiles())
    estimate = steady_state(c, closed(lengths[0], lengths[1], clients), LIMITS_8B)
    residence = estimate.ttft_s["mean"][0] + estimate.tpot_s["mean"][0] * (lengths[1] - 1)
    assert estimate.requests_s[0] * residence == pytest.approx(clients, rel=0.01)
