"""Split pools in the search: both sides sized by their own limit, KV over the link, both billed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from catalog.profiles import serving_memory_profile, serving_profiles
from planner.engine.answers import InferenceOption, InferencePlan, PrefillPool
from planner.engine.candidates import enumerate_candidates
from planner.engine.errors import InvalidQuestion
from planner.engine.inference_evaluate import evaluate
from planner.engine.inference_plan import plan_inference
from planner.engine.kv_cache import kv_bytes_per_sequence
from planner.engine.offers import offer_table
from planner.engine.question_reading import parse_question
from planner.engine.serving_split import SplitPools, split_state
from planner.engine.sizing import demand_of, load_of
from planner.engine.split_pools import TransferRates
from planner.engine.split_sizing import size_split
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.answered import output_usd, tpot_ms
from tests.engine.published_models import published
from tests.engine.small_catalog import TODAY, snapshot


def plan(**raw: Any) -> InferencePlan:
    asked = {
        "model": "llama-3.1-8b",
        "requests_per_second": 40,
        "input_tokens": 2000,
        "weight_formats": ["bf16"],
        **raw,
    }
    question = parse_question(InferenceQuestion, {name: value for name, value in asked.items() if value is not None})
    return plan_inference(question, published(question.model), snapshot(), serving_profiles(), memory_profile_of, TODAY)


def cheapest(**raw: Any) -> InferenceOption:
    return plan(**{"pools": "split", **raw}).options[0]


def pool(option: InferenceOption) -> PrefillPool:
    assert option.prefill_pool is not None
    return option.prefill_pool


def test_cache_of_a_prompt_over_the_network() -> None:
    """An 8B's 8,192 tokens are 1.07 GB: 21 ms at 50 GB/s."""
    held = float(kv_bytes_per_sequence(published("llama-3.1-8b"), "bf16", 1, 1, 8192))
    assert held / 1e9 == pytest.approx(1.074, abs=0.001)
    option = cheapest(input_tokens=8192, tensor_parallel=1, kv_transfer_gb_s=50)
    assert pool(option).kv_transfer_ms == pytest.approx(21.5, abs=0.1)
    assert pool(option).kv_transfer_gib == 1.0


def test_prefill_replicas_follow_from_the_work_of_prompts() -> None:
    option = cheapest(tensor_parallel=1, headroom=0.2)
    found = pool(option)
    term = next(t for t in option.working if t.name == "prefill_replicas")
    busy = found.utilization * found.layout.replicas
    assert f"= {busy:.2f} replicas" in term.formula
    assert found.utilization <= 0.8
    assert found.layout.replicas - 1 < busy / 0.8 * 1.05 + 1


def test_decoding_is_undisturbed_and_obeys_littles_law() -> None:
    option = cheapest(tensor_parallel=1)
    replicas = option.layout.replicas
    step = sum(t.value for t in option.working if t.group == "step_time")
    assert tpot_ms(option, "mean") == pytest.approx(step)
    residents = option.speed.peak_requests_s / replicas * 249 * step / 1e3
    assert option.speed.concurrency / replicas == pytest.approx(residents, rel=0.01)


def test_ttft_is_prefill_transfer_front_end_and_waiting() -> None:
    option = cheapest()
    parts = {t.name: t.value for t in option.working if t.group == "ttft"}
    assert set(parts) == {"prefill", "kv_transfer", "front_end", "waiting"}
    assert sum(parts.values()) == pytest.approx(option.speed.ttft_ms["mean"])
    statistics = option.speed.ttft_ms
    assert statistics["p50"] <= statistics["p90"] <= statistics["p95"] <= statistics["p99"]


def test_each_limit_sizes_its_own_pool() -> None:
    asked: dict[str, Any] = {"tensor_parallel": 1, "max_options": 500}
    loose = cheapest(**asked)
    waiting = next(t.value for t in loose.working if t.name == "waiting")
    tight_ttft = cheapest(**asked, ttft_ms=(loose.speed.ttft_ms["mean"] - waiting) * 1.05)
    assert pool(tight_ttft).layout.replicas > pool(loose).layout.replicas
    assert tight_ttft.layout.replicas == loose.layout.replicas
    assert tight_ttft.limit == "ttft_slo"
    tight_tpot = cheapest(**asked, tpot_ms=tpot_ms(loose, "mean") * 0.8)
    assert tight_tpot.layout.replicas > loose.layout.replicas
    assert pool(tight_tpot).layout.replicas == pool(loose).layout.replicas
    assert tpot_ms(tight_tpot, "p95") <= tpot_ms(loose, "mean") * 0.8


def test_both_pools_are_billed_and_priced_by_their_gpus() -> None:
    option = cheapest()
    found = pool(option)
    decode_gpus = option.layout.replicas * option.layout.tensor * option.layout.pipeline
    assert found.gpus == found.layout.replicas * found.layout.tensor * found.layout.pipeline
    assert option.cluster.gpus_used == decode_gpus + found.gpus <= option.cluster.gpus_billed
    assert found.gpus_per_decode_gpu == pytest.approx(found.gpus / decode_gpus)
    assert option.price.usd_per_hour == option.price.usd_per_node_hour * option.cluster.nodes
    # Mean load 40 req/s of 2,000 and 250 tokens: the bill divides by pools.
    hour = 40 * 3600 / 1e6
    bill = hour * (2000 * float(option.usd_per_million_input) + 250 * output_usd(option))
    assert bill == pytest.approx(float(option.price.usd_per_hour), rel=1e-3)
    prefill_share = hour * 2000 * float(option.usd_per_million_input) / float(option.price.usd_per_hour)
    assert prefill_share == pytest.approx(found.gpus / option.cluster.gpus_used, rel=0.01)


