"""How a KV pool is cut into pages: bytes a layer keeps for a token, groups of layers, blocks of a request.

The paged allocator of vLLM V1: layers are split by type into groups of like size, all groups share one
pool of equal pages, a sliding-window group keeps only the live window, a recurrent layer one page a
sequence.
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
class KvGroup:
    """Layers of one type within a stage: ``count`` groups of ``KvPages.group_layers``."""

    kind: str
    window: int
    count: Floats
    block_tokens: Floats


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


def layer_state_bytes(group: AttentionGroup) -> float:
    return float(group.state_elems * group.state_elem_bytes + group.conv_state_elems * 2)


def kv_pages(
    arch: ModelArch, kv_format: str, tp: ArrayLike, pp: ArrayLike, allocator: Allocator = DEFAULT_ALLOCATOR
) -> KvPages:
    """Cut the pool into pages as vLLM V1 does.

    Groups take the smallest type's layer count, or the largest where types are within a quarter of
    each other; layers with smaller tokens get larger blocks so that pages match, and attention
    blocks grow until a recurrent layer's state fits in one.
    """
    tp_, pp_ = layouts(tp, pp)
    kinds = _layer_types(arch, allocator)
    layers = [np.ceil(sum(group.layers for group in groups) / pp_) for groups in kinds]
    token_bytes = [layer_token_bytes(groups[0], kv_format, tp_) for groups in kinds]
    states = [layer_state_bytes(groups[0]) / tp_ for groups in kinds]
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
            blocks = np.ceil(live_tokens(group.window, tokens, budget) / group.block_tokens) + 1
        else:
            blocks = np.ceil(tokens / group.block_tokens)
        total = total + group.count * blocks
    return total


def live_tokens(window: int, tokens: Floats, budget: Floats) -> Floats:
    return np.minimum(window - 1 + budget, tokens) if window else tokens


def layouts(tp: ArrayLike, pp: ArrayLike) -> tuple[Floats, Floats]:
    tp_, pp_ = np.broadcast_arrays(np.asarray(tp, dtype=np.float64), np.asarray(pp, dtype=np.float64))
    return tp_, pp_
