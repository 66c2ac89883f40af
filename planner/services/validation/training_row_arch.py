"""Architectures of published training rows: from their own columns, or a catalog model cut to their depth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.param_count import count_parameters

Row = Mapping[str, str]
Group = TypeVar("Group", AttentionGroup, FfnGroup)


class UnreadableRow(ValueError):
    """A row that can't be turned into a case, with a reason its author can act on."""


def number(row: Row, column: str) -> float | None:
    """A cell as a number; None where blank or not a number."""
    try:
        return float(row.get(column) or "")
    except ValueError:
        return None


def with_layers(arch: ModelArch, layers: int) -> ModelArch:
    """``arch`` cut or stretched to ``layers`` layers; leading dense layers stay."""
    return replace(
        arch,
        layers=layers,
        attention=tuple(_scaled(list(arch.attention), arch.layers, layers)),
        ffn=tuple(_scaled(list(arch.ffn), arch.layers, layers)),
    )


def _scaled(groups: list[Group], before: int, after: int) -> list[Group]:
    fixed = [isinstance(group, FfnGroup) and group.leading for group in groups]
    kept = sum(group.layers for group, stays in zip(groups, fixed, strict=True) if stays)
    share = max(0.0, after - kept) / max(1, before - kept)
    counts = [g.layers if stays else int(g.layers * share) for g, stays in zip(groups, fixed, strict=True)]
    counts[-1] += after - sum(counts)
    return [replace(group, layers=count) for group, count in zip(groups, counts, strict=True) if count > 0]


def arch_from_columns(row: Row) -> ModelArch:
    """An architecture from the sizes a row states."""

    def cell(name: str, default: float = 0.0) -> int:
        return int(number(row, name) or default)

    layers, hidden = cell("layers"), cell("hidden")
    heads = cell("heads")
    if not heads:
        raise UnreadableRow(f"model {row['model']!r}: the row states no heads.")
    attention = AttentionGroup(
        kind="full", layers=layers, n_q=heads, n_kv=cell("kv_heads", heads), head_dim=max(1, hidden // heads)
    )
    gated = row.get("gated_mlp", "").strip() not in ("0", "0.0")
    experts = cell("moe_experts")
    if experts:
        ffn = FfnGroup(
            kind="moe",
            layers=layers,
            intermediate=cell("moe_ffn", cell("ffn")),
            gated=gated,
            experts=experts,
            top_k=max(1, cell("moe_topk")),
        )
    else:
        ffn = FfnGroup(kind="dense", layers=layers, intermediate=cell("ffn", 4 * hidden), gated=gated)
    arch = ModelArch(
        name=row["model"],
        hidden=hidden,
        layers=layers,
        vocab=cell("vocab", 32_000),
        attention=(attention,),
        ffn=(ffn,),
    )
    return replace(arch, tied_embeddings=_is_tied(arch, number(row, "params_b")))


def _is_tied(arch: ModelArch, params_b: float | None) -> bool:
    """Whether the stated parameter count is nearer to one vocabulary matrix than to two."""
    if not params_b:
        return False
    tied, untied = (
        abs(count_parameters(replace(arch, tied_embeddings=flag)).total / (params_b * 1e9) - 1)
        for flag in (True, False)
    )
    return tied < untied
