"""What a training answer says of its own question: assumptions made, and remarks on what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from planner.engine.advice import Advice
from planner.engine.cost import recommended
from planner.engine.model_arch import ModelArch
from planner.engine.sentences import Noun, say
from planner.engine.training.profile import FrameworkProfile, TrainingProfiles
from planner.engine.training.recipe import is_eager
from planner.engine.training_answers import TrainingOption
from planner.engine.training_question import TrainingQuestion

MINUTES_PER_DAY: Final = 24.0 * 60.0
LONGEST_DAYS: Final = 366.0
"""Options longer than a year are left out unless a deadline says otherwise."""
FINETUNE_METHODS: Final = frozenset({"full_finetune", "lora", "qlora"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Described:
    """A question completed: what the sentences are about."""

    arch: ModelArch
    tokens: float
    batch: float
    """Sequences a step."""
    critical: float
    """Tokens."""
    framework: FrameworkProfile
    profiles: TrainingProfiles


def remarks(question: TrainingQuestion, run: Described) -> Iterator[Advice]:
    """A batch beyond the critical one, and a batch that was no whole number of sequences."""
    if question.global_batch_tokens is None:
        return
    batch_tokens = run.batch * question.sequence_length
    if batch_tokens != question.global_batch_tokens:
        yield Advice(
            field="global_batch_tokens",
            suggestion=say(
                "{asked:,.0f} tokens a step are no whole number of sequences: counted with "
                "{sequences:,.0f} x {length:,} = {tokens:,.0f}.",
                asked=question.global_batch_tokens,
                sequences=run.batch,
                length=question.sequence_length,
                tokens=batch_tokens,
            ),
            value=int(batch_tokens),
        )
    if batch_tokens > run.critical and question.method not in FINETUNE_METHODS:
        whole = int(run.critical // question.sequence_length) * question.sequence_length
        yield Advice(
            field="global_batch_tokens" if whole else "",
            suggestion=say(
                "{asked:,.1f} M tokens a step are more than the critical batch of {critical:,.1f} M: "
                "more GPUs stop saving steps.",
                asked=batch_tokens / 1e6,
                critical=run.critical / 1e6,
            ),
            value=whole or None,
        )


def no_checkpoint(question: TrainingQuestion, options: Sequence[TrainingOption]) -> Iterator[Advice]:
    """A warning where the recommended run is over before the first checkpoint of the interval asked for."""
    chosen = next((option for option in options if option.id == recommended(options)), None)
    if chosen is None or question.checkpoint_minutes is None:
        return
    minutes = chosen.speed.days * MINUTES_PER_DAY
    if question.checkpoint_minutes < minutes:
        return
    said = say(
        "Warning: the recommended run takes {run:,.0f} minutes and would save its first checkpoint after {asked:,g}: "
        "every interruption starts it anew.",
        run=minutes,
        asked=question.checkpoint_minutes,
    )
    yield Advice(field="checkpoint_minutes", suggestion=said, is_warning=True)


def assumptions(question: TrainingQuestion, run: Described) -> Iterator[str]:
    """Every assumption behind the numbers, in sentences."""
    finetunes = question.method in FINETUNE_METHODS
    yield say(
        "Framework profile: {framework}; constants fitted on {basis}.",
        framework=run.framework.label,
        basis=Noun(run.profiles.fitted_on),
    )
    if question.tokens is None:
        yield say("Compute-optimal data: 20 tokens a parameter, {tokens:,.0f} tokens.", tokens=run.tokens)
    yield from _batch(question, run, finetunes)
    yield from _data(question, run, finetunes)
    if question.method == "distillation":
        yield say("The teacher runs forward on every token, in 16 bit, spread over the same GPUs as the student.")
    if question.finish_days is None and question.finish_by is None:
        yield say("Options longer than {days:.0f} days are left out.", days=LONGEST_DAYS)
    if any(group.kind == "moe" for group in run.arch.ffn):
        yield (
            say("Experts receive equal shares of the tokens; natural routing on real data takes longer.")
            if question.expert_routing == "balanced"
            else say("Experts receive what the router gives them, slowed as measured on real data.")
        )
    yield say("Goodput is the lesser of what was asked and what failures and checkpoints leave.")
    if "spot" in question.purchase_options:
        yield say(
            "Spot nodes are taken back {times:g} times a node and day.", times=question.spot_interruptions_per_node_day
        )


def _batch(question: TrainingQuestion, run: Described, finetunes: bool) -> Iterator[str]:
    if question.global_batch_tokens is not None:
        yield say(
            "Global batch of {sequences:,.0f} whole sequences of {length:,} tokens.",
            sequences=run.batch,
            length=question.sequence_length,
        )
        return
    basis = (
        say("a usual fine-tuning batch")
        if finetunes
        else say("within the critical batch of {tokens:,.1f} M tokens", tokens=run.critical / 1e6)
    )
    yield say(
        "Global batch about {sequences:,.0f} sequences: {basis}; a layout may take up to an eighth more or less, "
        "so that it divides over its ranks.",
        sequences=run.batch,
        basis=basis,
    )


def _data(question: TrainingQuestion, run: Described, finetunes: bool) -> Iterator[str]:
    document = question.document_tokens or run.profiles.finetune_document_tokens
    if question.packing == "padded":
        yield say(
            "One document of {tokens:,.0f} tokens a sample: {share:.0%} of what is computed is padding.",
            tokens=document,
            share=1.0 - min(1.0, document / question.sequence_length),
        )
    elif finetunes or question.document_tokens is not None:
        yield say("Packed documents of {tokens:,.0f} tokens on average; attention stays inside each.", tokens=document)
    if question.method in ("lora", "qlora"):
        yield say("Adapters on every linear layer of the frozen base.")
    if is_eager(question.method, run.framework):
        yield say("Kernels are not compiled: norms and gates keep their results, which takes memory and time.")
