"""Weight formats: which matrices a recipe quantizes, to how many bits, and the bytes that result.

Embeddings, the output head, norms, routers, biases and often attention stay in 16 bit, so weight
bytes are a sum over tensor classes and never ``parameters x bits / 8``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import attention_params, count_parameters, ffn_params

LINEAR: Final = frozenset({"attention", "mlp", "experts", "shared"})
"""Every linear layer of the blocks: what most recipes quantize."""
FEED_FORWARD: Final = frozenset({"mlp", "experts", "shared"})
EXPERTS: Final = frozenset({"experts"})
EVERYTHING: Final = LINEAR | {"embedding", "lm_head"}

MODULE_SETS: Final = {
    "linear": LINEAR,
    "ffn": FEED_FORWARD,
    "mlp": FEED_FORWARD,
    "experts": EXPERTS,
    "all": EVERYTHING,
}
"""What ``ModelArch.quantized_modules`` may say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """One way to store weights."""

    name: str
    bits: float
    """Bits a quantized parameter, scales and zero points included."""
    modules: frozenset[str]
    """Tensor classes quantized: attention, mlp, experts, shared, embedding, lm_head."""
    compute: tuple[str, ...]
    """Formats its matrix multiplications run in, best first: the first the accelerator has a peak for."""
    base_bits: float = 16
    """Bits of everything else."""
    expert_bits: float = 0
    """Bits of routed experts where they differ from ``bits``; 0 means the same."""
    skipped_layers: int = 0
    """Blocks kept in ``base_bits`` (the first and the last)."""
    skips_latent_attention: bool = False
    """The recipe leaves multi-head latent attention in 16 bit."""
    block: int = 0
    """Rows of a quantization block: a sharded dimension must be a multiple of it; 0 means any."""


_HALF = ("bf16", "fp16")


def _table(*formats: WeightFormat) -> dict[str, WeightFormat]:
    return {weight_format.name: weight_format for weight_format in formats}


WEIGHT_FORMATS: Final = _table(
    WeightFormat(name="fp32", bits=32, base_bits=32, modules=frozenset(), compute=("tf32", "fp32")),
    WeightFormat(name="bf16", bits=16, modules=frozenset(), compute=_HALF),
    WeightFormat(name="fp16", bits=16, modules=frozenset(), compute=("fp16", "bf16")),
    # Per-channel or per-tensor scales: a few bytes an output channel, below 0.01 bit a parameter.
    WeightFormat(name="fp8", bits=8, modules=LINEAR, compute=("fp8", *_HALF)),
    WeightFormat(name="fp8_block", bits=8 + 32 / 128**2, modules=LINEAR, compute=("fp8", *_HALF), block=128),
    WeightFormat(name="fp8_fbgemm", bits=8, modules=FEED_FORWARD, compute=("fp8", *_HALF), skipped_layers=2),
    WeightFormat(name="mxfp8", bits=8 + 8 / 32, modules=LINEAR, compute=("fp8", *_HALF), block=32),
    WeightFormat(name="int8", bits=8, modules=LINEAR, compute=("int8", *_HALF)),
    WeightFormat(name="awq_int4", bits=4 + 20 / 128, modules=LINEAR, compute=("fp16", "bf16"), block=128),
    WeightFormat(name="gptq_int4", bits=4 + 16 / 128, modules=LINEAR, compute=_HALF, block=128),
    WeightFormat(name="gptq_int8", bits=8 + 16 / 128, modules=LINEAR, compute=_HALF, block=128),
    WeightFormat(name="int4_g32", bits=4 + 16 / 32, modules=LINEAR, compute=_HALF, block=32),
    WeightFormat(name="mxfp4", bits=4 + 8 / 32, modules=LINEAR, compute=("fp4", *_HALF), block=32),
    WeightFormat(
        name="nvfp4",
        bits=4 + 8 / 16,
        modules=LINEAR,
        compute=("fp4", *_HALF),
        block=16,
        skips_latent_attention=True,
    ),
    WeightFormat(
        name="fp8_mxfp4_experts",
        bits=8 + 32 / 128**2,
        expert_bits=4 + 8 / 32,
        modules=LINEAR,
        compute=("fp8", *_HALF),
        block=128,
    ),
    WeightFormat(name="nf4", bits=4.5, modules=LINEAR, compute=_HALF),
    WeightFormat(name="nf4_dq", bits=4.127, modules=LINEAR, compute=_HALF),
    WeightFormat(name="gguf_q8_0", bits=8.5, modules=EVERYTHING, compute=("int8", "fp16", "bf16")),
    WeightFormat(name="gguf_q4_k_m", bits=4.85, modules=EVERYTHING, compute=("int8", "fp16", "bf16")),
)
"""By name. Bits: format specifications (OCP MX v1.0, NVFP4: E4M3 per 16; group sizes of the common
AWQ/GPTQ recipes; bitsandbytes block 64, double quantization 256; llama.cpp Q8_0 and Q4_K_M means)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Bytes of a checkpoint by tensor class; the parts sum to ``total``."""

    total: float
    embedding: float
    lm_head: float
    attention: float
    ffn_dense: float
    experts: float
    shared_experts: float
    encoder: float
    other: float
    """Routers, norms, position embeddings and what no other class covers."""


