"""The run a training question describes: tokens, batch, recipe; and how long it takes on a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.advice import Advice
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.sentences import say
from planner.engine.training.batch import (
    FINETUNE_BATCH_SEQUENCES,
    critical_batch_tokens,
    default_batch_sequences,
    final_loss,
    optimal_tokens,
)
from planner.engine.training.goodput import Reliability, goodput
from planner.engine.training.layouts import AskedLayout
from planner.engine.training.profile import FrameworkProfile, TrainingProfiles
from planner.engine.training.recipe import FROZEN_METHODS, RecipeSpec, is_eager, model_flops_per_token, recipe
from planner.engine.training.search_types import LayoutQuestion
from planner.engine.training.work import ModelWork, model_work
from planner.engine.training_checks import check_training
from planner.engine.training_limits import Deadline, checkpoint_gib, data_gib, deadline_of
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_remarks import FINETUNE_METHODS, Described, assumptions, remarks
from planner.engine.units import SECONDS_PER_HOUR

FloatArray = NDArray[np.float64]

ALL_DOCUMENT: Final = 1e12
ROUNDING: Final = 0.02
"""Share by which a batch may move to become whole sequences that divide."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What is to be trained; ``batch_sequences`` is what was asked or chosen."""

    arch: ModelArch
    work: ModelWork
    framework: FrameworkProfile
    tokens: float
    batch_sequences: float
    critical_tokens: float
    flops_per_token: float
    """Causal attention; a frozen base counts 2/3, a teacher its forward pass."""
    token_share: float
    """Of a sample's tokens, those that are no padding."""
    deadline: Deadline
    checkpoint_gib: float
    """One checkpoint."""
    stored_gib: float
    """Checkpoints kept, and the data."""
    layout_question: LayoutQuestion
    reliability: Reliability
    advice: tuple[Advice, ...]
    assumptions: tuple[str, ...]


def describe_run(
    question: TrainingQuestion,
    arch: ModelArch,
    profiles: TrainingProfiles,
    today: date,
    teacher: ModelArch | None = None,
) -> Run:
    """Complete the question; raises ``InvalidQuestion`` for what the model can't be asked."""
    work = model_work(arch)
    asked = AskedLayout(
        tensor=question.tensor_parallel,
        pipeline=question.pipeline_parallel,
        context=question.context_parallel,
        expert=question.expert_parallel,
        micro_batch=question.micro_batch,
    )
    framework = profiles.frameworks[profiles.question_frameworks[question.framework]]
    check_training(question, arch, work, asked, framework, teacher, today)
    counts = count_parameters(arch)
    tokens = question.tokens if question.tokens is not None else optimal_tokens(counts)
    critical = critical_batch_tokens(final_loss(counts.active, max(tokens, 1e6)))
    batch = _batch(question, critical, tokens)
    spec = RecipeSpec(
        method=question.method,
        precision=question.precision,
        optimizer=question.optimizer,
        sequence_length=question.sequence_length,
        global_batch=batch,
        lora_rank=question.lora_rank,
        document_tokens=_attended_tokens(question, profiles),
        year=float(today.year),
        eager=is_eager(question.method, framework),
        natural_routing=question.expert_routing == "natural",
        offload=question.offload,
        gradient_compression=question.gradient_compression,
    )
    teacher_work = None if teacher is None or question.method != "distillation" else model_work(teacher)
    asked_for = Described(
        arch=arch, tokens=tokens, batch=batch, critical=critical, framework=framework, profiles=profiles
    )
    numbers = recipe(spec, work, framework)
    checkpoint = checkpoint_gib(question, work, float(np.asarray(numbers.adapter_params)))
    return Run(
        arch=arch,
        work=work,
        framework=framework,
        tokens=tokens,
        batch_sequences=batch,
        critical_tokens=critical,
        flops_per_token=_flops_per_token(
            question, work, teacher_work, min(question.sequence_length, _attended_tokens(question, profiles))
        ),
        token_share=_token_share(question, profiles),
        deadline=deadline_of(question, today),
        checkpoint_gib=checkpoint,
        stored_gib=question.checkpoints_kept * checkpoint + data_gib(question, tokens),
        layout_question=LayoutQuestion(
            recipe=numbers,
            sequence_length=question.sequence_length,
            global_batch=batch,
            batch_is_fixed=question.global_batch_tokens is not None,
            asked=asked,
            sharding=question.sharding,
            recompute=question.recompute,
            framework=framework,
            schedule=question.pipeline_schedule,
            teacher=teacher_work,
        ),
        reliability=_reliability(question),
        advice=tuple(remarks(question, asked_for)),
        assumptions=tuple(assumptions(question, asked_for)),
    )


