"""What published precision labels mean: the weight or KV format the engine knows."""

from __future__ import annotations

import re

_WEIGHTS: tuple[tuple[str, str], ...] = (
    (r"some layers bf16|fbgemm", "fp8_fbgemm"),
    (r"fp8.?block", "fp8_block"),
    (r"fp8", "fp8"),
    (r"mxfp4", "mxfp4"),
    (r"nvfp4|fp4", "nvfp4"),
    (r"awq", "awq_int4"),
    (r"gptq", "gptq_int4"),
    (r"bnb|nf4", "nf4"),
    (r"q8_0", "gguf_q8_0"),
    (r"q4_k", "gguf_q4_k_m"),
    (r"int4|4.?bit|w4a", "awq_int4"),
    (r"int8|w8a8", "int8"),
    (r"bf16", "bf16"),
    (r"fp16|half", "fp16"),
    (r"fp32", "fp32"),
)


def weight_format_of(label: str, *, gpu: str = "") -> str | None:
    """The weight format of a label, or None for one not known; blank means the checkpoint's own (``auto``).

    A bare ``fp4`` is the GPU vendor's own: MXFP4 on AMD, NVFP4 on NVIDIA.

    >>> weight_format_of("int4 (AWQ g128)"), weight_format_of("fp4", gpu="MI355X")
    ('awq_int4', 'mxfp4')
    """
    text = label.strip().lower()
    if not text:
        return "auto"
    for pattern, name in _WEIGHTS:
        if re.search(pattern, text):
            return "mxfp4" if name == "nvfp4" and re.match(r"(?i)mi\d", gpu.strip()) else name
    return None


def kv_format_of(label: str) -> str | None:
    """The KV format of a label, or None for one not known; blank means 16 bit (``auto``)."""
    text = label.strip().lower()
    if not text:
        return "auto"
    return next((name for name in ("nvfp4", "fp8", "int8", "int4", "bf16", "fp16", "fp32") if name in text), None)