def resolve_format(arch: ModelArch, weight_format: str) -> WeightFormat:
    """The format meant by a name; ``auto`` is the one the checkpoint ships in.

    The published checkpoint's own restriction (``quantized_modules``) applies to its native format
    only. Raises ``InvalidQuestion`` for an unknown name.
    """
    name = arch.native_format if weight_format == "auto" else weight_format
    found = WEIGHT_FORMATS.get(name)
    if found is None:
        raise InvalidQuestion(
            [
                FieldError(
                    field="weight_formats",
                    value=name,
                    message="Not a known weight format.",
                    allowed=", ".join(WEIGHT_FORMATS),
                )
            ]
        )
    if name == arch.native_format and arch.quantized_modules:
        return replace(found, modules=MODULE_SETS[arch.quantized_modules])
    return found


def compute_format(weight_format: WeightFormat, peak_formats: Collection[str]) -> str | None:
    """The format an accelerator multiplies such weights in, or None where it has no path.

    >>> compute_format(WEIGHT_FORMATS["fp8"], {"bf16", "fp16"})
    'bf16'
    """
    return next((name for name in weight_format.compute if name in peak_formats), None)


def quantized_share(arch: ModelArch, weight_format: WeightFormat) -> float:
    """Share of blocks that are quantized: below 1 where a recipe skips the first and last."""
    return max(0.0, 1 - weight_format.skipped_layers / arch.layers)


def bits_of(arch: ModelArch, weight_format: WeightFormat, module: str, *, latent: bool = False) -> float:
    """Mean bits a parameter of ``module`` (matrices only) over the model's blocks."""
    if module not in weight_format.modules or (latent and weight_format.skips_latent_attention):
        return weight_format.base_bits
    bits = weight_format.expert_bits if module == "experts" and weight_format.expert_bits else weight_format.bits
    if module in ("embedding", "lm_head"):
        return bits
    share = quantized_share(arch, weight_format)
    return share * bits + (1 - share) * weight_format.base_bits


def weight_bytes(arch: ModelArch, weight_format: str = "auto") -> WeightBytes:
    """Bytes of the whole model's weights in ``weight_format``.

    Sum over tensor classes of parameters x bits / 8; biases, norms, routers and sinks stay in the
    base format, MTP modules are left out.
    """
    found = resolve_format(arch, weight_format)
    counts = count_parameters(arch)
    base = found.base_bits / 8
    experts = sum(expert_layer_bytes(arch, found, i) * group.layers for i, group in enumerate(arch.ffn))
    parts = {
        "embedding": counts.embedding * bits_of(arch, found, "embedding") / 8,
        "lm_head": counts.lm_head * bits_of(arch, found, "lm_head") / 8,
        "attention": sum(
            attention_layer_bytes(arch, found, i) * group.layers for i, group in enumerate(arch.attention)
        ),
        "ffn_dense": counts.ffn_dense * bits_of(arch, found, "mlp") / 8,
        "experts": experts,
        "shared_experts": counts.shared_experts * bits_of(arch, found, "shared") / 8,
        "encoder": arch.encoder_params * base,
        "other": (counts.router + counts.norms + counts.other) * base,
    }
    return WeightBytes(total=sum(parts.values()), **parts)


def attention_layer_bytes(arch: ModelArch, weight_format: WeightFormat, group_index: int) -> float:
    """Bytes of one attention layer of the group, unsharded."""
    group = arch.attention[group_index]
    params = attention_params(arch, group)
    bits = bits_of(arch, weight_format, "attention", latent=group.kind == "mla")
    return (params.total - params.vectors) * bits / 8 + params.vectors * weight_format.base_bits / 8


def expert_layer_bytes(arch: ModelArch, weight_format: WeightFormat, group_index: int) -> float:
    """Bytes of one layer's routed experts, unsharded; biases stay in the base format."""
    group = arch.ffn[group_index]
    params = ffn_params(arch, group)
    biases = group.experts * params.expert_biases
    bits = bits_of(arch, weight_format, "experts")
    return (params.experts - biases) * bits / 8 + biases * weight_format.base_bits / 8
