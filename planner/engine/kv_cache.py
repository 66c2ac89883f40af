"""KV cache: bytes a token and a sequence take on one GPU, and how many requests a pool admits.

Uniform models reduce to ``2 x layers x n_kv x head_dim`` a token; hybrids follow the engine's paged
allocator exactly (``kv_pages``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.engine.kv_pages import (
    DEFAULT_ALLOCATOR,
    Allocator,
    kv_pages,
    layer_state_bytes,
    layer_token_bytes,
    layouts,
    live_tokens,
    request_blocks,
)
from planner.engine.model_arch import ModelArch

__all__ = [
    "DEFAULT_ALLOCATOR",
    "Allocator",
    "kv_bytes_per_sequence",
    "kv_bytes_per_token_per_gpu",
    "kv_pages",
    "kv_read_bytes",
    "layer_token_bytes",
    "logged_tokens",
    "max_concurrency",
    "state_bytes_per_sequence",
]

Floats = NDArray[np.float64]


def kv_bytes_per_token_per_gpu(arch: ModelArch, kv_format: str, tp: ArrayLike, pp: ArrayLike) -> Floats:
    """Bytes one token takes on one GPU of the fullest stage while every layer still holds it.

    Sliding layers count in full: beyond their window use ``kv_bytes_per_sequence``. Formula:
    ``2 x layers/pp x max(1, n_kv/tp) x head_dim x bytes``; MLA ``layers/pp x (kv_lora_rank + rope_dim) x bytes``.
    """
    tp_, pp_ = layouts(tp, pp)
    return sum(
        (layer_token_bytes(group, kv_format, tp_) * np.ceil(group.layers / pp_) for group in arch.attention),
        start=np.zeros_like(tp_),
    )


def state_bytes_per_sequence(arch: ModelArch, tp: ArrayLike, pp: ArrayLike) -> Floats:
    """Fixed bytes a running sequence holds on one GPU in recurrent layers, however long it is."""
    tp_, pp_ = layouts(tp, pp)
    return sum(
        (layer_state_bytes(group) / tp_ * np.ceil(group.layers / pp_) for group in arch.attention),
        start=np.zeros_like(tp_),
    )


def kv_bytes_per_sequence(
    arch: ModelArch,
    kv_format: str,
    tp: ArrayLike,
    pp: ArrayLike,
    tokens: ArrayLike,
    *,
    max_num_batched_tokens: ArrayLike = 1,
    allocator: Allocator = DEFAULT_ALLOCATOR,
) -> Floats:
    """Bytes of the pool a sequence of ``tokens`` holds on one GPU of the fullest stage, blocks rounded up.

    A sliding layer keeps ``window - 1 + max_num_batched_tokens`` tokens while its prompt is processed;
    pass 1 for a sequence that is only decoding.
    """
    tp_, pp_ = layouts(tp, pp)
    tokens_, budget = np.asarray(tokens, dtype=np.float64), np.asarray(max_num_batched_tokens, dtype=np.float64)
    if allocator.grouped:
        pages = kv_pages(arch, kv_format, tp_, pp_, allocator)
        return pages.block_bytes * request_blocks(pages, tokens_, budget, allocator)
    total = state_bytes_per_sequence(arch, tp_, pp_)
    for group in arch.attention:
        live = live_tokens(group.window if allocator.hybrid else 0, tokens_, budget)
        blocks = np.ceil(live / allocator.block_tokens)
        layers = np.ceil(group.layers / pp_)
        total = total + blocks * allocator.block_tokens * layer_token_bytes(group, kv_format, tp_) * layers
    return total


def kv_read_bytes(arch: ModelArch, kv_format: str, tp: ArrayLike, pp: ArrayLike, tokens: ArrayLike) -> Floats:
    """Cache bytes one decode step reads on one GPU for a sequence of ``tokens``: windows, sparse top-k
    and recurrent state (read and written) taken into account."""
    tp_, pp_ = layouts(tp, pp)
    tokens_ = np.asarray(tokens, dtype=np.float64)
    total = 2 * state_bytes_per_sequence(arch, tp_, pp_)
    for group in arch.attention:
        read = live_tokens(group.window, tokens_, np.ones_like(tokens_))
        index_bytes = group.index_elems * tokens_
        if group.sparse_top_k:
            read = np.minimum(read, group.sparse_top_k * group.compress_ratio)
        layer = (layer_token_bytes(group, kv_format, tp_) - group.index_elems) * read + index_bytes
        total = total + layer * np.ceil(group.layers / pp_)
    return total


def max_concurrency(
    arch: ModelArch,
    kv_format: str,
    tp: ArrayLike,
    pp: ArrayLike,
    pool_bytes: ArrayLike,
    tokens: ArrayLike,
    *,
    max_num_batched_tokens: ArrayLike = 8192,
    allocator: Allocator = DEFAULT_ALLOCATOR,
) -> Floats:
    """Requests of ``tokens`` (input + output) that one GPU's pool holds at a time; fractional, as engines print it."""
    pool = np.maximum(np.asarray(pool_bytes, dtype=np.float64), 0)
    tokens_, budget = np.asarray(tokens, dtype=np.float64), np.asarray(max_num_batched_tokens, dtype=np.float64)
    if not allocator.grouped:
        each = kv_bytes_per_sequence(
            arch, kv_format, tp, pp, tokens_, max_num_batched_tokens=budget, allocator=allocator
        )
        return pool / each
    pages = kv_pages(arch, kv_format, tp, pp, allocator)
    blocks: Floats = np.floor(pool / pages.block_bytes)
    return blocks / request_blocks(pages, tokens_, budget, allocator)


def logged_tokens(
    arch: ModelArch,
    kv_format: str,
    tp: ArrayLike,
    pp: ArrayLike,
    pool_bytes: ArrayLike,
    *,
    max_model_len: ArrayLike,
    max_num_batched_tokens: ArrayLike = 8192,
    by_concurrency: bool,
    allocator: Allocator = DEFAULT_ALLOCATOR,
) -> Floats:
    """The engine's own "KV cache size" line in tokens.

    ``by_concurrency`` (recent versions): concurrency at ``max_model_len`` x ``max_model_len``; before,
    ``floor(blocks / groups) x block``, which understates hybrids.
    """
    if by_concurrency:
        fits = max_concurrency(
            arch,
            kv_format,
            tp,
            pp,
            pool_bytes,
            max_model_len,
            max_num_batched_tokens=max_num_batched_tokens,
            allocator=allocator,
        )
        return np.floor(fits * np.asarray(max_model_len, dtype=np.float64))
    pages = kv_pages(arch, kv_format, tp, pp, allocator)
    pool = np.maximum(np.asarray(pool_bytes, dtype=np.float64), 0)
    return np.floor(np.floor(pool / pages.block_bytes) / pages.group_count) * pages.block_tokens
