"""Exact parameter counts of a ``ModelArch``: integer arithmetic over its layer groups.

Formulas: dense gated decoder ``V h (2) + L [h n_q d + 2 h n_kv d + n_q d h + 3 h f + norms] + h``;
mixture of experts replaces ``3 h f`` by ``E 3 h f_e + E h + 3 h f_s``; multi-head latent attention
(DeepSeek-V2, arXiv 2405.04434) uses its low-rank projections.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionParams:
    """Parameters of one attention layer, split by how tensor parallelism treats them."""

    query: int
    """Sharded over heads, with the output projection."""
    key_value: int
    """Sharded over KV heads; a head is replicated where ranks outnumber heads."""
    output: int
    replicated: int
    """Low-rank down-projections: whole on every rank."""
    vectors: int
    """Biases, norms and sinks: never quantized."""
    extra: int

    @property
    def total(self) -> int:
        return self.query + self.key_value + self.output + self.replicated + self.vectors + self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnParams:
    """Parameters of one feed-forward layer."""

    dense: int
    expert: int
    """One routed expert, biases included."""
    expert_biases: int
    experts: int
    """All routed experts."""
    shared: int
    router: int
    extra: int

    @property
    def total(self) -> int:
        return self.dense + self.experts + self.shared + self.router + self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameters of a whole model; the parts sum to ``total``."""

    total: int
    active: int
    """Used by one token, with both embedding matrices."""
    active_without_input_embedding: int
    """Those that take part in a matrix multiplication: the base of FLOPs a token."""
    embedding: int
    lm_head: int
    """0 where it shares the embedding."""
    attention: int
    ffn_dense: int
    experts: int
    experts_active: int
    """``top_k`` experts a layer: part of ``experts``, not added to the total."""
    shared_experts: int
    router: int
    norms: int
    other: int
    """Position embeddings and parameters no other part describes."""


def attention_params(arch: ModelArch, group: AttentionGroup) -> AttentionParams:
    """Parameters of one layer of ``group``.

    >>> from planner.engine.model_arch import AttentionGroup, ModelArch
    >>> mla = AttentionGroup(kind="mla", layers=61, n_q=128, q_lora_rank=1536, kv_lora_rank=512,
    ...     rope_dim=64, nope_dim=128, v_head_dim=128)
    >>> arch = ModelArch(name="x", hidden=7168, layers=61, vocab=129280, attention=(mla,), ffn=())
    >>> attention_params(arch, mla).total
    187107328
    """
    if group.kind in ("linear", "none"):
        return AttentionParams(query=0, key_value=0, output=0, replicated=0, vectors=0, extra=group.extra_params)
    if group.kind == "mla":
        return _latent_attention_params(arch, group)
    hidden, head_dim = arch.hidden, group.head_dim
    value_dim = group.v_head_dim or head_dim
    one_projection = group.kv_shared or group.value_from_key
    kv_width = group.n_kv * (head_dim if one_projection else head_dim + value_dim)
    query, query_down = _query_params(hidden, group.n_q * head_dim, group.q_lora_rank)
    vectors = group.q_lora_rank
    vectors += (group.n_q * head_dim + kv_width) if group.qkv_bias else 0
    vectors += hidden if group.out_bias else 0
    vectors += 2 * head_dim if group.qk_norm else 0
    vectors += group.n_q if group.sinks else 0
    return AttentionParams(
        query=query,
        key_value=hidden * kv_width,
        output=_output_params(hidden, group.n_q * value_dim, group),
        replicated=query_down,
        vectors=vectors,
        extra=group.extra_params,
    )


def _latent_attention_params(arch: ModelArch, group: AttentionGroup) -> AttentionParams:
    hidden, value_dim = arch.hidden, group.v_head_dim or group.nope_dim
    query, query_down = _query_params(hidden, group.n_q * (group.nope_dim + group.rope_dim), group.q_lora_rank)
    vectors = group.q_lora_rank + group.kv_lora_rank + (hidden if group.out_bias else 0)
    vectors += (group.q_lora_rank + group.kv_lora_rank + group.rope_dim) if group.qkv_bias else 0
    return AttentionParams(
        query=query,
        key_value=group.kv_lora_rank * group.n_q * (group.nope_dim + value_dim),
        output=_output_params(hidden, group.n_q * value_dim, group),
        replicated=query_down + hidden * (group.kv_lora_rank + group.rope_dim),
        vectors=vectors,
        extra=group.extra_params,
    )


