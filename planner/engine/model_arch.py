"""Model architectures as values: groups of like layers, from which parameters and KV follow exactly.

A model is a stack of layers; layers that are alike form one group. Attention and feed-forward are
grouped apart, because hybrids mix them (one full-attention layer in six, a dense layer before the
experts). Counting is arithmetic over the groups: nothing is inferred from a parameter count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionKind = Literal["full", "sliding", "mla", "linear", "none"]
FfnKind = Literal["dense", "moe", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGroup:
    """``layers`` layers of one kind of attention.

    ``full`` and ``sliding`` keep 2 x n_kv x head_dim elements a token and layer (MHA, GQA and MQA
    differ only in ``n_kv``); ``sliding`` keeps at most ``window`` tokens alive. ``mla`` keeps one
    latent of ``kv_lora_rank + rope_dim``. ``linear`` (Mamba, gated DeltaNet, KDA) keeps a fixed
    state of ``state_elems`` elements a sequence and layer, however long the context.
    """

    kind: AttentionKind
    layers: int
    n_q: int = 0
    n_kv: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    """0 means: as ``head_dim``."""
    window: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_dim: int = 0
    nope_dim: int = 0
    index_elems: int = 0
    """Extra cache elements a token and layer (sparse-attention indexers)."""
    sparse_top_k: int = 0
    """Tokens a query attends to at most (DSA and block-sparse); 0 means all."""
    compress_ratio: int = 1
    """Tokens that share one cache entry (compressed sparse attention)."""
    state_elems: int = 0
    state_elem_bytes: int = 4
    """Bytes of one recurrent-state element; engines keep it wider than the KV cache where the model asks."""
    conv_state_elems: int = 0
    """Elements of the short convolution's state (16 bit) a sequence and layer."""
    kv_shared: bool = False
    """Keys and values are one latent (no factor 2), shared by every rank."""
    value_from_key: bool = False
    """Values come from the key projection's weights; both are cached."""
    out_lora_rank: int = 0
    """Grouped low-rank output projection: n_q x head_dim x rank, then ``out_groups`` x rank x hidden."""
    out_groups: int = 1
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False
    extra_params: int = 0
    """Parameters a layer that the fields above do not describe (gates, convolutions, indexers);
    for ``linear``, all of the layer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnGroup:
    """``layers`` layers of one kind of feed-forward block."""

    kind: FfnKind
    layers: int
    intermediate: int = 0
    """Width of the dense MLP, or of one routed expert."""
    gated: bool = True
    experts: int = 0
    top_k: int = 0
    shared_intermediate: int = 0
    """Total width of the shared experts; 0 means none."""
    bias: bool = False
    router_bias: bool = False
    expert_hidden: int = 0
    """Width the experts act on, where it isn't the model's hidden size (latent MoE); 0 means hidden."""
    extra_params: int = 0
    leading: bool = False
    """These layers come first (a dense block before the experts), rather than interleaved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArch:
    """One decoder-only transformer (or hybrid).

    Sizes are counts; ``native_format`` is the weight format the published checkpoint ships in.
    """

    name: str
    hf_id: str = ""
    hidden: int
    layers: int
    vocab: int
    tied_embeddings: bool = False
    attention: tuple[AttentionGroup, ...]
    ffn: tuple[FfnGroup, ...]
    norms_per_layer: int = 2
    """Vectors of ``hidden`` weights a layer: 2 for pre-norm, 4 for sandwich norm (Gemma 2/3)."""
    norm_bias: bool = False
    parallel_block: bool = False
    """Attention and MLP read one input and their outputs are added: tensor ranks sum once a layer, not twice."""
    position_params: int = 0
    """Learned absolute position embeddings."""
    extra_params: int = 0
    encoder_params: int = 0
    """Vision or audio towers and projectors, kept in 16 bit; outside the text model's parameter count."""
    mtp_params: int = 0
    """Multi-token-prediction module shipped with the checkpoint; loaded only when speculating."""
    max_context: int = 0
    native_format: str = "bf16"
    quantized_modules: str = ""
    """Which modules the native checkpoint quantizes, where not all linear layers: e.g. ``experts``."""
    unread_parts: str = ""
    """Sections of the config, towers, whose size could not be read: they are left out."""
    unknown_type: str = ""
    """The config's ``model_type`` where it isn't known, and the common structure was assumed."""
