"""KV cache: bytes a token and a sequence take on one GPU, and how many requests a pool admits.

The paged allocator of vLLM V1 is followed exactly: layers are split by type into groups of like
size, all groups share one pool of equal pages, a sliding-window group keeps only the live window,
a recurrent layer one page a sequence. Uniform models reduce to ``2 x layers x n_kv x head_dim``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.model_arch import AttentionGroup, ModelArch

Floats = NDArray[np.float64]

KV_BYTES: Final = {
    "auto": 2.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp32": 4.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 4.5 / 8,
    "nvfp4": 4.5 / 8,
}
"""Bytes a cached element; 4-bit formats carry a scale each 16 elements."""
PACKED_LATENT_SCALE_BYTES: Final = 16
"""FP8 latents of sparse-attention models are packed: 8-bit latent, four fp32 scales, 16-bit rope part."""
BLOCK_TOKENS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class KvPages:
    """How one stage's pool is cut, for arrays of layouts."""

    page_bytes: Floats
    """One block of one layer; every layer's is padded to it."""
    group_layers: Floats
    """Layers that share a block table: a block takes ``group_layers x page_bytes``."""
    groups: tuple[KvGroup, ...]

    @property
    def block_bytes(self) -> Floats:
        return self.group_layers * self.page_bytes

    @property
    def group_count(self) -> Floats:
        return sum((group.count for group in self.groups), start=np.zeros_like(self.page_bytes))

    @property
    def block_tokens(self) -> Floats:
        """Tokens of the smallest attention block: the unit of the engine's token line."""
        sizes = [group.block_tokens for group in self.groups if group.kind != "linear"]
        return np.minimum.reduce(sizes) if sizes else np.full_like(self.page_bytes, BLOCK_TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGroup:
    """Layers of one type within a stage: ``count`` groups of ``KvPages.group_layers``."""

    kind: str
    window: int
    count: Floats
    block_tokens: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocator:
    """What the engine's allocator does; an engine profile holds one."""

    block_tokens: int = BLOCK_TOKENS
    grouped: bool = True
    """Layers of several types share one paged pool (vLLM V1); else each layer is sized by itself."""
    hybrid: bool = True
    """Sliding windows are honoured; off (old versions, some KV connectors) every layer is full."""
    state_blocks: int = 1
    """Pages a recurrent layer holds a sequence: 2 where prefix caching keeps an aligned copy."""


DEFAULT_ALLOCATOR: Final = Allocator()


def kv_bytes_per_element(kv_format: str) -> float:
    """Bytes of one cached element; raises ``InvalidQuestion`` for an unknown format."""
    if kv_format not in KV_BYTES:
        raise InvalidQuestion(
            [
                FieldError(
                    field="kv_format", value=kv_format, message="Not a known KV format.", allowed=", ".join(KV_BYTES)
                )
            ]
        )
    return KV_BYTES[kv_format]


def layer_token_bytes(group: AttentionGroup, kv_format: str, tp: Floats) -> Floats:
    """Bytes one token takes in one layer of ``group`` on one rank, before any window.

    A KV head is never split, so beyond ``tp = n_kv`` the cache is replicated; a latent (MLA) always is.
    """
    element = kv_bytes_per_element(kv_format)
    index = float(group.index_elems)
    if group.kind in ("linear", "none"):
        return np.zeros_like(tp)
    if group.kind == "mla":
        packed = element == 1 and group.sparse_top_k > 0
        latent = group.kv_lora_rank + (PACKED_LATENT_SCALE_BYTES + 2 * group.rope_dim if packed else 0)
        width = float(latent) if packed else (group.kv_lora_rank + group.rope_dim) * element
        return np.full_like(tp, (width / group.compress_ratio) + index)
    heads = np.ceil(np.maximum(1.0, group.n_kv / tp))
    per_head = group.head_dim if group.kv_shared else group.head_dim + (group.v_head_dim or group.head_dim)
    return heads * per_head * element / group.compress_ratio + index


def kv_bytes_per_token_per_gpu(arch: ModelArch, kv_format: str, tp: ArrayLike, pp: ArrayLike) -> Floats:
    """Bytes one token takes on one GPU of the fullest stage while every layer still holds it.

    Sliding layers count in full: beyond their window use ``kv_bytes_per_sequence``. Formula:
    ``2 x layers/pp x max(1, n_kv/tp) x head_dim x bytes``; MLA ``layers/pp x (kv_lora_rank + rope_dim) x bytes``.
    """
    tp_, pp_ = _layouts(tp, pp)
    return sum(
        (layer_token_bytes(group, kv_format, tp_) * np.ceil(group.layers / pp_) for group in arch.attention),
        start=np.zeros_like(tp_),
    )


def state_bytes_per_sequence(arch: ModelArch, tp: ArrayLike, pp: ArrayLike) -> Floats:
    """Fixed bytes a running sequence holds on one GPU in recurrent layers, however long it is."""
    tp_, pp_ = _layouts(tp, pp)
    return sum(
        (_layer_state_bytes(group) / tp_ * np.ceil(group.layers / pp_) for group in arch.attention),
        start=np.zeros_like(tp_),
    )


def _layer_state_bytes(group: AttentionGroup) -> float:
    return float(group.state_elems * group.state_elem_bytes + group.conv_state_elems * 2)


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
    tp_, pp_ = _layouts(tp, pp)
    tokens_, budget = np.asarray(tokens, dtype=np.float64), np.asarray(max_num_batched_tokens, dtype=np.float64)
    if allocator.grouped:
        pages = kv_pages(arch, kv_format, tp_, pp_, allocator)
        return pages.block_bytes * request_blocks(pages, tokens_, budget, allocator)
    total = state_bytes_per_sequence(arch, tp_, pp_)
    for group in arch.attention:
        live = _live_tokens(group.window if allocator.hybrid else 0, tokens_, budget)
        blocks = np.ceil(live / allocator.block_tokens)
        layers = np.ceil(group.layers / pp_)
        total = total + blocks * allocator.block_tokens * layer_token_bytes(group, kv_format, tp_) * layers
    return total


def kv_read_bytes(arch: ModelArch, kv_format: str, tp: ArrayLike, pp: ArrayLike, tokens: ArrayLike) -> Floats:
    """Cache bytes one decode step reads on one GPU for a sequence of ``tokens``: windows, sparse top-k
    and recurrent state (read and written) taken into account."""
    tp_, pp_ = _layouts(tp, pp)
    tokens_ = np.asarray(tokens, dtype=np.float64)
    total = 2 * state_bytes_per_sequence(arch, tp_, pp_)
    for group in arch.attention:
        read = _live_tokens(group.window, tokens_, np.ones_like(tokens_))
        index_bytes = group.index_elems * tokens_
        if group.sparse_top_k:
            read = np.minimum(read, group.sparse_top_k * group.compress_ratio)
        layer = (layer_token_bytes(group, kv_format, tp_) - group.index_elems) * read + index_bytes
        total = total + layer * np.ceil(group.layers / pp_)
    return total


def kv_pages(
    arch: ModelArch, kv_format: str, tp: ArrayLike, pp: ArrayLike, allocator: Allocator = DEFAULT_ALLOCATOR
) -> KvPages:
    """Cut the pool into pages as vLLM V1 does.

    Groups take the smallest type's layer count, or the largest where types are within a quarter of
    each other; layers with smaller tokens get larger blocks so that pages match, and attention
    blocks grow until a recurrent layer's state fits in one.
    """
    tp_, pp_ = _layouts(tp, pp)
    kinds = _layer_types(arch, allocator)
    layers = [np.ceil(sum(group.layers for group in groups) / pp_) for groups in kinds]
    token_bytes = [layer_token_bytes(groups[0], kv_format, tp_) for groups in kinds]
    states = [_layer_state_bytes(groups[0]) / tp_ for groups in kinds]
    largest_token = np.maximum.reduce(token_bytes)
    state = np.maximum.reduce(states)
    block = np.full_like(tp_, allocator.block_tokens)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(state / (block * largest_token)) * block
    block = np.where(largest_token > 0, np.maximum(block, np.nan_to_num(needed, posinf=0)), block)
    page = np.maximum(block * largest_token, state)
    fewest: Floats = np.minimum.reduce(layers)
    most: Floats = np.maximum.reduce(layers)
    group_layers = np.where(most < 1.25 * fewest, most, fewest)
    groups = tuple(
        KvGroup(
            kind=groups[0].kind,
            window=groups[0].window if allocator.hybrid else 0,
            count=np.ceil(count / group_layers),
            block_tokens=np.floor(page / np.where(token > 0, token, np.inf)),
        )
        for groups, count, token in zip(kinds, layers, token_bytes, strict=True)
    )
    return KvPages(page_bytes=page, group_layers=group_layers, groups=groups)


def _layer_types(arch: ModelArch, allocator: Allocator) -> list[list[AttentionGroup]]:
    """Attention groups that share a cache shape, in the model's order."""
    kinds: dict[tuple[object, ...], list[AttentionGroup]] = {}
    for group in arch.attention:
        if group.kind == "none" or not group.layers:
            continue
        shape = (group.n_kv, group.head_dim, group.v_head_dim, group.kv_lora_rank, group.compress_ratio)
        window = group.window if allocator.hybrid else 0
        kinds.setdefault((*shape, window, group.index_elems, group.state_elems), []).append(group)
    return list(kinds.values())


def request_blocks(pages: KvPages, tokens: Floats, budget: Floats, allocator: Allocator) -> Floats:
    """Blocks one request of ``tokens`` takes at most, over all groups."""
    total = np.zeros(np.broadcast_shapes(pages.page_bytes.shape, tokens.shape, budget.shape))
    for group in pages.groups:
        if group.kind == "linear":
            blocks = np.full_like(total, allocator.state_blocks)
        elif group.window:
            blocks = np.ceil(_live_tokens(group.window, tokens, budget) / group.block_tokens) + 1
        else:
            blocks = np.ceil(tokens / group.block_tokens)
        total = total + group.count * blocks
    return total


def _live_tokens(window: int, tokens: Floats, budget: Floats) -> Floats:
    return np.minimum(window - 1 + budget, tokens) if window else tokens


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


def _layouts(tp: ArrayLike, pp: ArrayLike) -> tuple[Floats, Floats]:
    tp_, pp_ = np.broadcast_arrays(np.asarray(tp, dtype=np.float64), np.asarray(pp, dtype=np.float64))
    return tp_, pp_