def test_a_slow_network_delays_the_first_token_only() -> None:
    fast, slow = (cheapest(tensor_parallel=1, kv_transfer_gb_s=rate) for rate in (50, 1))
    delay = slow.speed.ttft_ms["mean"] - fast.speed.ttft_ms["mean"]
    held_gb = 131_072 * 2000 / 1e9
    assert delay == pytest.approx((held_gb / 1 - held_gb / 50) * 1e3, rel=0.02)
    assert slow.speed.tpot_ms == fast.speed.tpot_ms
    missed = plan(pools="split", tensor_parallel=1, kv_transfer_gb_s=0.1, ttft_ms=1000)
    assert missed.options == ()
    assert "ttft_slo" in {r.code for r in missed.rejections}


def test_pools_may_differ_in_layout() -> None:
    options = plan(model="llama-3.1-70b", pools="split", requests_per_second=5, max_options=500).options
    layouts = {(o.layout.tensor, pool(o).layout.tensor) for o in options}
    assert any(decode != prefill for decode, prefill in layouts)
    assert len({o.id for o in options}) == len(options)


def test_both_kinds_compete_on_one_front() -> None:
    asked: dict[str, Any] = {"requests_per_second": 1, "max_options": 500}
    both = plan(pools="both", **asked)
    alone = [plan(pools=kind, **asked).options[0].price.usd_per_month for kind in ("together", "split")]
    assert both.options[0].price.usd_per_month == min(alone)
    kinds = {o.prefill_pool is None for o in both.options}
    assert kinds == {True, False}
    for option in both.options:
        expected = "calibrated" if option.prefill_pool is None else "extrapolated"
        assert option.confidence.kind == expected


def test_a_closed_loop_holds_its_clients() -> None:
    option = cheapest(requests_per_second=None, concurrency=400, tensor_parallel=1)
    assert option.speed.max_concurrency * 0.8 >= 400
    whole = (option.speed.ttft_ms["mean"] + 249 * tpot_ms(option, "mean")) / 1e3
    assert option.speed.output_tok_s / 250 * whole == pytest.approx(400, rel=0.1)


def test_attention_ranks_prefill_side_by_side() -> None:
    """Eight ranks beside eight-way experts take eight prompts in about the time of one: their pool is no larger."""
    asked: dict[str, Any] = {"model": "qwen3-30b-a3b", "pools": "split", "requests_per_second": 40, "headroom": 0.2}
    apart = plan(**asked, attention_ranks="data", expert_parallel=8).options[0]
    tensor = plan(**asked, tensor_parallel=8, expert_parallel=8).options[0]
    assert pool(apart).gpus <= pool(tensor).gpus
    assert pool(apart).utilization <= 0.80


def test_without_headroom_the_prefill_pool_still_settles() -> None:
    """Prompts that don't fill a step take more than those that do: the pool must hold them all the same."""
    for tokens in (100, 700, 5000):
        option = cheapest(headroom=0, requests_per_second=77, input_tokens=tokens, tensor_parallel=1)
        assert pool(option).utilization < 1
        assert np.isfinite(option.speed.ttft_ms["p99"])


def test_more_load_never_costs_less() -> None:
    bills = [cheapest(requests_per_second=rate).price.usd_per_month for rate in np.geomspace(1, 300, 8).tolist()]
    assert bills == sorted(bills)
    assert isinstance(bills[0], Decimal)


def test_what_does_not_go_together_is_refused() -> None:
    for changes in ({"batching": "static"}, {"requests_per_second": None, "offline_requests": 9, "offline_hours": 1}):
        with pytest.raises(InvalidQuestion) as caught:
            plan(pools="split", **changes)
        assert [e.field for e in caught.value.errors] == ["pools"]


def test_sized_pools_run_as_the_closed_form_of_split_pools_says() -> None:
    """The search's sizing and the law that published split deployments are replayed with: one deployment, two ways."""
    asked = InferenceQuestion(
        model="llama-3.1-8b",
        requests_per_second=40,
        peak_factor=1,
        input_tokens=2000,
        output_tokens=250,
        tensor_parallel=1,
        weight_formats=("bf16",),
        pools="split",
    )
    arch, profiles = published("llama-3.1-8b"), serving_profiles()
    shapes = offer_table(snapshot()).shapes
    found = evaluate(
        arch, shapes, enumerate_candidates(arch, shapes, asked), asked, profiles, serving_memory_profile("vllm")
    )
    count = len(found.candidates)
    held = np.full(count, 131_072.0 * 2000)
    rate = np.full(count, 50e9)
    rates = TransferRates(prompt_bytes=held, network_bytes_s=rate, link_bytes_s=rate, domain_gpus=np.zeros(count))
    demand = demand_of(asked, 16)
    sized = size_split(found, asked, demand, rates)
    own = np.flatnonzero(sized.rows == np.arange(len(sized.rows)))
    kept = found.take(sized.rows[own])
    pools = SplitPools(
        prefill_replicas=sized.prefill.replicas[own].astype(float),
        decode_replicas=sized.sizing.replicas[own].astype(float),
        transfer_bytes=held[own],
        transfer_bytes_s=50e9,
    )
    load = replace(load_of(asked, demand, 1.0), requests_s=np.full(len(own), 40.0))
    law = split_state(kept.coefficients, load, kept.limits, pools)
    estimate = sized.sizing.estimate
    assert estimate.tpot_s["mean"][own] == pytest.approx(law.tpot_s, rel=1e-3)
    assert estimate.ttft_s["mean"][own] == pytest.approx(law.ttft_s, rel=1e-3)
    assert estimate.requests_s[own] * sized.sizing.replicas[own] == pytest.approx(law.requests_s, rel=1e-3)
