"""The training search: what a buyer may rely on, on a catalog small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.training_files import training_profiles
from planner.engine.errors import InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_plan import plan_training
from planner.engine.training_question import TrainingQuestion
from tests.engine.small_catalog import TODAY, accelerator, snapshot


def plan(catalog: CatalogSnapshot | None = None, **raw: Any) -> TrainingPlan:
    asked = {"model": "llama-3.1-8b", "tokens": 1e10, "max_nodes": 8, **raw}
    question = parse_question(TrainingQuestion, asked)
    arch = find_model(str(asked["model"]))
    assert arch is not None
    return plan_training(question, arch, catalog or snapshot(), training_profiles(), TODAY)


def term(option: TrainingOption, group: str, name: str) -> float:
    return next(t.value for t in option.working if t.group == group and t.name == name)


def test_cost_is_price_times_hours_times_nodes() -> None:
    options = plan().options
    assert options
    for option in options:
        hours = Decimal(repr(term(option, "run", "wall time")))
        exact = option.price.usd_per_node_hour * option.cluster.nodes * hours
        assert option.usd_total - option.usd_storage == exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
        assert option.speed.gpu_hours == pytest.approx(float(hours) * option.cluster.gpus_used)
        assert option.speed.days == pytest.approx(float(hours) / 24)


def test_options_are_ranked_by_cost_and_the_front_gets_faster() -> None:
    options = plan().options
    costs = [option.usd_total for option in options]
    assert costs == sorted(costs)
    assert options[0].on_pareto_front
    days = [option.speed.days for option in options if option.on_pareto_front]
    assert days == sorted(days, reverse=True)


def test_working_sums_to_what_it_explains() -> None:
    for option in plan().options:
        step = sum(t.value for t in option.working if t.group == "step_time")
        assert step == pytest.approx(option.speed.step_s)
        memory = option.memory
        assert sum(memory.parts_gib.values()) + memory.free_gib == pytest.approx(memory.capacity_gib)
        assert memory.free_gib > 0


def test_tokens_steps_and_time_agree() -> None:
    for option in plan(goodput=0.9).options:
        speed = option.speed
        assert speed.tokens_per_s == pytest.approx(option.global_batch_tokens / speed.step_s)
        assert speed.days * 86400 * 0.9 * speed.tokens_per_s == pytest.approx(1e10, rel=1e-3)
        assert speed.steps == -(-int(1e10) // option.global_batch_tokens)


def test_layout_fills_the_gpus_and_divides_the_batch() -> None:
    for option in plan(model="llama-3.1-70b").options:
        spread = option.layout
        assert spread.tensor * spread.pipeline * spread.context * spread.replicas == option.cluster.gpus_used
        sequences = option.global_batch_tokens // 8192
        assert sequences == spread.replicas * option.micro_batch * option.grad_accumulation


def test_deadline_and_budget_hold_and_the_rest_is_rejected() -> None:
    free = plan()
    days = sorted(option.speed.days for option in free.options)
    limit = days[len(days) // 2] * 1.001
    timed = plan(finish_days=limit)
    assert timed.options
    assert all(option.speed.days <= limit for option in timed.options)
    assert any(r.code == "finish_days" and r.limit == limit for r in timed.rejections)
    budget = float(free.options[0].usd_total) * 1.01
    dear = plan(budget_usd=budget)
    assert dear.options
    assert all(float(option.usd_total) <= budget for option in dear.options)
    assert any(r.code == "budget" and r.value is not None and r.value > budget for r in dear.rejections)


def test_nothing_left_says_which_limit_and_what_would_do() -> None:
    nothing = plan(budget_usd=1.0)
    assert not nothing.options
    advice = {item.field: item for item in nothing.advice}
    cheapest = float(plan().options[0].usd_total)
    assert advice["budget_usd"].value == pytest.approx(cheapest, rel=0.01)


def test_a_filter_that_empties_everything_is_named() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(purchase_options="capacity_block")
    (error,) = caught.value.errors
    assert error.field == "purchase_options"
    assert "offers are left" in error.allowed


def test_too_large_a_model_is_rejected_with_the_memory_it_needs() -> None:
    small = plan(model="llama-3.1-405b", max_nodes=1)
    memory = [r for r in small.rejections if r.code == "memory"]
    assert memory
    assert all(r.value is not None and r.limit is not None and r.value > r.limit for r in memory)


def test_asked_gpus_are_used() -> None:
    options = plan(gpus=16).options
    assert options
    assert {option.cluster.gpus_used for option in options} == {16}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"tensor_parallel": 3}, "tensor_parallel"),
        ({"pipeline_parallel": 7}, "pipeline_parallel"),
        ({"expert_parallel": 2}, "expert_parallel"),
        ({"sequence_length": 1_000_000}, "sequence_length"),
        ({"framework": "ddp", "pipeline_parallel": 2}, "pipeline_parallel"),
    ],
)
def test_what_the_model_cannot_do_is_an_error_that_names_the_field(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(**raw)
    (error,) = caught.value.errors
    assert error.field == field
    assert error.allowed


@pytest.mark.parametrize("method", ["pretrain", "continued", "full_finetune", "lora", "qlora"])
def test_every_method_is_planned(method: str) -> None:
    assert plan(method=method, sequence_length=4096).options


@pytest.mark.parametrize("optimizer", ["adamw_fp32", "adamw_bf16", "adamw_8bit", "sgd_momentum", "muon"])
@pytest.mark.parametrize("framework", ["megatron", "fsdp2", "ddp", "deepspeed", "jax"])
def test_every_optimizer_in_every_framework(optimizer: str, framework: str) -> None:
    # DDP keeps whole states on every GPU: only a small model fits.
    model = "llama-3.2-1b" if framework == "ddp" else "llama-3.1-8b"
    assert plan(model=model, optimizer=optimizer, framework=framework, max_nodes=4, recompute="full").options


def test_smaller_states_take_less_memory() -> None:
    def least(**raw: Any) -> float:
        return min(o.memory.capacity_gib - o.memory.free_gib for o in plan(gpus=8, micro_batch=1, **raw).options)

    assert least(optimizer="adamw_bf16") < least(optimizer="adamw_fp32")
    assert least(method="qlora") < least(method="lora") < least(method="full_finetune")


def test_a_batch_beyond_the_critical_one_is_remarked() -> None:
    advice = plan(global_batch_tokens=512 * 2**20).advice
    assert any(item.field == "global_batch_tokens" for item in advice)


def test_cards_of_one_architecture_reach_alike_shares_of_their_peak() -> None:
    """B200 and B300 run the same kernels; plain multiplications reach 78 and 79 % of the peak on them."""
    rates = {}
    for key, generation, memory, tdp_w in (
        ("b200-sxm", "Blackwell", 192_265_846_784, 1000),
        ("b300-sxm", "Blackwell Ultra", 288_400_343_040, 1100),
    ):
        card = replace(
            accelerator(key, memory_bytes=memory, bandwidth_bytes_s=7.7e12, bf16_flops=2250e12, link_bytes_s=900e9),
            generation=generation,
            tdp_w=tdp_w,
        )
        rates[key] = (
            plan(snapshot(card=card), gpus=64, micro_batch=1, tensor_parallel=2, recompute="none").options[0].speed.mfu
        )
    assert 1.0 < rates["b300-sxm"] / rates["b200-sxm"] < 1.2
