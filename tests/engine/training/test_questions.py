"""Training questions: what is refused and why, what is said of a question, and how the run is reckoned."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.model_files import find_model
from catalog.training_files import training_profiles
from planner.engine.errors import InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_plan import plan_training
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_series import TrainingSeries, training_series
from tests.engine.small_catalog import TODAY, snapshot
from tests.engine.training.test_plan import plan, term


def taught(student: str, teacher: str, **raw: Any) -> TrainingPlan:
    asked = {"model": student, "tokens": 1e9, "max_nodes": 4, "method": "distillation", "teacher": teacher, **raw}
    found, learnt_from = find_model(student), find_model(teacher)
    assert found is not None
    question = parse_question(TrainingQuestion, asked)
    return plan_training(question, found, snapshot(), training_profiles(), TODAY, learnt_from)


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        ({"framework": "ddp", "tensor_parallel": 2}, "tensor_parallel", "no tensor parallelism"),
        ({"framework": "ddp", "context_parallel": 2}, "context_parallel", "no context parallelism"),
        ({"framework": "ddp", "sharding": "zero3"}, "sharding", "whole weights on every GPU"),
        ({"framework": "ddp", "sharding": "hsdp"}, "sharding", "whole weights on every GPU"),
        ({"framework": "ddp", "sharding": "zero2"}, "sharding", "whole gradients on every GPU"),
        ({"framework": "deepspeed", "sharding": "zero3", "pipeline_parallel": 2}, "sharding", "pipeline stages"),
        ({"framework": "deepspeed", "pipeline_schedule": "interleaved"}, "pipeline_schedule", "interleaved"),
        ({"framework": "megatron", "pipeline_schedule": "zero_bubble"}, "pipeline_schedule", "zero-bubble"),
        ({"framework": "fsdp2", "gradient_compression": "1bit"}, "gradient_compression", "whole gradients"),
        ({"method": "distillation"}, "teacher", "Name the model"),
        ({"teacher": "llama-3.1-70b"}, "teacher", "Only distillation"),
    ],
)
def test_a_framework_is_not_asked_for_what_it_does_not_have(raw: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(InvalidQuestion) as caught:
        plan(**raw)
    (error,) = caught.value.errors
    assert error.field == field
    assert says in error.message
    assert error.allowed


def test_ddp_spreads_data_only() -> None:
    options = plan(model="llama-3.2-1b", framework="ddp").options
    assert options
    for option in options:
        assert (option.layout.tensor, option.layout.pipeline, option.layout.context, option.sharding) == (
            1,
            1,
            1,
            "none",
        )


def test_a_batch_that_is_no_whole_number_of_sequences_is_said() -> None:
    rounded = plan(global_batch_tokens=1_000_000)
    assert rounded.global_batch_tokens == 120 * 8192
    (remark,) = [item for item in rounded.advice if item.field == "global_batch_tokens"]
    assert "1,000,000" in remark.suggestion
    assert "120 x 8,192 = 983,040" in remark.suggestion
    assert not plan(global_batch_tokens=128 * 8192).advice


def test_distillation_counts_the_teacher() -> None:
    alone = plan(model="llama-3.1-8b", tokens=1e9, max_nodes=4, gpus=16)
    learnt = taught("llama-3.1-8b", "llama-3.1-70b", gpus=16)
    assert learnt.options
    best, plain = learnt.options[0], alone.options[0]
    assert term(best, "step_time", "teacher") > 0
    assert best.speed.tokens_per_s < 0.5 * plain.speed.tokens_per_s
    # Three passes of the student and one of a teacher of nine times its size.
    assert learnt.flops_total / alone.flops_total == pytest.approx(1 + 70.55 / 8.03 / 3, rel=0.1)


def test_a_teacher_speaks_the_students_vocabulary() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        taught("llama-3.1-8b", "mistral-7b-v0.3" if find_model("mistral-7b-v0.3") else "Qwen3-32B")
    assert caught.value.errors[0].field == "teacher"


def test_padding_takes_its_share_of_the_time() -> None:
    packed = plan(gpus=8, document_tokens=2048, method="full_finetune", model="llama-3.2-1b").options[0]
    padded = plan(gpus=8, document_tokens=2048, method="full_finetune", model="llama-3.2-1b", packing="padded").options[
        0
    ]
    assert padded.speed.days > 3.9 * packed.speed.days
    assert padded.speed.steps == pytest.approx(4 * packed.speed.steps, rel=0.01)


def test_zero_bubble_is_asked_of_a_framework_that_has_it() -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-70b",
        "framework": "fsdp2",
        "gpus": 64,
        "pipeline_parallel": 4,
        "sharding": "zero2",
    }
    plain = plan(pipeline_schedule="1f1b", **asked).options[0]
    filled = plan(pipeline_schedule="zero_bubble", **asked).options[0]
    assert plain.virtual_stages == filled.virtual_stages == 1
    assert term(filled, "step_time", "pipeline_bubble") < 0.7 * term(plain, "step_time", "pipeline_bubble")


def test_spare_nodes_are_paid_and_save_the_wait() -> None:
    failing: dict[str, Any] = {
        "gpus": 64,
        "gpu_hours_per_interruption": 500,
        "replacement_minutes": 120,
        "goodput": 1.0,
    }
    without, spared = plan(**failing).options[0], plan(spare_nodes=2, **failing).options[0]
    assert spared.speed.goodput > without.speed.goodput + 0.05
    assert spared.price.usd_per_hour == without.price.usd_per_node_hour * (spared.cluster.nodes + 2)
    assert spared.cluster.gpus_billed == spared.cluster.gpus_used + 16
    hours = term(spared, "run", "wall time")
    nodes = spared.cluster.nodes + 2
    assert float(spared.usd_total - spared.usd_storage) == pytest.approx(
        float(spared.price.usd_per_node_hour) * nodes * hours, abs=0.01
    )


def test_spot_nodes_are_taken_back() -> None:
    both = plan(gpus=64, purchase_options="on_demand,spot", goodput=1.0, tokens=1e11)
    speeds = {o.cluster.purchase_option: o.speed for o in both.options if o.cluster.nodes == 8}
    assert speeds["spot"].interruptions_per_day == pytest.approx(speeds["on_demand"].interruptions_per_day + 0.8)
    assert speeds["spot"].goodput < speeds["on_demand"].goodput
    assert speeds["spot"].days > speeds["on_demand"].days


def test_a_405b_run_on_16384_gpus_is_interrupted_and_useful_as_published() -> None:
    """Llama 3 paper, table 5: 419 unexpected interruptions in 54 days; more than 90 % effective."""
    asked: dict[str, Any] = {"tokens": 15.6e12, "gpus": 16_384, "max_nodes": 2048, "finish_days": 200, "goodput": 1.0}
    option = plan(model="llama-3.1-405b", global_batch_tokens=2048 * 8192, **asked).options[0]
    assert option.speed.interruptions_per_day == pytest.approx(419 / 54, rel=0.001)
    assert 0.90 < option.speed.goodput < 0.93


def series(**raw: Any) -> tuple[TrainingPlan, TrainingSeries]:
    asked = {"model": "llama-3.1-70b", "tokens": 1e10, "max_nodes": 32, **raw}
    arch = find_model(str(asked["model"]))
    assert arch is not None
    question = parse_question(TrainingQuestion, asked)
    found = plan_training(question, arch, snapshot(), training_profiles(), TODAY)
    option = next(o for o in found.options if o.cluster.nodes > 1)
    return found, training_series(question, arch, snapshot(), training_profiles(), TODAY, option)


def test_series_agree_with_the_option_they_are_of() -> None:
    found, drawn = series(gpus=64, pipeline_parallel=4)
    option = next(o for o in found.options if o.cluster.nodes > 1)
    used = option.memory.capacity_gib - option.memory.free_gib
    assert max(rank.total_gib for rank in drawn.ranks) == pytest.approx(used)
    assert [rank.has_head for rank in drawn.ranks] == [False, False, False, True]
    same = next(p for p in drawn.scaling if p.gpus == 64)
    assert same.tokens_per_s == pytest.approx(option.speed.tokens_per_s)
    assert same.usd == pytest.approx(float(option.usd_total), rel=1e-3)
    assert sum(same.seconds.values()) == pytest.approx(same.step_s)
    own = next(
        p for p in drawn.micro_batches if p.micro_batch == option.micro_batch and p.recompute == option.recompute
    )
    assert own.fits
    assert own.memory_gib == pytest.approx(used)
    assert own.step_s == pytest.approx(option.speed.step_s)


def test_more_gpus_are_faster_and_each_does_less() -> None:
    _, drawn = series()
    assert len(drawn.scaling) >= 3
    gpus = [point.gpus for point in drawn.scaling]
    assert gpus == sorted(gpus)
    assert drawn.scaling[0].efficiency == 1.0
    speeds = [point.tokens_per_s for point in drawn.scaling]
    assert speeds == sorted(speeds)
    assert drawn.scaling[-1].efficiency < 1.05


def test_what_does_not_fit_is_told_a_way_that_helps() -> None:
    ddp = plan(model="llama-3.1-70b", framework="ddp", max_nodes=1)
    assert not ddp.options
    assert {item.field: item.value for item in ddp.advice}["framework"] == "fsdp2"
    whole = plan(model="llama-3.1-70b", sharding="none", tensor_parallel=1, pipeline_parallel=1, max_nodes=1)
    assert {item.field: item.value for item in whole.advice}["sharding"] == "auto"


def test_states_on_the_host_fit_where_they_did_not() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "framework": "fsdp2", "max_nodes": 1, "gpus": 8}
    assert not plan(**asked).options
    held = plan(offload="states", **asked).options[0]
    assert term(held, "step_time", "offload") > 0
    assert "optimizer" not in {t.name for t in held.working if t.group == "memory"}
    with pytest.raises(InvalidQuestion) as caught:
        plan(offload="states", framework="megatron")
    assert caught.value.errors[0].field == "offload"


def test_the_search_weighs_shards_inside_a_node_against_shards_over_all() -> None:
    """FSDP2 left to itself takes HSDP where memory allows and the network is what it waits for."""
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "framework": "fsdp2", "gpus": 64, "tensor_parallel": 1}
    free = plan(**asked).options[0]
    rates = {name: plan(sharding=name, **asked).options[0].speed.tokens_per_s for name in ("zero3", "hsdp")}
    assert free.speed.tokens_per_s == max(rates.values())
    assert free.sharding == max(rates, key=lambda name: rates[name])
    # 405B in nodes of 8 has no room for whole states in each: shards over all GPUs are left.
    large = plan(model="llama-3.1-405b", framework="fsdp2", gpus=64, max_nodes=8, sharding="hsdp", pipeline_parallel=1)
    assert not large.options
