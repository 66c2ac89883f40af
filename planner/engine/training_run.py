"""The run a training question describes: tokens, batch, recipe; and how long it takes on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Advice
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.sentences import Noun, say
from planner.engine.training.batch import (
    FINETUNE_BATCH_SEQUENCES,
    critical_batch_tokens,
    default_batch_sequences,
    final_loss,
    optimal_tokens,
)
from planner.engine.training.goodput import Reliability, goodput
from planner.engine.training.layouts import AskedLayout, invalid_sizes
from planner.engine.training.profile import FrameworkProfile, TrainingProfiles
from planner.engine.training.recipe import FROZEN_METHODS, RecipeSpec, model_flops_per_token, recipe
from planner.engine.training.search import LayoutQuestion
from planner.engine.training.work import ModelWork, model_work
from planner.engine.units import SECONDS_PER_HOUR
from planner.engine.workload import TrainingQuestion

FloatArray = NDArray[np.float64]

LONGEST_DAYS: Final = 366.0
"""Options longer than a year are left out unless a deadline says otherwise."""
FINETUNE_METHODS: Final = frozenset({"full_finetune", "lora", "qlora"})
ALL_DOCUMENT: Final = 1e12


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
    """Causal attention; a frozen base counts 2/3."""
    longest_days: float
    layout_question: LayoutQuestion
    reliability: Reliability
    advice: tuple[Advice, ...]
    assumptions: tuple[str, ...]


def describe_run(question: TrainingQuestion, arch: ModelArch, profiles: TrainingProfiles, today: date) -> Run:
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
    _check(question, arch, work, asked, framework)
    counts = count_parameters(arch)
    tokens = question.tokens if question.tokens is not None else optimal_tokens(counts)
    critical = critical_batch_tokens(final_loss(counts.active, max(tokens, 1e6)))
    batch = _batch(question, critical, tokens)
    finetune = question.method in FINETUNE_METHODS
    spec = RecipeSpec(
        method=question.method,
        precision=question.precision,
        optimizer=question.optimizer,
        sequence_length=question.sequence_length,
        global_batch=batch,
        lora_rank=question.lora_rank,
        document_tokens=profiles.finetune_document_tokens if finetune else ALL_DOCUMENT,
        year=float(today.year),
    )
    flops = float(np.asarray(model_flops_per_token(work, question.sequence_length)))
    return Run(
        arch=arch,
        work=work,
        framework=framework,
        tokens=tokens,
        batch_sequences=batch,
        critical_tokens=critical,
        flops_per_token=flops * (2.0 / 3.0 if question.method in FROZEN_METHODS else 1.0),
        longest_days=question.finish_days or LONGEST_DAYS,
        layout_question=LayoutQuestion(
            recipe=recipe(spec, work, framework),
            sequence_length=question.sequence_length,
            global_batch=batch,
            batch_is_fixed=question.global_batch_tokens is not None,
            asked=asked,
            sharding=question.sharding,
            recompute=question.recompute,
            framework=framework,
        ),
        reliability=Reliability(),
        advice=tuple(_advice(question, batch * question.sequence_length, critical)),
        assumptions=tuple(_assumptions(question, arch, tokens, batch, critical, framework, profiles)),
    )


def _batch(question: TrainingQuestion, critical: float, tokens: float) -> float:
    """Global batch in sequences: as asked (whole sequences), else from the critical batch."""
    if question.global_batch_tokens is not None:
        return max(1.0, float(round(question.global_batch_tokens / question.sequence_length)))
    if question.method in FINETUNE_METHODS:
        return FINETUNE_BATCH_SEQUENCES
    return default_batch_sequences(min(critical, tokens), question.sequence_length)


def _check(
    question: TrainingQuestion, arch: ModelArch, work: ModelWork, asked: AskedLayout, framework: FrameworkProfile
) -> None:
    errors = [
        FieldError(
            field=fault.field,
            value=fault.value,
            message=fault.reason,
            allowed=say("one of: {sizes}", sizes=", ".join(str(size) for size in fault.valid)),
            code="invalid_layout",
        )
        for fault in invalid_sizes(work, asked)
    ]
    if arch.max_context and question.sequence_length > arch.max_context:
        errors.append(
            FieldError(
                field="sequence_length",
                value=question.sequence_length,
                message=say("Longer than the model's context."),
                allowed=say("up to {most:,}", most=arch.max_context),
                code="context_too_long",
            )
        )
    if asked.pipeline is not None and asked.pipeline > 1 and not framework.pipelines:
        errors.append(
            FieldError(
                field="pipeline_parallel",
                value=asked.pipeline,
                message=say("{framework} has no pipeline parallelism.", framework=framework.label),
                allowed=say("1, or another framework"),
                code="invalid_layout",
            )
        )
    if errors:
        raise InvalidQuestion(errors)


def _advice(question: TrainingQuestion, batch_tokens: float, critical: float) -> list[Advice]:
    if question.global_batch_tokens is None or batch_tokens <= critical or question.method in FINETUNE_METHODS:
        return []
    return [
        Advice(
            field="global_batch_tokens",
            suggestion=say(
                "{asked:,.1f} M tokens a step are more than the critical batch of {critical:,.1f} M: "
                "more GPUs stop saving steps.",
                asked=batch_tokens / 1e6,
                critical=critical / 1e6,
            ),
            value=f"{critical:.0f}",
        )
    ]


def _assumptions(
    question: TrainingQuestion,
    arch: ModelArch,
    tokens: float,
    batch: float,
    critical: float,
    framework: FrameworkProfile,
    profiles: TrainingProfiles,
) -> list[str]:
    lines: list[str] = [
        say(
            "Framework profile: {framework}; constants fitted on {basis}.",
            framework=framework.label,
            basis=Noun(profiles.fitted_on),
        )
    ]
    if question.tokens is None:
        lines.append(say("Compute-optimal data: 20 tokens a parameter, {tokens:,.0f} tokens.", tokens=tokens))
    if question.global_batch_tokens is None:
        basis = (
            say("a usual fine-tuning batch")
            if question.method in FINETUNE_METHODS
            else say("within the critical batch of {tokens:,.1f} M tokens", tokens=critical / 1e6)
        )
        lines.append(say("Global batch about {sequences:,.0f} sequences: {basis}.", sequences=batch, basis=basis))
    if question.method in FINETUNE_METHODS:
        lines.append(
            say(
                "Packed documents of {tokens:,.0f} tokens on average; "
                "adapters on every linear layer where the base is frozen.",
                tokens=profiles.finetune_document_tokens,
            )
        )
    if question.finish_days is None:
        lines.append(say("Options longer than {days:.0f} days are left out.", days=LONGEST_DAYS))
    if any(group.kind == "moe" for group in arch.ffn):
        lines.append(say("Experts receive equal shares of the tokens; natural routing on real data takes longer."))
    lines.append(say("Goodput is the lesser of what was asked and what failures and checkpoints leave."))
    return lines


def useful_share(run: Run, question: TrainingQuestion, gpus: FloatArray) -> FloatArray:
    """Share of wall time that advances the run: the asked goodput, or less where failures take more."""
    return np.minimum(question.goodput, np.asarray(goodput(gpus, run.reliability), dtype=np.float64))


def wall_hours(run: Run, tokens_per_s: FloatArray, useful: FloatArray) -> FloatArray:
    """Calendar hours of the run."""
    hours = run.tokens / tokens_per_s / np.maximum(useful, 1e-9) / SECONDS_PER_HOUR
    return np.asarray(hours, dtype=np.float64)
