"""Compressed sparse attention of a config: one latent head a layer, cached once every few tokens.

DeepSeek-V4's layers keep a single key-value latent, low-rank queries and a grouped low-rank output
(arXiv: DeepSeek-V4 report, 2026-04). ``compress_ratios`` says per layer how many tokens share an
entry; small ratios are searched by an indexer, 0 keeps a window only.
"""

from __future__ import annotations

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_reader import MAX_CONTEXT, MAX_HEADS, MAX_VOCAB, ConfigReader, check_integer
from planner.engine.model_arch import AttentionGroup

INDEXED_UP_TO = 8
"""Ratios up to this are searched by an indexer; beyond it entries are few enough to read all."""


def compressed_groups(reader: ConfigReader, hidden: int, layers: int) -> tuple[AttentionGroup, ...]:
    """Groups of layers by compression ratio; raises ``UnsupportedModel`` where a layer has none stated."""
    stated = reader.sequence("compress_ratios") or ()
    if len(stated) < layers:
        raise UnsupportedModel(
            f"compress_ratios: {len(stated)} entries for {layers} layers.", field="compress_ratios", value=len(stated)
        )
    ratios = [check_integer("compress_ratios", item, minimum=0, maximum=MAX_VOCAB) for item in stated[:layers]]
    return tuple(_group(reader, hidden, ratio, ratios.count(ratio)) for ratio in dict.fromkeys(ratios))


def _group(reader: ConfigReader, hidden: int, ratio: int, layers: int) -> AttentionGroup:
    heads, head_dim = reader.integer("num_attention_heads", maximum=MAX_HEADS), reader.integer("head_dim")
    q_rank = reader.integer("q_lora_rank")
    index_dim = reader.integer("index_head_dim")
    indexed = 0 < ratio <= INDEXED_UP_TO
    extra = head_dim
    if indexed:
        extra += 4 * hidden * head_dim + (2 * ratio + 1) * head_dim
        extra += _indexer_params(reader, hidden, ratio, q_rank, index_dim)
    elif ratio:
        extra += 2 * hidden * head_dim + (ratio + 1) * head_dim
    return AttentionGroup(
        kind="full" if ratio else "sliding",
        layers=layers,
        n_q=heads,
        n_kv=1,
        head_dim=head_dim,
        q_lora_rank=q_rank,
        kv_shared=True,
        out_lora_rank=reader.integer("o_lora_rank"),
        out_groups=reader.integer("o_groups", default=1, maximum=MAX_HEADS),
        sinks=True,
        window=0 if ratio else reader.integer("sliding_window", maximum=MAX_CONTEXT),
        compress_ratio=ratio or 1,
        index_elems=-(-(index_dim + 4) // ratio) if indexed else 0,
        sparse_top_k=reader.optional("index_topk", maximum=MAX_VOCAB) if indexed else 0,
        extra_params=extra,
    )


def _indexer_params(reader: ConfigReader, hidden: int, ratio: int, q_rank: int, index_dim: int) -> int:
    """Indexer queries and weights, and its own compressor."""
    index_heads = reader.integer("index_n_heads", maximum=MAX_HEADS)
    return (
        q_rank * index_heads * index_dim + hidden * index_heads + 4 * hidden * index_dim + (2 * ratio + 1) * index_dim
    )
