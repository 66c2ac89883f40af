"""The model as the engine understood it, for the reader to check."""

from __future__ import annotations

from planner.engine.answers import ModelSummary
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.model_arch import AttentionGroup, ModelArch
from planner.engine.param_count import count_parameters
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
        attention=", ".join(_describe(group) for group in arch.attention if group.kind != "none"),
        native_format=arch.native_format,
        kv_bytes_per_token=float(kv_bytes_per_token_per_gpu(arch, "bf16", 1, 1)),
        max_context=arch.max_context,
    )


def _describe(group: AttentionGroup) -> str:
    if group.kind == "mla":
        return f"{group.layers} x MLA, latent {group.kv_lora_rank} + {group.rope_dim}"
    if group.kind == "linear":
        return f"{group.layers} x linear, fixed state"
    heads = f"{group.n_q} query and {group.n_kv} KV heads of {group.head_dim}"
    kind = "MHA" if group.n_kv == group.n_q else "MQA" if group.n_kv == 1 else "GQA"
    window = f", window {group.window:,}" if group.kind == "sliding" else ""
    return f"{group.layers} x {kind}, {heads}{window}"


def model_reading(question: PlaceAndPurchase, arch: ModelArch) -> list[str]:
    """What was taken for the model asked, where that isn't plain from the question."""
    if question.config is not None:
        kind = question.config.get("model_type") or "not stated"
        ignored = f" The name {question.model} was not used." if question.model else ""
        return [f"Model read from the config given, model_type {kind}.{ignored}"]
    if question.model.casefold() in (arch.name.casefold(), arch.hf_id.casefold()):
        return []
    return [f"{question.model} read as {arch.name}, weights published in {arch.native_format}."]
