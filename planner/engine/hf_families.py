"""What a ``model_type`` implies that its config doesn't state: biases, norms, gating, tying.

Hugging Face configs leave out what a family's code fixes; this table holds those facts by the
``model_type`` string. A type that isn't listed is taken for the common case: gated MLP, RMS norms
before attention and MLP, no biases, untied embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Structure that a family's code fixes; a config's own keys override where it has them."""

    gated: bool = True
    tied: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    attention_bias_on_output: bool = True
    """``attention_bias`` covers the output projection too."""
    mlp_bias: bool = False
    norms: int = 2
    norm_bias: bool = False
    parallel_block: bool = False
    """Attention and MLP side by side, where the config's own flag doesn't say otherwise."""
    qk_norm: Literal["", "head", "width"] = ""
    """Norm of queries and keys: one vector a head dimension, or over the whole width."""
    sinks: bool = False
    learned_positions: bool = False
    position_offset: int = 0
    head_bias: bool = False
    """The output head has a bias of vocabulary size."""
    embedding_norm: bool = False
    shared_gate: bool = False
    """The shared expert has a gate of hidden size."""
    router_bias: bool = False
    expert_bias: bool = False
    gated_attention: bool = False
    window_pattern: int = 0
    """Every n-th layer is full attention where only ``sliding_window`` is given; 0 means none is."""
    default_ffn_ratio: int = 0
    """MLP width over hidden size where the config leaves it out; 0 means it must be stated."""


_CLASSIC = Family(
    gated=False, tied=True, qkv_bias=True, out_bias=True, mlp_bias=True, norm_bias=True, default_ffn_ratio=4
)
_PARALLEL = replace(_CLASSIC, tied=False, parallel_block=True)
_GEMMA = Family(tied=True)
_FALCON = Family(gated=False, tied=True, norm_bias=True, default_ffn_ratio=4, parallel_block=True)
"""Shares its embedding where the config is silent (transformers ``FalconConfig``, vLLM ``falcon.py``)."""
_QWEN_HYBRID = Family(qk_norm="head", gated_attention=True, shared_gate=True)

