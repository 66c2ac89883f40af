"""LoRA adapters at serving time: memory of their slots, and what they add to an iteration.

An adapter adds ``r (d_in + d_out)`` parameters to each linear layer; routed experts are left alone. Engines keep
a fixed number of slots on the GPU, each as large as the largest rank allowed, and read every adapter that has a
sequence in the batch once an iteration (Punica, arXiv 2310.18547; S-LoRA, arXiv 2311.03285).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch

FloatArray = NDArray[np.float64]

ADAPTER_BYTES: Final = 2
"""Adapters are kept in 16 bit, whatever the weights are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What adapters add to an iteration: numbers, or arrays over candidates."""

    count: float
    """Adapters that requests ask for, each as often."""
    read_s: Any
    """Stream one adapter."""

    def iteration_s(self, sequences: Any) -> Any:
        """Seconds to read the adapters of a batch."""
        return self.read_s * distinct(self.count, sequences)


def distinct(adapters: float, sequences: Any) -> Any:
    """Adapters met by ``sequences`` that each ask for one of ``adapters``: ``A (1 - (1 - 1/A)^N)``.

    >>> round(float(distinct(10, 10)), 2), float(distinct(1, 5))
    (6.51, 1.0)
    """
    if adapters <= 1:
        return np.minimum(sequences, 1.0)
    return adapters * -np.expm1(sequences * np.log1p(-1.0 / adapters))


def _column_parallel(group: AttentionGroup, hidden: int) -> Iterator[tuple[int, int]]:
    """Projections into heads, as (in, out): their outputs are split over ranks."""
    if group.kind == "mla":
        query = group.n_q * (group.nope_dim + group.rope_dim)
        if group.q_lora_rank:
            yield hidden, group.q_lora_rank
        yield group.q_lora_rank or hidden, query
        yield hidden, group.kv_lora_rank + group.rope_dim
        yield group.kv_lora_rank, group.n_q * (group.nope_dim + (group.v_head_dim or group.nope_dim))
    elif group.kind in ("full", "sliding"):
        yield hidden, group.n_q * group.head_dim
        yield hidden, group.n_kv * group.head_dim
        yield hidden, group.n_kv * (group.v_head_dim or group.head_dim)


def _attention_out(group: AttentionGroup) -> int:
    if group.kind in ("linear", "none"):
        return 0
    return group.n_q * (group.v_head_dim or group.nope_dim or group.head_dim)


def _mlp_width(group: FfnGroup) -> int:
    return group.intermediate if group.kind == "dense" else group.shared_intermediate


def _matrices(arch: ModelArch) -> Iterator[tuple[int, int, int, bool]]:
    """Every adapted matrix as (layers, in, out, whether its outputs rather than its inputs are split)."""
    for attention in arch.attention:
        for inputs, outputs in _column_parallel(attention, arch.hidden):
            yield attention.layers, inputs, outputs, True
        if width := _attention_out(attention):
            yield attention.layers, width, arch.hidden, False
    for ffn in arch.ffn:
        if width := _mlp_width(ffn):
            for _ in range(2 if ffn.gated else 1):
                yield ffn.layers, arch.hidden, width, True
            yield ffn.layers, width, arch.hidden, False


def adapter_params(arch: ModelArch, rank: int) -> int:
    """Parameters of one adapter on every linear layer but the routed experts': the sum of ``r (d_in + d_out)``.

    >>> from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
    >>> arch = ModelArch(name="llama-8b", hidden=4096, layers=32, vocab=128256,
    ...     attention=(AttentionGroup(kind="full", layers=32, n_q=32, n_kv=8, head_dim=128),),
    ...     ffn=(FfnGroup(kind="dense", layers=32, intermediate=14336),))
    >>> adapter_params(arch, 16)
    41943040
    """
    return rank * sum(layers * (inputs + outputs) for layers, inputs, outputs, _ in _matrices(arch))


def adapter_bytes_per_gpu(arch: ModelArch, rank: int, tp: Any, pp: Any) -> FloatArray:
    """Bytes of one adapter on one rank: of its two factors the one that meets the split side is split too."""
    tp_, pp_ = np.asarray(tp, dtype=np.float64), np.asarray(pp, dtype=np.float64)
    total = np.zeros(np.broadcast_shapes(tp_.shape, pp_.shape))
    for layers, inputs, outputs, splits_outputs in _matrices(arch):
        width = inputs + outputs / tp_ if splits_outputs else inputs / tp_ + outputs
        total = total + layers * width
    return np.asarray(total * rank * ADAPTER_BYTES / pp_)
