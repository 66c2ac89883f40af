"""Architectures as JSON: a ``ModelArch`` to a plain mapping and back, defaults left out.

The spec is what catalog files and scenarios store; ``arch_from_architecture_row`` reads the flat
CSV form that published case files come with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from planner.engine.errors import UnsupportedModel
from planner.engine.model_arch import AttentionGroup, AttentionKind, FfnGroup, FfnKind, ModelArch
from planner.engine.quantization import MODULE_SETS, WEIGHT_FORMATS

Spec = Mapping[str, Any]

MAX_COUNT = 10**13
"""Largest integer a spec may hold: keeps every product finite."""
_KINDS: Mapping[str, tuple[str, ...]] = {
    "AttentionGroup": ("full", "sliding", "mla", "linear", "none"),
    "FfnGroup": ("dense", "moe", "none"),
}


def arch_to_spec(arch: ModelArch) -> dict[str, Any]:
    """The JSON form of ``arch``; fields at their default are left out."""
    spec = _to_mapping(arch)
    spec["attention"] = [_to_mapping(group) for group in arch.attention]
    spec["ffn"] = [_to_mapping(group) for group in arch.ffn]
    return spec


def _to_mapping(value: ModelArch | AttentionGroup | FfnGroup) -> dict[str, Any]:
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.default is MISSING or getattr(value, field.name) != field.default
    }


def arch_from_spec(spec: Spec) -> ModelArch:
    """Read a spec; raise ``UnsupportedModel`` naming the key at fault.

    >>> spec = {"name": "tiny", "hidden": 64, "layers": 2, "vocab": 100,
    ...     "attention": [{"kind": "full", "layers": 2, "n_q": 4, "n_kv": 2, "head_dim": 16}],
    ...     "ffn": [{"kind": "dense", "layers": 2, "intermediate": 128}]}
    >>> arch_to_spec(arch_from_spec(spec)) == spec
    True
    """
    values = dict(spec)
    attention = _groups(AttentionGroup, values.pop("attention", None), "attention")
    ffn = _groups(FfnGroup, values.pop("ffn", None), "ffn")
    read = _read(ModelArch, values, "", skip=("attention", "ffn"))
    arch = ModelArch(attention=tuple(attention), ffn=tuple(ffn), **read)
    _check(arch)
    return arch


def _groups(group_type: type[Any], raw: object, key: str) -> list[Any]:
    if not isinstance(raw, list) or not raw or not all(isinstance(item, Mapping) for item in raw):
        raise UnsupportedModel(f"{key}: needs a list of layer groups.", field=key, value=raw)
    return [group_type(**_read(group_type, item, f"{key}[{index}].")) for index, item in enumerate(raw)]


def _read(target: type[Any], raw: Spec, prefix: str, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    known = {field.name: field for field in fields(target) if field.name not in skip}
    for name in raw:
        if name not in known:
            raise UnsupportedModel(f"{prefix}{name}: unknown key.", field=f"{prefix}{name}", value=raw[name])
    read: dict[str, Any] = {}
    for name, field in known.items():
        if name in raw:
            read[name] = _value(field, raw[name], f"{prefix}{name}", _KINDS.get(target.__name__, ()))
        elif field.default is MISSING:
            raise UnsupportedModel(f"{prefix}{name}: missing.", field=f"{prefix}{name}")
    return read


def _value(field: Field[Any], raw: Any, key: str, kinds: tuple[str, ...]) -> Any:
    if field.name == "kind":
        if raw in kinds:
            return raw
        raise UnsupportedModel(f"{key}: not one of {', '.join(kinds)}.", field=key, value=raw)
    if field.type == "str":
        good = isinstance(raw, str)
    elif field.type == "bool":
        good = isinstance(raw, bool)
    else:
        good = isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_COUNT
    if not good:
        raise UnsupportedModel(f"{key}: not a {field.type} in range.", field=key, value=raw)
    return raw


def _check(arch: ModelArch) -> None:
    for key, groups in (("attention", arch.attention), ("ffn", arch.ffn)):
        total = sum(group.layers for group in groups)
        if total != arch.layers:
            raise UnsupportedModel(f"{key}: {total} layers of {arch.layers}.", field=key, value=total)
    if arch.native_format not in WEIGHT_FORMATS:
        raise UnsupportedModel("native_format: unknown.", field="native_format", value=arch.native_format)
    if arch.quantized_modules and arch.quantized_modules not in MODULE_SETS:
        raise UnsupportedModel("quantized_modules: unknown.", field="quantized_modules", value=arch.quantized_modules)


def arch_from_architecture_row(row: Mapping[str, str]) -> ModelArch:
    """An architecture from a flat CSV row: sizes, MoE columns, ``attention`` and ``extras``.

    ``extras`` holds ``key=value`` pairs separated by ``;`` (dense_layers, moe_every, kv_lora, q_lora,
    rope, nope, v, swa, swa_frac, full_frac, gated); blank cells mean not stated.
    """
    extras = dict(pair.strip().split("=", 1) for pair in row.get("extras", "").split(";") if "=" in pair)
    layers, hidden = _cell(row, "layers"), _cell(row, "hidden")
    return ModelArch(
        name=row["model"],
        hidden=hidden,
        layers=layers,
        vocab=_cell(row, "vocab"),
        tied_embeddings=_cell(row, "tie_embeddings", 0) == 1,
        attention=tuple(_row_attention(row, extras, layers)),
        ffn=tuple(_row_ffn(row, extras, layers)),
        norms_per_layer=2,
    )


def _cell(row: Mapping[str, str], key: str, default: int | None = None) -> int:
    text = (row.get(key) or "").strip()
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise UnsupportedModel(f"{key}: not a number.", field=key, value=text) from None
    if not math.isfinite(value) or not 0 <= value <= MAX_COUNT:
        raise UnsupportedModel(f"{key}: out of range.", field=key, value=text)
    return int(value)


def _share(extras: Mapping[str, str], key: str) -> float:
    text = extras.get(key, "1")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise UnsupportedModel(f"{key}: not a share of layers.", field=key, value=text)
    return value


def _row_attention(row: Mapping[str, str], extras: Mapping[str, str], layers: int) -> list[AttentionGroup]:
    heads, kv_heads, head_dim = _cell(row, "heads"), _cell(row, "kv_heads"), _cell(row, "head_dim")
    if "kv_lora" in extras:
        return [
            AttentionGroup(
                kind="mla",
                layers=layers,
                n_q=heads,
                n_kv=kv_heads,
                head_dim=head_dim,
                kv_lora_rank=_cell(extras, "kv_lora"),
                q_lora_rank=_cell(extras, "q_lora", 0),
                rope_dim=_cell(extras, "rope"),
                nope_dim=_cell(extras, "nope"),
                v_head_dim=_cell(extras, "v"),
            )
        ]

    def group(kind: AttentionKind, count: int, window: int = 0) -> AttentionGroup:
        return AttentionGroup(kind=kind, layers=count, n_q=heads, n_kv=kv_heads, head_dim=head_dim, window=window)

    window = _cell(extras, "swa", 0)
    if window:
        sliding = round(layers * _share(extras, "swa_frac"))
        return [group("sliding", sliding, window), *([group("full", layers - sliding)] if sliding < layers else [])]
    if "full_frac" in extras:
        full = round(layers * _share(extras, "full_frac"))
        per_layer = _linear_layer_params(_cell(row, "hidden"), heads, kv_heads, head_dim)
        linear = AttentionGroup(
            kind="linear",
            layers=layers - full,
            n_q=heads,
            state_elems=heads * head_dim * head_dim // 2,
            extra_params=per_layer,
        )
        return [linear, group("full", full)]
    return [group("full", layers)]


def _linear_layer_params(hidden: int, heads: int, kv_heads: int, head_dim: int) -> int:
    """Projections of a linear-attention layer, as wide as the full layers' (a CSV row says no more)."""
    return hidden * head_dim * (2 * heads + 2 * kv_heads)


def _row_ffn(row: Mapping[str, str], extras: Mapping[str, str], layers: int) -> list[FfnGroup]:
    gated = extras.get("gated", "1") != "0"
    experts, width = _cell(row, "moe_experts", 0), _cell(row, "ffn", 0)

    def dense(count: int, *, leading: bool) -> FfnGroup:
        kind: FfnKind = "dense"
        return FfnGroup(kind=kind, layers=count, intermediate=width, gated=gated, leading=leading)

    if not experts:
        return [dense(layers, leading=False)]
    leading = _cell(extras, "dense_layers", 0)
    every = _cell(extras, "moe_every", 1)
    moe_layers = (layers - leading) // max(every, 1)
    expert_width = _cell(row, "moe_ffn")
    moe = FfnGroup(
        kind="moe",
        layers=moe_layers,
        intermediate=expert_width,
        experts=experts,
        top_k=_cell(row, "moe_active"),
        shared_intermediate=_cell(row, "moe_shared", 0) * expert_width,
    )
    before = [dense(leading, leading=True)] if leading else []
    between = layers - leading - moe_layers
    return [*before, moe, *([dense(between, leading=False)] if between else [])]
