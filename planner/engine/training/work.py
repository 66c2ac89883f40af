"""What one token costs a model: the sums over layers that training memory and step time are made of.

A matrix multiplication of M tokens by a K x N weight takes ``2 M N K`` FLOPs and moves M K, M N and
N K elements. Summed over a model's layers, only the sums of N K, K and N matter, split by how
tensor parallelism cuts a matrix: by columns (N / tp), by rows (K / tp), or not at all. The sums are
plain numbers for one model, or arrays where many models are evaluated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.param_count import count_parameters

FloatArray = NDArray[np.float64]
Num = float | FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelWork:
    """Sums over all layers of one model (or arrays of them, one entry a model)."""

    layers: Num
    hidden: Num
    vocab: Num
    params_total: Num
    params_dense: Num
    """All but routed experts and the two embedding matrices."""
    params_experts: Num
    params_embedding: Num
    """One vocabulary matrix."""
    tied: Num
    """1 where the output matrix is the input embedding."""
    dense_nk: Num
    """Sum of N K over attention, dense MLPs, shared experts and routers."""
    column_k: Num
    column_n: Num
    row_k: Num
    row_n: Num
    whole_nk: Num
    """Matrices that tensor parallelism does not cut (MLA down-projections, routers)."""
    expert_nk: Num
    """Sum over MoE layers of all experts' N K."""
    active_expert_nk: Num
    """The same for the experts one token visits."""
    active_expert_k: Num
    active_expert_n: Num
    moe_layers: Num
    routed_hidden: Num
    """Sum over MoE layers of top_k x expert input width: what the all-to-all carries a token."""
    top_k: Num
    experts: Num
    score_full: Num
    """FLOPs a token and attended key, score and value, full-attention layers: 2 n_q (d_qk + d_v)."""
    score_window: Num
    window: Num
    heads: Num
    """Sum of query heads over layers."""
    head_dim: Num
    kv_width: Num
    """Sum over layers of key and value elements a token."""
    qo_width: Num
    """Sum over layers of query and attention-output elements a token."""
    position_width: Num
    """Sum over layers of query and key elements a token that rotation or assembly moves."""
    ffn_width: Num
    """Sum over dense and shared MLPs of stored intermediate elements a token: 3 f gated, 2 f not."""
    gated: Num
    """1 where MLPs are gated (and norms root-mean-square)."""
    expert_width: Num
    """The same for the routed experts one token visits."""
    state_flops: Num
    """FLOPs a token of recurrent (linear) layers beyond their projections."""
    kv_heads: Num
    """Smallest number of KV heads of a layer (0 for none)."""
    min_heads: Num
    """Query heads that tensor parallelism must divide."""
    intermediate: Num
    """Dense MLP width that tensor parallelism must divide (0 for none)."""


def model_work(arch: ModelArch) -> ModelWork:
    """Sum a model's layers; exact, from the architecture alone.

    >>> from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
    >>> llama = ModelArch(name="8B", hidden=4096, layers=32, vocab=128256,
    ...     attention=(AttentionGroup(kind="full", layers=32, n_q=32, n_kv=8, head_dim=128),),
    ...     ffn=(FfnGroup(kind="dense", layers=32, intermediate=14336),))
    >>> work = model_work(llama)
    >>> int(work.dense_nk + work.params_embedding)  # matrices of the forward pass
    7504658432
    """
    counts = count_parameters(arch)
    sums = dict.fromkeys((f.name for f in fields(ModelWork)), 0.0)
    sums.update(
        layers=float(arch.layers),
        hidden=float(arch.hidden),
        vocab=float(arch.vocab),
        params_total=float(counts.total),
        params_experts=float(counts.experts),
        params_embedding=float(counts.embedding),
        tied=float(arch.tied_embeddings),
        params_dense=float(counts.total - counts.experts - counts.embedding - counts.lm_head),
    )
    for attention in arch.attention:
        _add_attention(sums, arch, attention)
    for ffn in arch.ffn:
        _add_ffn(sums, arch, ffn)
    return ModelWork(**sums)


def stack_work(works: Sequence[ModelWork]) -> ModelWork:
    """Many models as one value whose fields are arrays, one entry each, in order."""
    return ModelWork(**{f.name: np.array([getattr(w, f.name) for w in works]) for f in fields(ModelWork)})


def _add_column(sums: dict[str, float], layers: float, k: float, n: float) -> None:
    sums["dense_nk"] += layers * k * n
    sums["column_k"] += layers * k
    sums["column_n"] += layers * n


def _add_row(sums: dict[str, float], layers: float, k: float, n: float) -> None:
    sums["dense_nk"] += layers * k * n
    sums["row_k"] += layers * k
    sums["row_n"] += layers * n


def _add_whole(sums: dict[str, float], layers: float, k: float, n: float) -> None:
    sums["dense_nk"] += layers * k * n
    sums["whole_nk"] += layers * k * n
    sums["column_k"] += layers * k
    sums["row_n"] += layers * n


