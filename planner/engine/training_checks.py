"""What a training question may not ask: each fault with the field, why, and what would do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.sentences import Code, Noun, say
from planner.engine.training.layouts import AskedLayout, InvalidSize, invalid_sizes
from planner.engine.training.profile import FrameworkProfile
from planner.engine.training.work import ModelWork
from planner.engine.training_limits import deadline_of
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_remarks import MINUTES_PER_DAY

SIZE_SLACK = 0.02
"""Tied embeddings and towers make small differences between models of one size."""
VOCABULARY_SLACK = 0.02
"""Vocabularies are padded differently; a larger difference is another tokenizer."""
SHARDING_WORDS = {
    "zero2": Noun("gradients"),
    "zero3": Noun("weights"),
    "hsdp": Noun("weights"),
}


def check_training(
    question: TrainingQuestion,
    arch: ModelArch,
    work: ModelWork,
    asked: AskedLayout,
    framework: FrameworkProfile,
    teacher: ModelArch | None,
    today: date,
) -> None:
    """Raise ``InvalidQuestion`` naming every field that asks for what model, method or framework can't do."""
    errors = [
        *_sizes(work, asked),
        *_context_length(question, arch),
        *_framework(question, asked, framework),
        *_teacher(question, arch, teacher),
        *_checkpoints(question, today),
    ]
    if errors:
        raise InvalidQuestion(errors)


def _fault(field: str, value: object, message: str, allowed: str) -> FieldError:
    return FieldError(field=field, value=value, message=message, allowed=allowed, code="invalid_layout")


def _sizes(work: ModelWork, asked: AskedLayout) -> Iterator[FieldError]:
    for fault in invalid_sizes(work, asked):
        allowed = say("one of: {sizes}", sizes=", ".join(str(size) for size in fault.valid))
        yield _fault(fault.field, fault.value, _why_not(fault, work), allowed)


def _why_not(fault: InvalidSize, work: ModelWork) -> str:
    """Why the model rules a size out."""
    if fault.field == "tensor_parallel":
        return say(
            "{size} does not divide {heads} query heads, {kv} KV heads (or a multiple of them) and MLP width {width}.",
            size=fault.value,
            heads=int(work.min_heads),
            kv=int(work.kv_heads),
            width=int(work.intermediate),
        )
    if fault.field == "pipeline_parallel":
        return say(
            "{layers} layers do not split evenly into {stages} stages.", layers=int(work.layers), stages=fault.value
        )
    if not work.experts:
        return say("The model has no experts.")
    return say("{experts} experts are not divisible by {size}.", experts=int(work.experts), size=fault.value)


def _context_length(question: TrainingQuestion, arch: ModelArch) -> Iterator[FieldError]:
    if arch.max_context and question.sequence_length > arch.max_context:
        yield FieldError(
            field="sequence_length",
            value=question.sequence_length,
            message=say("Longer than the model's context."),
            allowed=say("up to {most:,}", most=arch.max_context),
            code="context_too_long",
        )


