"""What a training page draws and says of one option: scaling, stages, micro-batches, the cost of each axis."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from django.utils.translation import override

from frontend.answers.training import present_training
from frontend.answers.training_axes import step_costs
from frontend.answers.training_series_charts import deeper_charts, stages_chart
from planner.engine.answers import Layout, Term
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_series import MicroBatchPoint, ScalingPoint, StageMemory, TrainingSeries
from tests.factories import training_option, training_plan_factory

pytestmark = pytest.mark.django_db

SECONDS = {
    "compute": 6.0,
    "attention": 1.0,
    "tensor_comm": 0.5,
    "pipeline_bubble": 1.5,
    "recompute": 0.8,
    "straggler": 0.2,
}


def size(nodes: int, pace: float) -> ScalingPoint:
    rate = 1000.0 * pace
    return ScalingPoint(
        nodes=nodes,
        gpus=8 * nodes,
        layout=Layout(tensor=2, pipeline=4, expert=1, context=1, replicas=nodes),
        micro_batch=1,
        recompute="selective",
        sharding="zero1",
        step_s=10.0,
        tokens_per_s=rate * 8 * nodes,
        tokens_per_s_per_gpu=rate,
        efficiency=pace,
        mfu=0.4 * pace,
        goodput=0.95,
        days=100.0 / (nodes * pace),
        gpu_hours=100.0,
        usd=5e5 / pace,
        seconds=SECONDS,
    )


def stage(number: int, of: int, activations: float) -> StageMemory:
    parts = {"weights": 10.0, "optimizer": 20.0, "activations": activations}
    return StageMemory(
        stage=number,
        layers=8.0,
        has_embedding=number == 0,
        has_head=number == of - 1,
        in_flight=float(of - number),
        parts_gib=parts,
        total_gib=sum(parts.values()),
        capacity_gib=80.0,
    )


def series(stages: int = 4) -> TrainingSeries:
    return TrainingSeries(
        option="option-0",
        ranks=tuple(stage(n, stages, 40.0 - n) for n in range(stages)),
        scaling=tuple(size(nodes, pace) for nodes, pace in ((1, 1.0), (2, 0.98), (4, 0.9), (8, 0.75))),
        micro_batches=tuple(
            MicroBatchPoint(
                micro_batch=micro,
                recompute=degree,
                memory_gib=base * micro,
                capacity_gib=80.0,
                fits=base * micro <= 75.2,
                step_s=10.0,
                tokens_per_s=8000.0,
                tokens_per_s_per_gpu=rate + micro,
            )
            for degree, base, rate in (("none", 70.0, 1000.0), ("selective", 55.0, 950.0), ("full", 30.0, 800.0))
            for micro in (1, 2)
        ),
    )


@pytest.fixture
def option() -> TrainingOption:
    base = training_option(0)
    steps = tuple(
        Term(group="step_time", name=name, value=value, unit="s", formula="") for name, value in SECONDS.items()
    )
    return replace(
        base,
        layout=Layout(tensor=2, pipeline=4, expert=1, context=1, replicas=4),
        cluster=replace(base.cluster, nodes=4),
        recompute="selective",
        micro_batch=1,
        virtual_stages=2,
        working=(*steps, Term(group="run", name="checkpoint size", value=900.0, unit="GiB", formula="")),
    )


@pytest.fixture
def plan(option: TrainingOption) -> TrainingPlan:
    question = {"sequence_length": 8192, "method": "pretrain"}
    return replace(training_plan_factory(), options=(option,), question=question, critical_batch_tokens=8e6)


def test_strong_scaling_shows_every_size_beside_the_ideal(option: TrainingOption) -> None:
    scaling, _micro = deeper_charts(option, series())
    ideal, _line, points, ring = scaling.figure["data"]
    assert points["x"] == [8, 16, 32, 64]
    assert points["y"] == pytest.approx([8000, 15680, 28800, 48000])
    assert ideal["y"] == [8000.0, 64000.0]
    assert ring["x"] == [32]
    assert scaling.title == "8 times the GPUs, 6 times as fast: 100 days on 8, 16.7 on 64"
    assert scaling.twin is not None
    size_texts = ("8", "64", "TP2 · PP4 · DP8", "16.7", "666,667", "750", "75 %")
    assert scaling.twin.rows[-1] == (*size_texts, "15.0 %", "5.0 %", "8.0 %", "2.0 %")


def test_memory_is_drawn_by_stage_and_the_fullest_named() -> None:
    chart = stages_chart(series())
    assert chart.title == "Stage 1 is the fullest: 88 % of each GPU's 80 GiB"
    weights, optimizer, activations, free = chart.figure["data"]
    assert [weights["x"], optimizer["x"]] == [[10.0] * 4, [20.0] * 4]
    assert activations["x"] == [40.0, 39.0, 38.0, 37.0]
    assert [sum(bars) for bars in zip(*(t["x"] for t in chart.figure["data"]), strict=True)] == [80.0] * 4
    assert free["name"] == "Left free"
    assert weights["y"][0] == "Stage 1: 8 layers<br>+ embedding"
    assert chart.twin is not None
    assert len(chart.twin.rows) == 4
    many = stages_chart(series(stages=32))
    assert len(many.figure["data"][0]["x"]) == 8
    assert "24 stages between are not drawn." in many.note


def test_micro_batches_trade_memory_for_speed(option: TrainingOption) -> None:
    _scaling, micro = deeper_charts(option, series())
    assert micro.title == "Micro-batch 1, recompute none: 1,000 tok/s a GPU in 70 GiB; the leanest: 30 GiB"
    assert [part.label for part in micro.parts] == ["recompute: none", "recompute: selective", "recompute: full"]
    assert micro.figure["data"][-1]["x"] == [55.0]
    assert micro.figure["layout"]["shapes"][0]["x0"] == pytest.approx(0.94 * 80)
    assert micro.twin is not None
    assert [row[-1] for row in micro.twin.rows] == ["Yes", "No", "Yes", "No", "Yes", "Yes"]


def test_each_axis_says_what_it_costs(plan: TrainingPlan, option: TrainingOption) -> None:
    costs = step_costs(plan, option, series())
    assert costs.title == (
        "70 % of a step is arithmetic of the model; the largest other share is pipeline, PP4, 15.0 %"
    )
    axes = {axis.name: axis for axis in costs.axes}
    assert [axes[name].share for name in ("Pipeline, PP4", "Recompute", "Tensor, TP2", "Nodes")] == [
        "15.0 %", "8.0 %", "5.0 %", "2.0 %",
    ]  # fmt: skip
    assert "p = 4 stages and v = 2 chunks" in axes["Pipeline, PP4"].words
    assert "saves 15 GiB on each GPU" in axes["Recompute"].words
    assert "Context, CP1" not in axes
    assert [axis.meter for axis in costs.axes] == sorted((axis.meter for axis in costs.axes), reverse=True)


def test_the_batch_is_held_against_the_critical_one(plan: TrainingPlan, option: TrainingOption) -> None:
    notes = " ".join(step_costs(plan, option, None).notes)
    assert "4,194,304 tokens, 512 sequences" in notes
    assert "52 % of the critical batch of about 8M tokens: below it" in notes
    beyond = step_costs(replace(plan, critical_batch_tokens=1e6), option, None)
    assert "beyond it a larger batch hardly saves steps" in " ".join(beyond.notes)
    asked = replace(plan, question={**plan.question, "global_batch_tokens": 4_000_000.0})
    assert "You asked for 4,000,000" in " ".join(step_costs(asked, option, None).notes)
    tuned = replace(plan, question={**plan.question, "method": "lora"})
    assert "fine-tuning is rarely limited" in " ".join(step_costs(tuned, option, None).notes)


def test_failures_and_storage_are_told(plan: TrainingPlan, option: TrainingOption) -> None:
    speed = replace(option.speed, interruptions_per_day=0.5, checkpoint_interval_s=1800.0, goodput=0.9, days=10.0)
    stored = replace(option, speed=speed, usd_storage=Decimal("120.50"), spare_nodes=2)
    notes = " ".join(step_costs(replace(plan, stored_gib=5000.0), stored, None).notes)
    assert "About 5 interruptions during the run; a checkpoint of 900 GiB every 30 min." in notes
    assert "2 spare nodes are rented." in notes
    assert "Storing 5,000 GiB of checkpoints and data costs $121 of the total." in notes


def test_a_page_draws_the_option_looked_at_and_a_saved_plan_none(plan: TrainingPlan) -> None:
    asked: list[str] = []

    def of(chosen: TrainingOption) -> TrainingSeries:
        asked.append(chosen.id)
        return series()

    live = present_training(plan, {}, "", of)
    assert asked == [plan.options[0].id]
    assert [chart.id for chart in (*live.charts, *live.deeper)] == ["tradeoff", "memory", "bill", "scaling", "micro"]
    saved = present_training(plan, {}, "")
    assert saved.deeper == ()
    assert saved.costs is not None
    with override("id"):
        assert "hitungan model" in (present_training(plan, {}, "", of).costs or saved.costs).title
