"""The inference search: what a buyer may rely on, on a catalog small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.errors import InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.inference_plan import plan_inference
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of
from tests.engine.answered import output_usd, tpot_ms
from tests.engine.small_catalog import TODAY, accelerator, snapshot


def plan(catalog: CatalogSnapshot | None = None, **raw: Any) -> InferencePlan:
    asked = {"model": "llama-3.1-8b", "requests_per_second": 10, **raw}
    question = parse_question(InferenceQuestion, asked)
    arch = find_model(str(asked["model"]))
    assert arch is not None
    return plan_inference(question, arch, catalog or snapshot(), serving_profiles(), memory_profile_of, TODAY)


def cheapest(catalog: CatalogSnapshot | None = None, **raw: Any) -> InferenceOption:
    return plan(catalog, **raw).options[0]


def test_cost_is_price_times_nodes_times_hours() -> None:
    for option in plan(requests_per_second=100).options:
        price, nodes = option.price, option.cluster.nodes
        assert price.usd_per_hour == price.usd_per_node_hour * nodes
        assert price.usd_per_month == price.usd_per_hour * 730
        assert price.usd_per_gpu_hour == price.usd_per_node_hour / Decimal(int(option.cluster.gpus_per_node))
        assert option.cluster.gpus_billed == nodes * option.cluster.gpus_per_node >= option.cluster.gpus_used


def test_bill_divides_into_input_and_output_tokens() -> None:
    option = cheapest(requests_per_second=3, input_tokens=1200, output_tokens=300)
    month_s = 730 * 3600
    bill = 3 * month_s / 1e6 * (1200 * float(option.usd_per_million_input) + 300 * output_usd(option))
    assert bill == pytest.approx(float(option.price.usd_per_month), rel=1e-4)
    tokens = 3 * month_s * 1500 / 1e6
    assert tokens * float(option.usd_per_million_tokens) == pytest.approx(float(option.price.usd_per_month), rel=1e-4)


@pytest.mark.parametrize("regime", [{}, {"batching": "dynamic"}, {"batching": "static"}, {"pools": "both"}])
def test_one_output_token_has_no_time_and_no_price_of_its_own(regime: dict[str, Any]) -> None:
    answer = plan(output_tokens=1, tpot_ms=0.1, **regime)
    assert answer.options
    for option in answer.options:
        assert set(option.speed.tpot_ms) == set(option.speed.ttft_ms)
        assert set(option.speed.tpot_ms.values()) == {None}
        assert option.usd_per_million_output is None
        bill = option.usd_per_million_input * Decimal(repr(answer.mean_requests_s * 1000 * 3600)) / 10**6
        assert float(bill) == pytest.approx(float(option.price.usd_per_hour), rel=1e-4)
        assert not [term for term in option.working if term.name.startswith("TPOT")]


def test_options_are_ranked_and_marked() -> None:
    options = plan(requests_per_second=200).options
    months = [option.price.usd_per_month for option in options]
    assert months == sorted(months)
    assert options[0].on_pareto_front
    front = [o for o in options if o.on_pareto_front]
    latency = [o.speed.ttft_ms["p95"] + 249 * tpot_ms(o, "p95") for o in front]
    assert latency == sorted(latency, reverse=True)


def test_memory_parts_and_free_sum_to_capacity() -> None:
    memory = cheapest().memory
    assert sum(memory.parts_gib.values()) + memory.free_gib == pytest.approx(memory.capacity_gib)
    assert memory.parts_gib["weights"] == pytest.approx(14.96 / 2 + 0.98, rel=0.15)


def test_working_sums_to_what_it_explains() -> None:
    option = cheapest()
    ttft = sum(term.value for term in option.working if term.group == "ttft")
    assert ttft == pytest.approx(option.speed.ttft_ms["mean"], rel=1e-6)
    month = next(term for term in option.working if term.group == "cost" and term.name == "month")
    assert month.value == pytest.approx(float(option.price.usd_per_month), rel=1e-6)


def test_limits_hold_for_every_option() -> None:
    for option in plan(requests_per_second=50, ttft_ms=300, tpot_ms=20, headroom=0.3).options:
        assert option.speed.ttft_ms["p95"] <= 300
        assert tpot_ms(option, "p95") <= 20
        assert option.speed.utilization <= 0.7 + 1e-9


def test_closed_loop_holds_its_clients() -> None:
    option = cheapest(requests_per_second=None, concurrency=500)
    assert option.speed.max_concurrency * 0.8 >= 500
    assert option.speed.concurrency == pytest.approx(500)


def test_spare_replicas_are_paid_for_and_not_counted_on() -> None:
    without, with_spare = cheapest(requests_per_second=300), cheapest(requests_per_second=300, spare_replicas=2)
    assert with_spare.price.usd_per_month > without.price.usd_per_month


@pytest.mark.parametrize(
    ("filters", "field", "value"),
    [
        ({"countries": ["SG"], "max_price_age_days": 30}, "max_price_age_days", "30"),
        ({"purchase_options": ["reserved_3y"]}, "purchase_options", "reserved_3y"),
    ],
)
def test_a_filter_that_empties_the_list_is_named(filters: dict[str, Any], field: str, value: str) -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(**filters)
    (error,) = caught.value.errors
    assert (error.field, error.value, error.code) == (field, value, "empty_filter")
    assert f"Without {field} = {value}, " in error.allowed


def test_unknown_filter_names_say_what_is_known() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(providers=["nobody"], countries=["XX"])
    assert {error.field: error.allowed for error in caught.value.errors} == {
        "providers": "acme",
        "countries": "ID, SG",
    }


def test_too_large_a_model_is_rejected_with_the_number() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-405b", "weight_formats": ["bf16"], "max_nodes": 1}
    answer = plan(**asked, requests_per_second=0.1)
    assert answer.options == ()
    memory = [r for r in answer.rejections if r.code == "memory"]
    assert memory
    for rejection in memory:
        assert rejection.value is not None
        assert rejection.limit is not None
        assert rejection.value > rejection.limit
    assert any(advice.field == "weight_formats" for advice in answer.advice)
    # At 10 requests a second a node of four-bit weights is too slow: more nodes alone help.
    assert [(advice.field, advice.value) for advice in plan(**asked).advice] == [
        ("max_nodes", 10),
        ("requests_per_second", 0.9),
    ]
    assert plan(**asked | {"max_nodes": 10}).options


def test_impossible_latency_is_rejected_with_the_best_there_is() -> None:
    answer = plan(tpot_ms=0.2)
    assert answer.options == ()
    slow = [r for r in answer.rejections if r.code == "tpot_slo"]
    assert slow
    assert all(r.value is not None and r.value > 0.2 and r.limit == 0.2 for r in slow)
    best = min(r.value for r in slow if r.value is not None)
    advice = next(a for a in answer.advice if a.field == "tpot_ms")
    assert isinstance(advice.value, int)
    assert plan(tpot_ms=advice.value).options
    assert advice.value >= best


def test_budget_keeps_out_what_costs_more() -> None:
    month = float(cheapest().price.usd_per_month)
    assert all(float(o.price.usd_per_month) <= month for o in plan(budget_usd_per_month=month).options)
    broke = plan(budget_usd_per_month=month / 2)
    assert broke.options == ()
    assert next(r for r in broke.rejections if r.code == "budget").value == pytest.approx(month)


def test_context_beyond_the_model_is_an_error() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(input_tokens=200_000)
    assert caught.value.errors[0].field == "input_tokens"
    assert "131,072" in caught.value.errors[0].allowed


def test_invalid_tensor_parallel_lists_the_valid_sizes() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(model="qwen2.5-7b", tensor_parallel=8)
    assert caught.value.errors[0].field == "tensor_parallel"
    assert caught.value.errors[0].allowed.startswith("1, 2, 4, 28")


def test_prices_carry_their_age() -> None:
    option = plan(countries=["SG"]).options[0]
    assert option.price.as_of == date(2026, 1, 1)
    assert option.price.age_days == 332
    assert option.price.is_stale


def test_an_engine_is_planned_only_where_it_runs() -> None:
    answer = plan(snapshot(card=replace(accelerator(), vendor="AMD")), engine="tensorrt_llm")
    assert answer.options == ()
    assert {r.code for r in answer.rejections} >= {"engine"}
    assert plan(engine="tensorrt_llm").options


def test_pipeline_stages_do_not_shorten_the_way_of_one_prompt() -> None:
    """One chunk passes the stages one after the other: TTFT of an idle replica hardly falls with their number."""
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "requests_per_second": 0.01, "tensor_parallel": 2}
    ttft = [
        min(o.speed.ttft_ms["mean"] for o in plan(**asked, pipeline_parallel=stages).options) for stages in (1, 2, 4)
    ]
    assert ttft[1] == pytest.approx(ttft[0], rel=0.15)
    assert ttft[2] == pytest.approx(ttft[0], rel=0.25)


def test_a_repack_is_planned_in_its_own_format() -> None:
    answer = plan(model="hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4")
    assert {option.weight_format for option in answer.options} == {"awq_int4"}
    assert any("read as Llama 3.1 70B" in line for line in answer.assumptions)


def test_an_average_is_no_offer() -> None:
    catalog = snapshot()
    first, *rest = catalog.offers
    cheap = replace(first, price_usd_per_node_hour=Decimal("0.01"), flags=("average",))
    answer = plan(replace(catalog, offers=(cheap, *rest)))
    assert all(option.price.usd_per_node_hour > 1 for option in answer.options)
    assert next(r for r in answer.rejections if r.code == "filter_real_offers").count == 1


def test_a_price_older_than_a_year_is_listed_but_not_recommended() -> None:
    catalog = snapshot()
    old = tuple(
        replace(o, as_of=date(2025, 4, 4), price_usd_per_node_hour=o.price_usd_per_node_hour / 10)
        if o.country == "SG"
        else o
        for o in catalog.offers
    )
    answer = plan(replace(catalog, offers=old))
    recommended = next(o for o in answer.options if o.id == answer.recommended)
    assert answer.options[0].cluster.country == "SG"
    assert recommended.cluster.country == "ID"
    assert recommended.price.age_days == 0


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(1.0, 3.0), rate=st.floats(0.5, 200))
def test_more_bandwidth_never_costs_more(factor: float, rate: float) -> None:
    base = accelerator()
    better = replace(base, memory_bandwidth_bytes_s=base.memory_bandwidth_bytes_s * factor)
    before, after = (cheapest(snapshot(card=card), requests_per_second=rate) for card in (base, better))
    assert after.price.usd_per_month <= before.price.usd_per_month


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(1.0, 3.0), tokens=st.integers(100, 20_000))
def test_more_memory_never_fits_less(factor: float, tokens: int) -> None:
    base = accelerator(memory_bytes=24 * 2**30)
    better = replace(base, memory_bytes=int(base.memory_bytes * factor))
    before, after = (plan(snapshot(card=card), input_tokens=tokens) for card in (base, better))
    assert after.options_found >= before.options_found or (
        after.options[0].price.usd_per_month <= before.options[0].price.usd_per_month
    )


@settings(max_examples=20, deadline=None)
@given(low=st.floats(0.1, 100), factor=st.floats(1.0, 10))
def test_more_load_never_costs_less(low: float, factor: float) -> None:
    less, more = cheapest(requests_per_second=low), cheapest(requests_per_second=low * factor)
    assert more.price.usd_per_month >= less.price.usd_per_month


def test_the_working_leads_to_tpot() -> None:
    option = plan(requests_per_second=20.0, input_tokens=1500, output_tokens=200).options[0]
    parts = {term.name: term.value for term in option.working if term.group == "tpot"}
    step_ms = sum(term.value for term in option.working if term.group == "step_time")
    assert parts["own_iteration"] == pytest.approx(step_ms)
    assert parts["prompts_between"] > 0
    assert sum(parts.values()) == pytest.approx(option.speed.tpot_ms["mean"])
    others: list[dict[str, Any]] = [{"output_tokens": 1}, {"speculation": "ngram"}, {"batching": "static"}]
    for other in (*others, {"pipeline_parallel": 2}):
        asked: dict[str, Any] = {"requests_per_second": 20.0, "input_tokens": 1500, "output_tokens": 200}
        answer = plan(**asked | other)
        assert not any(term.group == "tpot" for each in answer.options for term in each.working), other
