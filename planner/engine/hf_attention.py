"""Attention of a config: which layers are full, sliding, latent or recurrent, and their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_compressed import compressed_groups
from planner.engine.hf_families import Family
from planner.engine.hf_linear import linear_group
from planner.engine.hf_reader import MAX_CONTEXT, MAX_HEADS, MAX_LAYERS, MAX_VOCAB, ConfigReader, check_integer
from planner.engine.model_arch import AttentionGroup

DSA_SCALE_BYTES = 4
"""Scales beside an 8-bit index key, a token and layer."""
HYBRID_CHARACTERS = {"M": "linear", "*": "full", "-": "none", "E": "none"}
_NAMED_KINDS = (
    ("sliding", "sliding"),
    ("local", "sliding"),
    ("chunked", "sliding"),
    ("linear", "linear"),
    ("mamba", "linear"),
    ("recurrent", "linear"),
    ("full", "full"),
    ("global", "full"),
    ("attention", "full"),
    ("moe", "none"),
    ("mlp", "none"),
)


def attention_groups(reader: ConfigReader, family: Family, hidden: int, layers: int) -> tuple[AttentionGroup, ...]:
    """Groups of like attention layers, in order of first appearance."""
    for key in ("num_kv_shared_layers", "hidden_size_per_layer_input"):
        if reader.optional(key):
            raise UnsupportedModel(f"{key}: layers that share a cache or take inputs of their own.", field=key)
    if reader.has("compress_ratios"):
        return compressed_groups(reader, hidden, layers)
    kinds = layer_kinds(reader, family, layers)
    groups = []
    for kind in dict.fromkeys(kinds):
        count = kinds.count(kind)
        if kind == "linear":
            groups.append(linear_group(reader, hidden, count))
        elif kind == "none":
            groups.append(AttentionGroup(kind="none", layers=count))
        elif reader.has("kv_lora_rank") and reader.optional("kv_lora_rank"):
            groups.append(_latent(reader, family, hidden, count))
        else:
            groups.append(_heads(reader, family, hidden, count, sliding=kind == "sliding"))
    return tuple(groups)


def layer_kinds(reader: ConfigReader, family: Family, layers: int) -> list[str]:
    """``full``, ``sliding``, ``linear`` or ``none`` for every layer."""
    pattern = reader.text("hybrid_override_pattern")
    if pattern:
        return _per_layer("hybrid_override_pattern", list(pattern), layers, HYBRID_CHARACTERS.get)
    for key in ("layer_types", "layers_block_type"):
        named = reader.sequence(key)
        if named is not None:
            return _windows(reader, _per_layer(key, named, layers, _named_kind))
    flags = reader.sequence("hybrid_layer_pattern")
    if flags is not None:
        return _windows(reader, _per_layer("hybrid_layer_pattern", flags, layers, {0: "full", 1: "sliding"}.get))
    attention_types = reader.sequence("attn_type_list")
    if attention_types is not None:
        return _per_layer("attn_type_list", attention_types, layers, {0: "linear", 1: "full"}.get)
    kimi = reader.section("linear_attn_config")
    if kimi is not None:
        return _listed_linear(kimi, layers)
    if reader.has("full_attention_interval"):
        interval = reader.integer("full_attention_interval", maximum=MAX_LAYERS)
        return ["full" if (index + 1) % interval == 0 else "linear" for index in range(layers)]
    if reader.has("attn_layer_period"):
        period = reader.integer("attn_layer_period", maximum=MAX_LAYERS)
        offset = reader.optional("attn_layer_offset", maximum=MAX_LAYERS)
        return ["full" if index % period == offset % period else "linear" for index in range(layers)]
    return _sliding_pattern(reader, family, layers)


def _per_layer(key: str, items: Sequence[Any], layers: int, meaning: Any) -> list[str]:
    if len(items) != layers:
        raise UnsupportedModel(f"{key}: {len(items)} entries for {layers} layers.", field=key, value=len(items))
    kinds = []
    for item in items:
        kind = meaning(item) if isinstance(item, str | int) else None
        if kind is None:
            raise UnsupportedModel(f"{key}: a layer kind that isn't known.", field=key, value=repr(item)[:80])
        kinds.append(kind)
    return kinds


def _named_kind(name: str | int) -> str | None:
    text = str(name).lower()
    return next((kind for part, kind in _NAMED_KINDS if part in text), None)


def _listed_linear(reader: ConfigReader, layers: int) -> list[str]:
    """Layers listed (from 1) as recurrent; the others are full attention."""
    listed = reader.sequence("kda_layers") or ()
    numbers = {check_integer("kda_layers", item, minimum=1, maximum=layers) for item in listed}
    return ["linear" if index + 1 in numbers else "full" for index in range(layers)]


def _windows(reader: ConfigReader, kinds: list[str]) -> list[str]:
    """Sliding layers need a window; without one the config contradicts itself."""
    if "sliding" in kinds and not _window(reader):
        raise UnsupportedModel("sliding_window: missing, but there are sliding layers.", field="sliding_window")
    return kinds


def _window(reader: ConfigReader) -> int:
    return reader.optional(
        "sliding_window", "attention_chunk_size", "sliding_window_size", minimum=0, maximum=MAX_CONTEXT
    )


def _sliding_pattern(reader: ConfigReader, family: Family, layers: int) -> list[str]:
    rope_free = reader.sequence("no_rope_layers")
    if reader.has("attention_chunk_size") and not reader.has("sliding_window"):
        if rope_free:
            return _per_layer("no_rope_layers", rope_free, layers, {0: "full", 1: "sliding"}.get)
        return ["full" if (index + 1) % 4 == 0 else "sliding" for index in range(layers)]
    window = _window(reader)
    context = reader.optional("max_position_embeddings", maximum=MAX_CONTEXT)
    if not window or not reader.flag("use_sliding_window", default=True) or (context and window >= context):
        return ["full"] * layers
    interval = reader.optional("sliding_window_pattern", "_sliding_window_pattern", maximum=MAX_LAYERS)
    interval = interval or family.window_pattern
    if interval:
        return ["full" if (index + 1) % interval == 0 else "sliding" for index in range(layers)]
    first = reader.optional("max_window_layers", maximum=MAX_LAYERS)
    return ["full" if index < first else "sliding" for index in range(layers)]


def _heads(reader: ConfigReader, family: Family, hidden: int, layers: int, *, sliding: bool) -> AttentionGroup:
    """Multi-head, grouped-query or multi-query attention."""
    n_q = _query_heads(reader, sliding=sliding)
    n_kv = _kv_heads(reader, n_q, sliding=sliding)
    head_dim = _head_dim(reader, hidden, n_q, sliding=sliding)
    biased = family.qkv_bias or reader.flag("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "use_bias")
    out_bias = family.out_bias or (reader.flag("attention_bias", "use_bias") and family.attention_bias_on_output)
    norm = family.qk_norm or ("head" if reader.flag("use_qk_norm", "qk_norm", "qk_layernorm") else "")
    extra = (n_q + n_kv) * head_dim if norm == "width" else 0
    if family.gated_attention or reader.flag("attn_output_gate"):
        extra += hidden * n_q * head_dim
    block_top = reader.optional("sparse_topk_blocks", maximum=MAX_CONTEXT)
    return AttentionGroup(
        kind="sliding" if sliding else "full",
        layers=layers,
        n_q=n_q,
        n_kv=n_kv,
        head_dim=head_dim,
        v_head_dim=reader.optional("v_head_dim"),
        window=_window(reader) if sliding else 0,
        sparse_top_k=block_top * reader.integer("sparse_block_size", default=1, maximum=MAX_CONTEXT),
        qkv_bias=biased,
        out_bias=out_bias,
        qk_norm=norm == "head",
        sinks=family.sinks,
        value_from_key=not sliding and reader.flag("attention_k_eq_v"),
        extra_params=extra,
    )


def _query_heads(reader: ConfigReader, *, sliding: bool) -> int:
    keys = ("num_attention_heads", "n_head", "n_heads", "num_heads")
    own = ("swa_num_attention_heads",) if sliding else ()
    return reader.integer(*own, *keys, maximum=MAX_HEADS) if not own else _first(reader, own, keys)


def _first(reader: ConfigReader, own: tuple[str, ...], keys: tuple[str, ...]) -> int:
    found = reader.optional(*own, maximum=MAX_HEADS)
    return found or reader.integer(*keys, maximum=MAX_HEADS)


def _kv_heads(reader: ConfigReader, n_q: int, *, sliding: bool) -> int:
    special = reader.optional("swa_num_key_value_heads" if sliding else "num_global_key_value_heads", maximum=MAX_HEADS)
    if special:
        n_kv = special
    elif reader.flag("multi_query") and not reader.flag("new_decoder_architecture"):
        n_kv = 1
    else:
        nested = reader.section("attn_config")
        stated = nested.optional("kv_n_heads", maximum=MAX_HEADS) if nested is not None else 0
        n_kv = stated or reader.integer(
            "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num",
            default=n_q, maximum=MAX_HEADS,
        )  # fmt: skip
    if n_q % n_kv:
        raise UnsupportedModel(
            f"num_key_value_heads: {n_kv} does not divide {n_q} attention heads.",
            field="num_key_value_heads",
            value=n_kv,
        )
    return n_kv


def _head_dim(reader: ConfigReader, hidden: int, n_q: int, *, sliding: bool) -> int:
    special = reader.optional("swa_head_dim" if sliding else "global_head_dim")
    stated = special or reader.optional("head_dim", "attention_head_dim", "kv_channels")
    if not stated and hidden % n_q:
        raise UnsupportedModel(
            f"head_dim: missing, and {n_q} heads do not divide hidden_size {hidden}.", field="head_dim"
        )
    return stated or hidden // n_q


def _latent(reader: ConfigReader, family: Family, hidden: int, layers: int) -> AttentionGroup:
    """Multi-head latent attention, with a sparse indexer where the config has one."""
    n_q = _query_heads(reader, sliding=False)
    rope, nope = reader.integer("qk_rope_head_dim"), reader.integer("qk_nope_head_dim")
    q_rank, kv_rank = reader.optional("q_lora_rank"), reader.integer("kv_lora_rank")
    index_heads, index_dim = reader.optional("index_n_heads", maximum=MAX_HEADS), reader.optional("index_head_dim")
    indexer = 0
    if index_heads and index_dim:
        indexer = (q_rank or hidden) * index_heads * index_dim + hidden * (index_dim + index_heads) + 2 * index_dim
    return AttentionGroup(
        kind="mla",
        layers=layers,
        n_q=n_q,
        n_kv=n_q,
        head_dim=nope + rope,
        v_head_dim=reader.integer("v_head_dim"),
        q_lora_rank=q_rank,
        kv_lora_rank=kv_rank,
        rope_dim=rope,
        nope_dim=nope,
        index_elems=index_dim + DSA_SCALE_BYTES if indexer else 0,
        sparse_top_k=reader.optional("index_topk", maximum=MAX_VOCAB),
        qkv_bias=reader.flag("attention_bias"),
        extra_params=indexer + (hidden * n_q * nope if reader.flag("mla_use_output_gate") else 0),
    )
