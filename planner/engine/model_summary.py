"""The model as the engine understood it, for the reader to check."""

from __future__ import annotations

from collections.abc import Iterator

from planner.engine.advice import Advice
from planner.engine.answers import ModelSummary
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.model_arch import AttentionGroup, ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.sentences import Code, joined, say
from planner.engine.workload import PlaceAndPurchase


def summarize(arch: ModelArch) -> ModelSummary:
    """Sizes and kinds of ``arch`` in the form an answer carries."""
    counts = count_parameters(arch)
    return ModelSummary(
        name=arch.name,
        hf_id=arch.hf_id,
        total_params=counts.total,
        active_params=counts.active,
        layers=arch.layers,
        attention=joined((_describe(group) for group in arch.attention if group.kind != "none"), ", "),
        native_format=arch.native_format,
        kv_bytes_per_token=float(kv_bytes_per_token_per_gpu(arch, "bf16", 1, 1)),
        max_context=arch.max_context or None,
    )


def warnings(arch: ModelArch) -> tuple[Advice, ...]:
    """What a reader must know of how the model was read, before any number."""
    return tuple(Advice(field="", suggestion=said, is_warning=True) for said in _warnings(arch))


def _warnings(arch: ModelArch) -> Iterator[str]:
    if arch.unknown_type:
        yield say(
            "Warning: model_type {kind} is not known. The model was read as a Llama-style decoder from its sizes "
            "alone: biases, norms, windows or layers of another kind that its code adds are missing. Check the "
            "parameter count; every figure is extrapolated.",
            kind=arch.unknown_type,
        )
    if arch.unread_parts:
        yield say(
            "Warning: the size of {parts} can't be read from the config, so it is left out: the checkpoint takes "
            "more memory than planned here.",
            parts=arch.unread_parts,
        )


def towers(arch: ModelArch) -> Iterator[str]:
    """What is counted beside the text model."""
    if arch.encoder_params:
        yield say(
            "Vision and audio towers of {params:.3g} B parameters are held beside the text model in 16 bit; their "
            "own work on images and sound is not timed: count its tokens as input.",
            params=arch.encoder_params / 1e9,
        )


def _describe(group: AttentionGroup) -> str:
    if group.kind == "mla":
        return say(
            "{layers} x MLA, latent {latent} + {rope}",
            layers=group.layers,
            latent=group.kv_lora_rank,
            rope=group.rope_dim,
        )
    if group.kind == "linear":
        return say("{layers} x linear, fixed state", layers=group.layers)
    kind = "MHA" if group.n_kv == group.n_q else "MQA" if group.n_kv == 1 else "GQA"
    heads = say(
        "{layers} x {kind}, {query} query and {kv} KV heads of {size}",
        layers=group.layers,
        kind=kind,
        query=group.n_q,
        kv=group.n_kv,
        size=group.head_dim,
    )
    if group.kind != "sliding":
        return heads
    return say("{heads}, window {window:,}", heads=heads, window=group.window)


def model_reading(question: PlaceAndPurchase, arch: ModelArch) -> list[str]:
    """What was taken for the model asked, where that isn't plain from the question."""
    if question.config is not None:
        kind = question.config.get("model_type") or "not stated"
        read = say("Model read from the config given, model_type {kind}.", kind=kind)
        return [read, say("The name {name} was not used.", name=question.model)] if question.model else [read]
    if question.model.casefold() in (arch.name.casefold(), arch.hf_id.casefold()):
        return []
    return [
        say(
            "{asked} read as {name}, weights published in {format}.",
            asked=question.model,
            name=arch.name,
            format=Code(arch.native_format),
        )
    ]
