"""Ways out when no cluster trains the model as asked: what to change, each with the number that would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from planner.engine.advice import Advice
from planner.engine.answers import Rejection
from planner.engine.field_spec import specs
from planner.engine.offers import Shape
from planner.engine.sentences import Code, FieldName, say
from planner.engine.training.profile import TrainingProfiles
from planner.engine.training.recipe import FROZEN_METHODS, PEAK_FORMAT
from planner.engine.training_clusters import most_nodes, next_size, node_words
from planner.engine.training_question import TrainingQuestion

MOST_ADVICE: Final = 3
PINNED: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "micro_batch")
FILTERS: Final = ("accelerators", "instance_types", "providers", "countries")
PLAINER: Final = ("fp8", "bf16", "fp16")
"""Precisions to fall back to, the fastest first."""


def advise(
    question: TrainingQuestion, rejections: Sequence[Rejection], shapes: Sequence[Shape], profiles: TrainingProfiles
) -> tuple[Advice, ...]:
    """Up to three changes; at least one, whatever was asked. ``shapes`` are the nodes that pass the filters."""
    closest: dict[str, Rejection] = {}
    for rejection in rejections:
        best = closest.get(rejection.code)
        if best is None or _excess(rejection) < _excess(best):
            closest[rejection.code] = rejection
    found = [*_tried(question, closest)] or [*_refused(question, closest, shapes, profiles)]
    # One change a field: the first says more.
    by_field: dict[str, Advice] = {}
    for advice in found or _wider(question):
        by_field.setdefault(advice.field, advice)
    return tuple(by_field.values())[:MOST_ADVICE]


def _excess(rejection: Rejection) -> float:
    if rejection.value is None or not rejection.limit:
        return float("inf")
    return rejection.value / rejection.limit


def _tried(question: TrainingQuestion, closest: Mapping[str, Rejection]) -> Iterator[Advice]:
    """Where clusters were searched: what they lack."""
    short = closest.get("memory")
    if short is not None:
        if question.gpus is not None:
            suggestion = say("More GPUs: {subject} came closest.", subject=short.subject)
            yield Advice(field="gpus", suggestion=suggestion)
        if question.recompute in ("none", "selective"):
            yield Advice(field="recompute", suggestion=say("Full recomputation keeps only layer inputs."), value="full")
        if question.method == "full_finetune":
            suggestion = say("LoRA keeps no optimizer states of the base model.")
            yield Advice(field="method", suggestion=suggestion, value="lora")
        yield from _lighter_states(question, short)
    if "layout" in closest:
        yield from _freer_layout(question)


def _lighter_states(question: TrainingQuestion, short: Rejection) -> Iterator[Advice]:
    """Ways to fewer states on a GPU: cut them over more ranks, or leave the optimizer's on the host."""
    if question.framework == "ddp":
        suggestion = say("FSDP2 cuts weights, gradients and states over all GPUs; DDP keeps them whole.")
        yield Advice(field="framework", suggestion=suggestion, value="fsdp2")
    elif question.sharding == "none":
        suggestion = say("Sharding cuts the states over data-parallel ranks.")
        yield Advice(field="sharding", suggestion=suggestion, value="auto")
    elif question.gpus is None:
        field = "max_nodes" if question.nodes is None else "nodes"
        more = next_size((question.nodes or question.max_nodes) * _excess(short))
        if more <= (specs(TrainingQuestion)[field][0].maximum or more):
            yield Advice(field=field, suggestion=say("More nodes share the states."), value=more)
    if question.offload == "none" and question.method not in FROZEN_METHODS:
        suggestion = say("The host can keep the optimizer's states; every step waits for its update.")
        yield Advice(field="offload", suggestion=suggestion, value="optimizer")


