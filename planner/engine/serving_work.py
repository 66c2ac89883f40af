"""Work of one token, whatever runs it: FLOPs by kind, and the bytes of KV cache that decoding reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.engine.model_arch import AttentionGroup, ModelArch
from planner.engine.param_count import attention_params, ffn_params

FloatArray = NDArray[np.float64]

KV_ELEMENT_BYTES = {"bf16": 2.0, "fp16": 2.0, "auto": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5625, "nvfp4": 0.5625}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWork:
    """FLOPs of the whole model, one token."""

    dense_flops: float
    head_flops: float
    expert_flops: float
    """Of the ``top_k`` experts it visits."""
    experts: float
    top_k: float
    expert_layers: int
    context_flops: float
    """One context token attended while decoding, where that exceeds reading it (latent attention)."""
    pair_flops: float
    """One (prompt token, earlier token) pair, full-attention layers."""
    window_pair_flops: float
    packs_decodes: bool
    """Decodes have a kernel of their own whatever they share an iteration with (latent attention)."""


def token_work(arch: ModelArch) -> TokenWork:
    """FLOPs of one token: two a multiply-accumulate, attention apart."""
    dense = sum(attention_params(arch, group).total * group.layers for group in arch.attention)
    expert = experts = top_k = 0.0
    expert_layers = 0
    for group in arch.ffn:
        params = ffn_params(arch, group)
        dense += (params.dense + params.shared + params.router + params.extra) * group.layers
        if group.kind == "moe":
            expert += params.expert * group.top_k * group.layers
            experts, top_k = max(experts, group.experts), max(top_k, group.top_k)
            expert_layers += group.layers
    pairs = [(group, _pair_flops(group) * group.layers) for group in arch.attention]
    return TokenWork(
        dense_flops=2.0 * dense,
        head_flops=2.0 * arch.vocab * arch.hidden,
        expert_flops=2.0 * expert,
        experts=experts,
        top_k=top_k,
        expert_layers=expert_layers,
        context_flops=sum(
            2.0 * g.n_q * (2 * g.kv_lora_rank + g.rope_dim) * g.layers
            for g in arch.attention
            if g.kind == "mla" and not g.sparse_top_k
        ),
        pair_flops=sum(flops for group, flops in pairs if not _window(group)),
        window_pair_flops=sum(flops for group, flops in pairs if _window(group)),
        packs_decodes=any(group.kind == "mla" for group in arch.attention),
    )


def _window(group: AttentionGroup) -> int:
    """Tokens a query looks at, at most; 0 means all."""
    return group.window or group.sparse_top_k


def _pair_flops(group: AttentionGroup) -> float:
    if group.kind == "mla":
        return 2.0 * group.n_q * (group.nope_dim + group.rope_dim + (group.v_head_dim or group.nope_dim))
    if group.kind in ("full", "sliding"):
        return 2.0 * group.n_q * (group.head_dim + (group.v_head_dim or group.head_dim))
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KvReads:
    """Bytes one rank reads while decoding, of all its layers: arrays over candidates."""

    full_bytes: FloatArray
    """One context token, layers that read the whole context."""
    window_bytes: FloatArray
    window_tokens: float
    state_bytes: FloatArray
    """One sequence's recurrent state, read and written."""


def kv_reads(arch: ModelArch, tp: FloatArray, element: FloatArray) -> KvReads:
    """What one rank reads of the KV cache while decoding: heads split over ``tp``, latents replicated.

    ``element`` is bytes of one cached number; both arrays over candidates.
    """
    full = np.zeros_like(tp)
    windowed = np.zeros_like(tp)
    state = np.zeros_like(tp)
    window = 0.0
    for group in arch.attention:
        if group.kind == "linear":
            state += 2.0 * group.layers * (group.state_elems * 4.0) / tp
            continue
        if group.kind == "none":
            continue
        per_token = _kv_elements(group, tp) * group.layers * element
        index = group.index_elems * group.layers * element
        full += index + 0.0 * per_token
        if _window(group):
            windowed += per_token
            window = max(window, float(_window(group)))
        else:
            full += per_token
    return KvReads(full_bytes=full, window_bytes=windowed, window_tokens=window, state_bytes=state)


def _kv_elements(group: AttentionGroup, tp: FloatArray) -> FloatArray:
    if group.kind == "mla":
        return np.full_like(tp, group.kv_lora_rank + group.rope_dim)
    heads = np.maximum(group.n_kv / tp, 1.0)
    return heads * (group.head_dim + (group.v_head_dim or group.head_dim))