def _framework(question: TrainingQuestion, asked: AskedLayout, framework: FrameworkProfile) -> Iterator[FieldError]:
    for field, size, kind, offered in (
        ("tensor_parallel", asked.tensor, Noun("tensor parallelism"), framework.tensor),
        ("pipeline_parallel", asked.pipeline, Noun("pipeline parallelism"), framework.pipelines),
        ("context_parallel", asked.context, Noun("context parallelism"), framework.context),
        ("expert_parallel", asked.expert, Noun("expert parallelism"), framework.experts),
    ):
        if size is not None and size > 1 and not offered:
            reason = say("{framework} has no {kind}.", framework=framework.label, kind=kind)
            yield _fault(field, size, reason, say("1, or another framework"))
    sharding = framework.default_sharding if question.sharding == "auto" else question.sharding
    if sharding not in framework.shardings:
        reason = say(
            "{framework} keeps whole {what} on every GPU.",
            framework=framework.label,
            what=SHARDING_WORDS.get(sharding, Noun("states")),
        )
        yield _fault("sharding", sharding, reason, say("one of: {sizes}", sizes=", ".join(framework.shardings)))
    elif (asked.pipeline or 1) > 1 and sharding not in framework.pipeline_shardings:
        reason = say(
            "{framework} does not combine {sharding} with pipeline stages.",
            framework=framework.label,
            sharding=Code(sharding),
        )
        allowed = say("one of: {sizes}", sizes=", ".join(framework.pipeline_shardings))
        yield _fault("sharding", sharding, reason, allowed)
    if question.pipeline_schedule == "interleaved" and not framework.interleaves:
        reason = say("{framework} has no {kind}.", framework=framework.label, kind=Noun("interleaved schedule"))
        yield _fault("pipeline_schedule", "interleaved", reason, say("one of: {sizes}", sizes="auto, 1f1b"))
    if question.pipeline_schedule == "zero_bubble" and not framework.zero_bubble:
        reason = say("{framework} has no {kind}.", framework=framework.label, kind=Noun("zero-bubble schedule"))
        yield _fault("pipeline_schedule", "zero_bubble", reason, say("auto, 1f1b, or framework fsdp2"))
    if question.offload == "states" and sharding not in ("zero3", "hsdp"):
        reason = say(
            "Weights are gathered from the host only where they are sharded; {sharding} keeps them whole.",
            sharding=Code(sharding),
        )
        yield _fault("offload", "states", reason, say("none, optimizer, or sharding zero3 or hsdp"))
    if question.gradient_compression == "1bit" and sharding not in ("none", "zero1"):
        reason = say(
            "Signs with error feedback need whole gradients on every rank; {sharding} cuts them.",
            sharding=Code(sharding),
        )
        yield _fault("gradient_compression", "1bit", reason, say("none, 8bit, or sharding none or zero1"))


def _teacher(question: TrainingQuestion, arch: ModelArch, teacher: ModelArch | None) -> Iterator[FieldError]:
    if question.method != "distillation":
        if question.teacher:
            yield _fault(
                "teacher",
                question.teacher,
                say("Only distillation has a teacher."),
                say("empty, or method distillation"),
            )
        return
    if teacher is None:
        yield FieldError(
            field="teacher",
            value=question.teacher,
            message=say("Name the model to learn from."),
            allowed=say("a catalog name or a Hugging Face id"),
            code="required",
        )
    elif abs(teacher.vocab / arch.vocab - 1.0) > VOCABULARY_SLACK:
        yield _fault(
            "teacher",
            question.teacher,
            say(
                "Its vocabulary of {teacher:,} is not the student's {student:,}: their logits can't be compared.",
                teacher=teacher.vocab,
                student=arch.vocab,
            ),
            say("a model with the student's tokenizer"),
        )
    else:
        yield from _smaller_teacher(question, arch, teacher)


def _smaller_teacher(question: TrainingQuestion, arch: ModelArch, teacher: ModelArch) -> Iterator[FieldError]:
    """A teacher knows at least as much as its student: one of its own size teaches too."""
    theirs, ours = count_parameters(teacher).total, count_parameters(arch).total
    if theirs < (1.0 - SIZE_SLACK) * ours:
        yield _fault(
            "teacher",
            question.teacher,
            say(
                "It has {teacher:.3g} B parameters, the student {student:.3g} B: a smaller model teaches nothing.",
                teacher=theirs / 1e9,
                student=ours / 1e9,
            ),
            say("a model of the student's size or larger"),
        )


def _checkpoints(question: TrainingQuestion, today: date) -> Iterator[FieldError]:
    """The first checkpoint comes before the run must be over."""
    minutes = question.checkpoint_minutes
    if minutes is None:
        return
    try:
        days = deadline_of(question, today).days
    except InvalidQuestion:
        return  # The deadline's own fault is told where it is read.
    if minutes >= days * MINUTES_PER_DAY:
        yield FieldError(
            field="checkpoint_minutes",
            value=minutes,
            message=say("The run must be over within {days:,g} days: it would save no checkpoint.", days=days),
            allowed=say("less than {minutes:,g} minutes", minutes=days * MINUTES_PER_DAY),
            code="out_of_range",
        )