def _flops_per_token(question: TrainingQuestion, work: ModelWork, teacher: ModelWork | None, attended: float) -> float:
    """Model FLOPs of a token that looks over ``attended`` tokens: a frozen base counts 2/3, a teacher its forward."""
    flops = float(np.asarray(model_flops_per_token(work, attended)))
    if teacher is not None:
        flops += float(np.asarray(model_flops_per_token(teacher, attended))) / 3.0
    return flops * (2.0 / 3.0 if question.method in FROZEN_METHODS else 1.0)


def _attended_tokens(question: TrainingQuestion, profiles: TrainingProfiles) -> float:
    """Tokens that attention looks over: a document's where they are packed, else the whole sample's."""
    if question.packing == "padded":
        return ALL_DOCUMENT
    if question.document_tokens is not None:
        return question.document_tokens
    return profiles.finetune_document_tokens if question.method in FINETUNE_METHODS else ALL_DOCUMENT


def _token_share(question: TrainingQuestion, profiles: TrainingProfiles) -> float:
    """Share of a sample's tokens that are no padding."""
    if question.packing == "packed":
        return 1.0
    return min(1.0, (question.document_tokens or profiles.finetune_document_tokens) / question.sequence_length)


def _reliability(question: TrainingQuestion) -> Reliability:
    minutes = question.checkpoint_minutes
    return Reliability(
        gpu_hours_per_interruption=question.gpu_hours_per_interruption,
        restart_s=60.0 * question.restart_minutes,
        checkpoint_stall_s=question.checkpoint_stall_s,
        checkpoint_interval_s=None if minutes is None else 60.0 * minutes,
        spare_nodes=question.spare_nodes,
        replacement_s=60.0 * question.replacement_minutes,
        spot_per_node_day=question.spot_interruptions_per_node_day,
    )


def whole_sequences(asked: float) -> float:
    """The whole number of sequences meant by ``asked``: itself where it is whole, else near and easy to divide.

    Tokens that make no whole number of sequences are a round figure: of the numbers within 2 % the one that most
    powers of two divide is taken, so that it spreads over ranks.

    >>> whole_sequences(488.0), whole_sequences(488.28125), whole_sequences(1953.125), whole_sequences(0.3)
    (488.0, 480.0, 1920.0, 1.0)
    """
    if asked == int(asked):
        return max(1.0, asked)
    for power in range(int(asked).bit_length(), 0, -1):
        step = 1 << power
        near = float(round(asked / step) * step)
        if near and abs(near - asked) <= ROUNDING * asked:
            return near
    return max(1.0, float(round(asked)))


def chosen_batch(question: TrainingQuestion, arch: ModelArch, tokens: float) -> float:
    """Global batch in sequences of a run on ``tokens`` tokens."""
    critical = critical_batch_tokens(final_loss(count_parameters(arch).active, max(tokens, 1e6)))
    return _batch(question, critical, tokens)


def _batch(question: TrainingQuestion, critical: float, tokens: float) -> float:
    """Global batch in sequences: as asked (whole sequences), else from the critical batch."""
    if question.global_batch_tokens is not None:
        return whole_sequences(question.global_batch_tokens / question.sequence_length)
    if question.method in FINETUNE_METHODS:
        return FINETUNE_BATCH_SEQUENCES
    return default_batch_sequences(min(critical, tokens), question.sequence_length)


def stored_words(question: TrainingQuestion, run: Run) -> str:
    """What is stored, and what it costs."""
    return say(
        "Stored while the run goes on: {kept} checkpoints of {size:,.1f} GiB and {data:,.1f} GiB of data, at "
        "{usd:g} USD a GiB and month.",
        kept=question.checkpoints_kept,
        size=run.checkpoint_gib,
        data=data_gib(question, run.tokens),
        usd=question.storage_usd_per_gib_month,
    )


def useful_share(
    run: Run, question: TrainingQuestion, gpus: FloatArray, nodes: FloatArray, *, is_spot: bool
) -> FloatArray:
    """Share of wall time that advances the run: the asked goodput, or less where failures take more."""
    left = goodput(gpus, reliability_of(run, is_spot=is_spot), nodes)
    return np.minimum(question.goodput, np.asarray(left, dtype=np.float64))


def reliability_of(run: Run, *, is_spot: bool) -> Reliability:
    """How often nodes stop: spot nodes are taken back besides."""
    return run.reliability if is_spot else replace(run.reliability, spot_per_node_day=0.0)


def wall_hours(run: Run, tokens_per_s: FloatArray, useful: FloatArray) -> FloatArray:
    """Calendar hours of the run."""
    hours = run.tokens / (run.token_share * tokens_per_s) / np.maximum(useful, 1e-9) / SECONDS_PER_HOUR
    return np.asarray(hours, dtype=np.float64)
