"""Weight bytes on one GPU: what tensor, pipeline and expert parallelism leave on the fullest rank.

One replica's GPUs are ``pp x max(tp, ep)``: experts spread over ``max(tp, ep)`` ranks (``ep`` above
``tp`` means data-parallel attention), everything else over ``tp``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.param_count import attention_params, ffn_params, norm_params
from planner.engine.quantization import WeightFormat, bits_of, expert_layer_bytes, resolve_format

Floats = NDArray[np.float64]

VOCAB_PADDING = 64
"""Rows of the embedding are padded to a multiple of it before sharding (vLLM, Megatron-LM)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPadding:
    """What a loader rounds expert matrices up to for its kernel: widths become multiples of these."""

    hidden_multiple: int = 1
    intermediate_multiple: int = 1


NO_PADDING = ExpertPadding()


def weight_bytes_per_gpu(
    arch: ModelArch,
    weight_format: str,
    tp: ArrayLike,
    pp: ArrayLike,
    ep: ArrayLike,
    *,
    padding: ExpertPadding = NO_PADDING,
) -> Floats:
    """Bytes of weights on the fullest rank, for arrays of layouts (broadcast together).

    The fullest pipeline stage counts: the first holds the embedding, the encoder and leading dense
    layers, the last the output head; layers are split evenly, the remainder to middle stages. KV
    projections are replicated where ``tp`` exceeds the KV heads, low-rank down-projections, routers
    and norms always.

    >>> from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
    >>> arch = ModelArch(name="llama-8b", hidden=4096, layers=32, vocab=128256,
    ...     attention=(AttentionGroup(kind="full", layers=32, n_q=32, n_kv=8, head_dim=128),),
    ...     ffn=(FfnGroup(kind="dense", layers=32, intermediate=14336),))
    >>> (weight_bytes_per_gpu(arch, "bf16", [1, 2, 1], [1, 1, 4], 1) / 2**30).round(2).tolist()
    [14.96, 7.48, 4.23]
    """
    found = resolve_format(arch, weight_format)
    tp_, pp_, ep_ = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (tp, pp, ep)))
    leading, layer = layer_bytes_per_gpu(arch, found, tp_, ep_, padding)
    leading_layers = sum(group.layers for group in arch.ffn if group.leading)
    embedding, head, once = _outer_bytes(arch, found, tp_)
    edge = np.floor(arch.layers / pp_)
    middle = np.ceil(arch.layers / pp_)
    in_first = np.minimum(leading_layers, edge)
    first = embedding + once + in_first * leading + (edge - in_first) * layer
    last = head + edge * layer
    if arch.tied_embeddings:
        last = last + np.where(pp_ > 1, embedding - head, 0)
    single = embedding + head + once + leading_layers * leading + (arch.layers - leading_layers) * layer
    inner = np.where(pp_ > 2, middle * np.maximum(layer, leading), 0)
    return np.where(pp_ == 1, single, np.maximum(np.maximum(first, last), inner))


def layer_bytes_per_gpu(
    arch: ModelArch, weight_format: WeightFormat, tp: Floats, ep: Floats, padding: ExpertPadding = NO_PADDING
) -> tuple[Floats, Floats]:
    """Bytes of one block on one rank: (a leading block's, a usual block's), averaged over kinds."""
    attention = sum(
        (_attention_rank_bytes(arch, weight_format, group, tp) * group.layers for group in arch.attention),
        start=np.zeros_like(tp),
    )
    norms = (norm_params(arch) - _final_norm(arch)) * weight_format.base_bits / 8
    shared = (attention + norms) / arch.layers
    blocks = []
    for leads in (True, False):
        groups = [i for i, group in enumerate(arch.ffn) if group.leading is leads]
        layers = sum(arch.ffn[i].layers for i in groups)
        ffn = sum(
            (_ffn_rank_bytes(arch, weight_format, i, tp, ep, padding) * arch.ffn[i].layers for i in groups),
            start=np.zeros_like(tp),
        )
        blocks.append(shared + ffn / layers if layers else np.zeros_like(tp))
    return blocks[0], blocks[1]


def _final_norm(arch: ModelArch) -> int:
    return arch.hidden * (2 if arch.norm_bias else 1)


def _outer_bytes(arch: ModelArch, weight_format: WeightFormat, tp: Floats) -> tuple[Floats, Floats, Floats]:
    """Embedding, output head, and what the first stage holds once (encoder, positions, final norm)."""
    multiple = np.lcm(VOCAB_PADDING, tp.astype(np.int64))
    matrix = np.ceil(arch.vocab / multiple) * multiple * arch.hidden / tp
    embedding = matrix * bits_of(arch, weight_format, "embedding") / 8
    head = np.zeros_like(tp) if arch.tied_embeddings else matrix * bits_of(arch, weight_format, "lm_head") / 8
    base = weight_format.base_bits / 8
    once = (arch.encoder_params / tp + arch.position_params + arch.extra_params + _final_norm(arch)) * base
    return embedding, head, once


def _attention_rank_bytes(arch: ModelArch, weight_format: WeightFormat, group: AttentionGroup, tp: Floats) -> Floats:
    params = attention_params(arch, group)
    latent = group.kind == "mla"
    kv_share = 1 / tp if latent or not group.n_kv else np.maximum(1 / tp, 1 / group.n_kv)
    extra_share = np.ones_like(tp) if latent else 1 / tp
    matrices = (
        (params.query + params.output) / tp
        + params.key_value * kv_share
        + params.replicated
        + params.extra * extra_share
    )
    bits = bits_of(arch, weight_format, "attention", latent=latent)
    return matrices * bits / 8 + params.vectors * weight_format.base_bits / 8


def _ffn_rank_bytes(
    arch: ModelArch, weight_format: WeightFormat, group_index: int, tp: Floats, ep: Floats, padding: ExpertPadding
) -> Floats:
    group = arch.ffn[group_index]
    params = ffn_params(arch, group)
    ranks = np.maximum(tp, ep)
    base = weight_format.base_bits / 8
    experts = (
        expert_layer_bytes(arch, weight_format, group_index) / ranks * _padded_share(arch, group, ranks / ep, padding)
    )
    dense = params.dense / tp * bits_of(arch, weight_format, "mlp") / 8
    shared = params.shared / tp * bits_of(arch, weight_format, "shared") / 8
    return dense + shared + experts + (params.router + params.extra) * base


def _padded_share(arch: ModelArch, group: FfnGroup, expert_tp: Floats, padding: ExpertPadding) -> Floats:
    """Bytes as loaded over bytes as stored, of one expert's matrices."""
    if group.kind != "moe":
        return np.ones_like(expert_tp)
    hidden = group.expert_hidden or arch.hidden
    hidden_share = -(-hidden // padding.hidden_multiple) * padding.hidden_multiple / hidden
    width = group.intermediate / expert_tp
    return hidden_share * np.ceil(width / padding.intermediate_multiple) * padding.intermediate_multiple / width
