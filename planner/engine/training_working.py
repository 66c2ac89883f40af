"""The working of one training option: every term of its sums, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Final

from planner.engine.answers import Cluster, GpuMemory, Price, Term
from planner.engine.sentences import say
from planner.engine.training.goodput import (
    Reliability,
    mean_time_to_interruption_s,
    stop_s,
    waste,
)
from planner.engine.training.search_types import BestLayouts
from planner.engine.training.step import StepTime, longest_resource
from planner.engine.training_answers import TrainingSpeed
from planner.engine.training_limits import checkpoint_bytes_per_param
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_run import Run
from planner.engine.units import GIB, HOURS_PER_MONTH, SECONDS_PER_HOUR

STEP_FORMULAS: Final = {
    "compute": say("2 (M N K + m0 N K + n0 M K + k0 M N) x passes / (efficiency x peak), layers and head"),
    "attention": say("causal FLOPs x 3.5 (forward, backward with recomputed scores) / (efficiency x 16-bit peak)"),
    "elementwise": say("bytes of norms, activations, residuals and casts / memory bandwidth"),
    "recompute": say("forward passes repeated in backward"),
    "tensor_comm": say("4 reductions a layer of s b h x 2 bytes, the share that compute does not hide"),
    "context_comm": say("keys and values passed around the context ring, the share that attention does not hide"),
    "expert_comm": say("dispatch and combine, forward and backward, the share that compute does not hide"),
    "pipeline_bubble": say("(p - 1) / v x one micro-batch, less what zero-bubble fills with weight gradients"),
    "pipeline_comm": say("activations handed between stages, the share that compute does not hide"),
    "data_comm": say("gradients reduced and weights gathered, beyond what a micro-batch hides"),
    "optimizer": say("bytes of this rank's weights, gradients and states / memory bandwidth"),
    "offload": say("gradients to the host and weights back / PCIe, states read and written / host memory bandwidth"),
    "teacher": say("one forward pass of the teacher a micro-batch"),
    "overhead": say("launches and host work a layer and a step"),
    "straggler": say("waiting for the slowest rank, a share for each doubling of nodes"),
}
MEMORY_FORMULAS: Final = {
    "weights": say("this rank's parameters x bytes, cut over the shard group where weights are sharded"),
    "gradients": say("this rank's trained parameters x bytes"),
    "optimizer": say("this rank's trained parameters x bytes of master and moments, over the shard group"),
    "activations": say("tokens a micro-batch x bytes a token and layer x layers x micro-batches in flight"),
    "logits": say("tokens a micro-batch x vocabulary / TP x bytes"),
    "gathered": say("whole layers gathered from shards, or copies in the matrix-multiplication format"),
    "overhead": say("driver context, communication library, allocator fragmentation"),
}
TIGHT_SHARE: Final = 0.05


def step_limit(best: BestLayouts, place: int, recompute: str, memory: GpuMemory) -> str:
    """The resource that binds: memory where it forces recomputation, else where most of the step goes."""
    if recompute == "full" or memory.free_gib < TIGHT_SHARE * memory.capacity_gib:
        return "memory"
    return longest_resource(best.step, place)


def working(
    best: BestLayouts,
    place: int,
    run: Run,
    question: TrainingQuestion,
    speed: TrainingSpeed,
    cluster: Cluster,
    hours: Decimal,
    price: Price,
    usd_nodes: Decimal,
    usd_storage: Decimal,
    reliability: Reliability,
) -> Iterator[Term]:
    """Every term of one option: step, memory, run and cost."""
    for field in fields(StepTime):
        seconds = float(getattr(best.step, field.name)[place])
        if seconds:
            yield Term(group="step_time", name=field.name, value=seconds, unit="s", formula=STEP_FORMULAS[field.name])
    for name, formula in MEMORY_FORMULAS.items():
        value = float(getattr(best.memory, name)[place]) / GIB
        if value:
            yield Term(group="memory", name=name, value=value, unit="GiB", formula=formula)
    batch = float(best.global_batch[place]) * question.sequence_length
    yield from _run_terms(run, question, speed, cluster, hours, batch, reliability)
    yield Term(
        group="cost",
        name="nodes",
        value=float(usd_nodes),
        unit="USD",
        formula=say(
            "{nodes} nodes x {usd} USD/h x {hours} h",
            nodes=cluster.nodes + question.spare_nodes,
            usd=price.usd_per_node_hour,
            hours=hours,
        ),
    )
    yield Term(
        group="cost",
        name="storage",
        value=float(usd_storage),
        unit="USD",
        formula=say(
            "{gib:,.1f} GiB x {usd:g} USD a GiB and month x {hours} h / {month} h",
            gib=run.stored_gib,
            usd=question.storage_usd_per_gib_month,
            hours=hours,
            month=HOURS_PER_MONTH,
        ),
    )


def _run_terms(
    run: Run,
    question: TrainingQuestion,
    speed: TrainingSpeed,
    cluster: Cluster,
    hours: Decimal,
    batch: float,
    reliability: Reliability,
) -> Iterator[Term]:
    gpus, nodes = float(cluster.gpus_used), float(cluster.nodes)
    mtti_h = float(mean_time_to_interruption_s(gpus, reliability, nodes)) / SECONDS_PER_HOUR
    yield Term(
        group="run",
        name="wall time",
        value=float(hours),
        unit="h",
        formula=say(
            "{tokens:,.0f} tokens / {batch:,.0f} a step x {step:.4g} s / goodput {goodput:.3f} / 3600",
            tokens=run.tokens,
            batch=run.token_share * batch,
            step=speed.step_s,
            goodput=speed.goodput,
        ),
    )
    yield Term(
        group="run",
        name="interruptions",
        value=speed.interruptions_per_day,
        unit="a day",
        formula=say(
            "24 x {gpus:,.0f} GPUs / {hours:,.0f} GPU-hours between failures + {nodes:,.0f} nodes x {taken:g} a day",
            gpus=gpus,
            hours=reliability.gpu_hours_per_interruption,
            nodes=nodes,
            taken=reliability.spot_per_node_day,
        )
        if reliability.spot_per_node_day
        else say(
            "24 x {gpus:,.0f} GPUs / {hours:,.0f} GPU-hours between failures",
            gpus=gpus,
            hours=reliability.gpu_hours_per_interruption,
        ),
    )
    stall = reliability.checkpoint_stall_s
    as_asked = reliability.checkpoint_interval_s is not None
    yield Term(
        group="run",
        name="checkpoint interval",
        value=speed.checkpoint_interval_s,
        unit="s",
        formula=say("as asked")
        if as_asked
        else say("sqrt(2 x {stall:g} s stall x {hours:,.1f} h between failures)", stall=stall, hours=mtti_h),
    )
    lost = waste(stall, speed.checkpoint_interval_s, mtti_h * SECONDS_PER_HOUR, stop_s(gpus, reliability, nodes))
    yield Term(
        group="run",
        name="lost to failures",
        value=float(lost),
        unit="share",
        formula=say("stall / interval + (interval / 2 + restart and wait) / time between failures"),
    )
    yield Term(
        group="run",
        name="checkpoint size",
        value=run.checkpoint_gib,
        unit="GiB",
        formula=say(
            "{bytes:g} bytes a trained parameter: 16-bit weights and the optimizer's states",
            bytes=checkpoint_bytes_per_param(question),
        ),
    )
