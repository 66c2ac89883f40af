"""Blocks of differing sizes: models pruned by architecture search, whose config lists every block.

A block's attention shares keys among ``n_heads_in_group`` query heads, is left out (``no_op``) or replaced by one
matrix; its MLP has ``ffn_mult`` times two thirds of the hidden size, in multiples of 256, or is left out likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_reader import MAX_FFN, MAX_HEADS, ConfigReader, check_integer
from planner.engine.model_arch import AttentionGroup, FfnGroup

KEY: Final = "block_configs"
FFN_MULTIPLE: Final = 256
MAX_FFN_MULT: Final = 100.0


def block_groups(
    reader: ConfigReader, hidden: int, layers: int
) -> tuple[tuple[AttentionGroup, ...], tuple[FfnGroup, ...]]:
    """Groups of like layers from ``block_configs``, one entry a layer; raises ``UnsupportedModel`` naming it."""
    blocks = reader.sequence(KEY)
    if blocks is None or len(blocks) != layers:
        raise UnsupportedModel(f"{KEY}: not one entry a layer.", field=KEY)
    heads = reader.integer("num_attention_heads", maximum=MAX_HEADS)
    head_dim = reader.optional("head_dim") or hidden // heads
    attention = [_attention(_part(block, "attention"), hidden, heads, head_dim) for block in blocks]
    if all(group.kind == "none" for group in attention):
        raise UnsupportedModel(f"{KEY}: no block has attention.", field=KEY)
    ffn = [_ffn(_part(block, "ffn"), hidden) for block in blocks]
    return (
        tuple(replace(group, layers=attention.count(group)) for group in dict.fromkeys(attention)),
        tuple(replace(group, layers=ffn.count(group)) for group in dict.fromkeys(ffn)),
    )


def _part(block: object, name: str) -> Mapping[str, Any]:
    part = block.get(name) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        raise UnsupportedModel(f"{KEY}: a block without its {name}.", field=KEY)
    return part


def _attention(part: Mapping[str, Any], hidden: int, heads: int, head_dim: int) -> AttentionGroup:
    """One layer's attention."""
    if part.get("no_op") is True:
        return AttentionGroup(kind="none", layers=1)
    if part.get("replace_with_linear") is True:
        return AttentionGroup(kind="none", layers=1, extra_params=hidden**2)
    if part.get("window_length") is not None or part.get("sparsify") is not None:
        raise UnsupportedModel(f"{KEY}: windows or sparsity in a block are not supported.", field=KEY)
    shared = check_integer("n_heads_in_group", part.get("n_heads_in_group"), minimum=1, maximum=heads)
    if heads % shared:
        raise UnsupportedModel(f"{KEY}: {heads} heads are not divisible by {shared}.", field=KEY)
    return AttentionGroup(kind="full", layers=1, n_q=heads, n_kv=heads // shared, head_dim=head_dim)


def _ffn(part: Mapping[str, Any], hidden: int) -> FfnGroup:
    """One layer's MLP."""
    if part.get("no_op") is True:
        return FfnGroup(kind="none", layers=1)
    if part.get("replace_with_linear") is True:
        return FfnGroup(kind="none", layers=1, extra_params=hidden**2)
    if part.get("intermediate_size") is not None:
        width = check_integer("intermediate_size", part["intermediate_size"], minimum=1, maximum=MAX_FFN)
        return FfnGroup(kind="dense", layers=1, intermediate=width)
    mult = part.get("ffn_mult")
    if isinstance(mult, bool) or not isinstance(mult, int | float) or not 0 < mult <= MAX_FFN_MULT:
        raise UnsupportedModel(f"{KEY}: ffn_mult is no number up to {MAX_FFN_MULT:g}.", field=KEY)
    return FfnGroup(kind="dense", layers=1, intermediate=ffn_width(float(mult), hidden))


def ffn_width(mult: float, hidden: int) -> int:
    """Two thirds of ``mult x hidden``, up to a multiple of 256.

    >>> [ffn_width(mult, 8192) for mult in (5.25, 2.625, 0.5)]
    [28672, 14336, 2816]
    """
    return -(-int(2 * mult * hidden / 3) // FFN_MULTIPLE) * FFN_MULTIPLE