FAMILIES: Final[dict[str, Family]] = {
    "gpt2": replace(_CLASSIC, learned_positions=True),
    "gpt_bigcode": replace(_CLASSIC, learned_positions=True),
    "opt": replace(_CLASSIC, learned_positions=True, position_offset=2),
    "bloom": replace(_CLASSIC, embedding_norm=True),
    "gpt_neox": _PARALLEL,
    "gptj": replace(_PARALLEL, qkv_bias=False, out_bias=False, norms=1, head_bias=True),
    "codegen": replace(_PARALLEL, qkv_bias=False, out_bias=False, norms=1, head_bias=True),
    "phi": replace(_PARALLEL, norms=1, head_bias=True),
    "starcoder2": _CLASSIC,
    "falcon": _FALCON,
    "RefinedWeb": _FALCON,
    "RefinedWebModel": _FALCON,
    "mpt": Family(gated=False, tied=True, default_ffn_ratio=4),
    "nemotron": Family(gated=False, norm_bias=True),
    "apertus": Family(gated=False, qk_norm="head"),
    "cohere": Family(tied=True, norms=1, parallel_block=True),
    "cohere2": Family(tied=True, norms=1, window_pattern=4, parallel_block=True),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, norms=4, window_pattern=2),
    "gemma3": replace(_GEMMA, norms=4, qk_norm="head", window_pattern=6),
    "gemma3_text": replace(_GEMMA, norms=4, qk_norm="head", window_pattern=6),
    "gemma4": replace(_GEMMA, norms=4, qk_norm="head", window_pattern=6),
    "gemma4_text": replace(_GEMMA, norms=4, qk_norm="head", window_pattern=6),
    "gemma4_unified": replace(_GEMMA, norms=4, qk_norm="head", window_pattern=6),
    "gemma4_unified_text": replace(_GEMMA, norms=4, qk_norm="head", window_pattern=6),
    "deepseek_v4": Family(router_bias=True),
    "kimi_linear": Family(router_bias=True),
    "glm4": Family(norms=4, attention_bias_on_output=False),
    "glm4_moe": Family(attention_bias_on_output=False, router_bias=True),
    "chatglm": Family(attention_bias_on_output=False),
    "olmo2": Family(qk_norm="width"),
    "olmo3": Family(qk_norm="width"),
    "minimax_m2": Family(qk_norm="width", router_bias=True),
    "qwen2": Family(qkv_bias=True, attention_bias_on_output=False),
    "qwen2_moe": Family(qkv_bias=True, attention_bias_on_output=False, shared_gate=True),
    "qwen2_vl": Family(qkv_bias=True, attention_bias_on_output=False),
    "qwen2_5_vl": Family(qkv_bias=True, attention_bias_on_output=False),
    "seed_oss": Family(qkv_bias=True, attention_bias_on_output=False),
    "mimo": Family(qkv_bias=True, attention_bias_on_output=False),
    "qwen3": Family(qk_norm="head"),
    "qwen3_moe": Family(qk_norm="head"),
    "qwen3_vl_text": Family(qk_norm="head"),
    "qwen3_vl_moe_text": Family(qk_norm="head"),
    "qwen3_next": _QWEN_HYBRID,
    "qwen3_5": _QWEN_HYBRID,
    "qwen3_5_text": _QWEN_HYBRID,
    "qwen3_5_moe": _QWEN_HYBRID,
    "qwen3_5_moe_text": _QWEN_HYBRID,
    "gpt_oss": Family(qkv_bias=True, out_bias=True, sinks=True, router_bias=True, expert_bias=True, window_pattern=2),
    "deepseek_v3": Family(router_bias=True),
    "deepseek_v32": Family(router_bias=True),
    "kimi_k2": Family(router_bias=True),
    "kimi_k25": Family(router_bias=True),
    "glm_moe_dsa": Family(router_bias=True),
    "nemotron_h": Family(gated=False, norms=1, router_bias=True),
    "mimo_v2_flash": Family(router_bias=True),
    "ernie4_5_moe": Family(router_bias=True),
}

PARALLEL_NORM_TYPES: Final = frozenset({"falcon", "RefinedWeb", "RefinedWebModel"})
"""Their first generation runs attention and MLP in parallel behind one norm."""

DEFAULT_FAMILY: Final = Family()

PLAIN_TYPES: Final = frozenset(
    {
        "llama", "mistral", "ministral", "mistral3", "mixtral", "pixtral", "llava", "llava_next", "internlm2",
        "internlm3", "baichuan", "aquila", "xverse", "yi", "Yi", "phi3", "deepseek", "deepseek_v2", "deepseek_vl_v2",
        "kimi_vl", "kimi_k3", "minicpm", "minicpm3", "granite", "granitemoe", "olmo", "exaone", "llama4",
        "llama4_text", "smollm3", "ernie4_5", "dbrx", "jamba", "bamba", "dots1", "glm", "minimax", "minimax_text_01",
        "qwen3_vl", "qwen3_vl_moe", "nemotron-nas", "deci",
    }
)  # fmt: skip
"""Model types of the common structure, or whose config states what differs: read without an assumption."""

NOT_DECODERS: Final = frozenset(
    {
        "albert", "bart", "bert", "blip", "clip", "convbert", "deberta", "deberta-v2", "distilbert", "electra",
        "encoder-decoder", "ernie", "hubert", "layoutlm", "longformer", "m2m_100", "marian", "mbart",
        "modernbert", "mpnet", "mt5", "nomic_bert", "pegasus", "roberta", "segformer", "siglip", "speecht5",
        "swin", "t5", "umt5", "vit", "wav2vec2", "whisper", "xlm-roberta", "mamba", "mamba2", "falcon_mamba", "rwkv",
    }
)  # fmt: skip
"""Model types that are encoders, encoder-decoders or pure state-space models: not sized here."""