def _add_attention(sums: dict[str, float], arch: ModelArch, group: AttentionGroup) -> None:
    layers, hidden = float(group.layers), float(arch.hidden)
    if group.kind == "none":
        return
    if group.kind == "linear":
        # Projections in and out of a recurrent layer, as one square-ish matrix of its own parameters.
        _add_column(sums, layers, hidden, group.extra_params / hidden * 2 / 3)
        _add_row(sums, layers, group.extra_params / hidden / 3, hidden)
        sums["state_flops"] += 6.0 * layers * group.state_elems
        sums["qo_width"] += layers * group.extra_params / hidden
        sums["position_width"] += layers * group.extra_params / hidden
        return
    d_qk, d_v = _head_dims(group)
    _add_projections(sums, arch, group, d_qk, d_v)
    score = 2.0 * layers * group.n_q * (d_qk + d_v)
    if group.kind == "sliding" or group.sparse_top_k:
        sums["score_window"] += score
        sums["window"] = float(group.sparse_top_k or group.window)
    else:
        sums["score_full"] += score / group.compress_ratio
    kv_elems = float(group.n_kv * (d_qk + d_v)) if group.kind != "mla" else float(group.n_q * (d_qk + d_v))
    sums["heads"] += layers * group.n_q
    sums["head_dim"] = max(sums["head_dim"], (d_qk + d_v) / 2)
    sums["kv_width"] += layers * kv_elems
    sums["qo_width"] += layers * group.n_q * (d_qk + d_v)
    # Latent attention turns only its rotary part, and puts keys together; the rest moves query, key, value and output.
    latent = float(group.n_q * (group.rope_dim + d_qk))
    whole = float(group.n_q * (d_qk + d_v)) + kv_elems
    sums["position_width"] += layers * (latent if group.kind == "mla" else whole)
    kv_heads = float(group.n_kv if group.kind != "mla" else group.n_q)
    sums["kv_heads"] = min(sums["kv_heads"] or kv_heads, kv_heads)
    sums["min_heads"] = min(sums["min_heads"] or group.n_q, float(group.n_q))


def _head_dims(group: AttentionGroup) -> tuple[int, int]:
    if group.kind == "mla":
        return group.nope_dim + group.rope_dim, group.v_head_dim or group.nope_dim
    return group.head_dim, group.v_head_dim or group.head_dim


def _add_projections(sums: dict[str, float], arch: ModelArch, group: AttentionGroup, d_qk: int, d_v: int) -> None:
    layers, hidden = float(group.layers), float(arch.hidden)
    if group.q_lora_rank:
        _add_whole(sums, layers, hidden, group.q_lora_rank)
        _add_column(sums, layers, group.q_lora_rank, group.n_q * d_qk)
    else:
        _add_column(sums, layers, hidden, group.n_q * d_qk)
    if group.kind == "mla":
        _add_whole(sums, layers, hidden, group.kv_lora_rank + group.rope_dim)
        _add_column(sums, layers, group.kv_lora_rank, group.n_q * (group.nope_dim + d_v))
    else:
        _add_column(sums, layers, hidden, group.n_kv * (d_qk if group.kv_shared else d_qk + d_v))
    if group.out_lora_rank:
        _add_row(sums, layers, group.n_q * d_v, group.out_lora_rank)
        _add_row(sums, layers, group.out_groups * group.out_lora_rank, hidden)
    else:
        _add_row(sums, layers, group.n_q * d_v, hidden)


def _add_mlp(sums: dict[str, float], layers: float, hidden: float, width: float, *, gated: bool) -> None:
    _add_column(sums, layers, hidden, width * (2 if gated else 1))
    _add_row(sums, layers, width, hidden)
    sums["ffn_width"] += layers * width * (3 if gated else 2)


def _add_ffn(sums: dict[str, float], arch: ModelArch, group: FfnGroup) -> None:
    layers, hidden = float(group.layers), float(arch.hidden)
    if group.kind == "none":
        return
    sums["gated"] = float(group.gated)
    if group.kind == "dense":
        _add_mlp(sums, layers, hidden, group.intermediate, gated=group.gated)
        sums["intermediate"] = float(group.intermediate)
        return
    _add_whole(sums, layers, hidden, group.experts)
    if group.shared_intermediate:
        _add_mlp(sums, layers, hidden, group.shared_intermediate, gated=group.gated)
    width_in = float(group.expert_hidden or hidden)
    matrices = 3 if group.gated else 2
    one_expert = matrices * width_in * group.intermediate
    sums["expert_nk"] += layers * group.experts * one_expert
    sums["active_expert_nk"] += layers * group.top_k * one_expert
    sums["active_expert_k"] += layers * group.top_k * ((matrices - 1) * width_in + group.intermediate)
    sums["active_expert_n"] += layers * group.top_k * ((matrices - 1) * group.intermediate + width_in)
    sums["expert_width"] += layers * group.top_k * (matrices * group.intermediate + width_in)
    sums["routed_hidden"] += layers * group.top_k * width_in
    sums["moe_layers"] += layers
    sums["top_k"] = float(group.top_k)
    sums["experts"] = float(group.experts)