def _freer_layout(question: TrainingQuestion) -> Iterator[Advice]:
    """What is pinned and need not be: each by itself may be what no number of GPUs divides by."""
    for field in PINNED:
        if getattr(question, field) is not None:
            yield Advice(field=field, suggestion=say("Let the search choose the layout."))
    if question.global_batch_tokens is not None:
        suggestion = say("Let the search choose the global batch.")
        yield Advice(field="global_batch_tokens", suggestion=suggestion)
    for field in ("nodes", "gpus"):
        if getattr(question, field) is not None:
            suggestion = say("Let the search choose the number of nodes.")
            yield Advice(field=field, suggestion=suggestion)


def _refused(
    question: TrainingQuestion,
    closest: Mapping[str, Rejection],
    shapes: Sequence[Shape],
    profiles: TrainingProfiles,
) -> Iterator[Advice]:
    """Where every kind of node was refused before any sum."""
    if "gpus" in closest:
        yield from _whole_nodes(question, shapes)
    elif "precision" in closest:
        yield from _plainer(question, shapes)
    elif "framework" in closest:
        yield from _other_framework(question, shapes, profiles)
    if "network_unknown" in closest and question.nodes is not None:
        suggestion = say("One node needs no network: {subject}.", subject=closest["network_unknown"].subject)
        yield Advice(field="nodes", suggestion=suggestion, value=1)
    yield from _wider(question)


def _whole_nodes(question: TrainingQuestion, shapes: Sequence[Shape]) -> Iterator[Advice]:
    """The number of GPUs closest to the one asked that is whole nodes, or more nodes for it."""
    asked, most = question.gpus or 1, most_nodes(question)
    top = specs(TrainingQuestion)["max_nodes"][0].maximum or most
    enough = [-(-asked // int(shape.gpu_count)) for shape in shapes if asked % int(shape.gpu_count) == 0]
    if enough and most < min(enough) <= top:
        suggestion = say("Allow {nodes:,} nodes: {gpus:,} GPUs are that many.", nodes=min(enough), gpus=asked)
        yield Advice(field="max_nodes", suggestion=suggestion, value=min(enough))
    whole = {min(max(round(asked / int(shape.gpu_count)), 1), most) * int(shape.gpu_count) for shape in shapes}
    if whole:
        near = min(whole, key=lambda gpus: (abs(gpus - asked), gpus))
        yield Advice(field="gpus", suggestion=say("{gpus:,} GPUs are whole nodes.", gpus=near), value=near)


def _plainer(question: TrainingQuestion, shapes: Sequence[Shape]) -> Iterator[Advice]:
    """The fastest precision that some node has matrix units for."""
    for precision in PLAINER:
        shape = next((each for each in shapes if PEAK_FORMAT[precision] in each.accelerator.peak_flops), None)
        if shape is not None and precision != question.precision:
            suggestion = say(
                "Train in {precision}: {subject} has matrix units for it.",
                precision=Code(precision),
                subject=node_words(shape),
            )
            yield Advice(field="precision", suggestion=suggestion, value=precision)
            return


def _other_framework(
    question: TrainingQuestion, shapes: Sequence[Shape], profiles: TrainingProfiles
) -> Iterator[Advice]:
    vendors = {shape.accelerator.vendor for shape in shapes}
    for choice, key in profiles.question_frameworks.items():
        profile = profiles.frameworks[key]
        runs_on = sorted(vendors.intersection(profile.vendors))
        if runs_on and choice != question.framework:
            suggestion = say("{framework} runs on {vendor}.", framework=profile.label, vendor=runs_on[0])
            yield Advice(field="framework", suggestion=suggestion, value=choice)
            return


def _wider(question: TrainingQuestion) -> Iterator[Advice]:
    """Filters that keep other hardware out."""
    for field in FILTERS:
        if getattr(question, field):
            suggestion = say("Leave {field} open: other hardware may do.", field=FieldName(field))
            yield Advice(field=field, suggestion=suggestion)
    if question.precision != "bf16":
        suggestion = say("BF16 runs on the most accelerators.")
        yield Advice(field="precision", suggestion=suggestion, value="bf16")