def _query_params(hidden: int, width: int, lora_rank: int) -> tuple[int, int]:
    """Query projection: (sharded, replicated) parameters."""
    return (lora_rank * width, hidden * lora_rank) if lora_rank else (hidden * width, 0)


def _output_params(hidden: int, width: int, group: AttentionGroup) -> int:
    rank = group.out_lora_rank
    return width * rank + group.out_groups * rank * hidden if rank else width * hidden


def ffn_params(arch: ModelArch, group: FfnGroup) -> FfnParams:
    """Parameters of one layer of ``group``."""
    hidden = arch.hidden
    if group.kind == "none":
        return FfnParams(dense=0, expert=0, expert_biases=0, experts=0, shared=0, router=0, extra=group.extra_params)
    if group.kind == "dense":
        dense = mlp_params(hidden, group.intermediate, gated=group.gated, bias=group.bias)
        return FfnParams(
            dense=dense, expert=0, expert_biases=0, experts=0, shared=0, router=0, extra=group.extra_params
        )
    width = group.expert_hidden or hidden
    matrices = mlp_params(width, group.intermediate, gated=group.gated, bias=False)
    expert = mlp_params(width, group.intermediate, gated=group.gated, bias=group.bias)
    return FfnParams(
        dense=0,
        expert=expert,
        expert_biases=expert - matrices,
        experts=group.experts * expert,
        shared=mlp_params(hidden, group.shared_intermediate, gated=group.gated, bias=False),
        router=group.experts * (hidden + group.router_bias),
        extra=group.extra_params,
    )


def mlp_params(hidden: int, intermediate: int, *, gated: bool, bias: bool) -> int:
    """Parameters of one MLP: gate, up and down, or up and down.

    >>> mlp_params(4096, 14336, gated=True, bias=False)
    176160768
    """
    up_matrices = 2 if gated else 1
    biases = up_matrices * intermediate + hidden if bias else 0
    return (up_matrices + 1) * hidden * intermediate + biases


def norm_params(arch: ModelArch) -> int:
    """Parameters of layer norms and the final norm."""
    vectors = arch.norms_per_layer * arch.layers + 1
    return vectors * arch.hidden * (2 if arch.norm_bias else 1)


def count_parameters(arch: ModelArch) -> ParameterCounts:
    """Count every parameter of the text model (encoders and MTP modules apart).

    Raises nothing: an ``arch`` is valid by construction. ``active`` replaces all routed experts by
    ``top_k`` of them.
    """
    embedding = arch.vocab * arch.hidden
    lm_head = 0 if arch.tied_embeddings else embedding
    attention = sum(attention_params(arch, group).total * group.layers for group in arch.attention)
    layers = [(group, ffn_params(arch, group)) for group in arch.ffn]
    experts = sum(params.experts * group.layers for group, params in layers)
    experts_active = sum(params.expert * group.top_k * group.layers for group, params in layers)
    ffn_dense = sum(params.dense * group.layers for group, params in layers)
    shared = sum(params.shared * group.layers for group, params in layers)
    router = sum(params.router * group.layers for group, params in layers)
    norms = norm_params(arch)
    ffn_extra = sum(params.extra * group.layers for group, params in layers)
    other = arch.position_params + arch.extra_params + ffn_extra
    total = embedding + lm_head + attention + ffn_dense + experts + shared + router + norms + other
    active = total - experts + experts_active
    looked_up = arch.position_params + (0 if arch.tied_embeddings else embedding)
    return ParameterCounts(
        total=total,
        active=active,
        active_without_input_embedding=active - looked_up,
        embedding=embedding,
        lm_head=lm_head,
        attention=attention,
        ffn_dense=ffn_dense,
        experts=experts,
        experts_active=experts_active,
        shared_experts=shared,
        router=router,
        norms=norms,
        other=other,
    )
