"""Configs of 2026's hybrids: compressed sparse attention, delta attention with latents, shared K and V."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_config import parse_hf_config
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters
from tests.engine.published_models import published

DEEPSEEK_V4_FLASH: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "expert_dtype": "fp4",
    "head_dim": 512,
    "hidden_size": 4096,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "max_position_embeddings": 1048576,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 43,
    "num_key_value_heads": 1,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "topk_method": "noaux_tc",
    "vocab_size": 129280,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
KIMI_K3: dict[str, Any] = {
    "model_type": "kimi_k3",
    "text_config": {
        "model_type": "kimi_linear",
        "num_hidden_layers": 93,
        "hidden_size": 7168,
        "intermediate_size": 33792,
        "first_k_dense_replace": 1,
        "num_experts": 896,
        "num_experts_per_token": 16,
        "num_shared_experts": 2,
        "moe_intermediate_size": 3072,
        "routed_expert_hidden_size": 3584,
        "num_attention_heads": 96,
        "num_key_value_heads": 96,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "mla_use_output_gate": True,
        "linear_attn_config": {
            "kda_layers": [layer for layer in range(1, 94) if layer % 4 and layer != 93],
            "full_attn_layers": [*range(4, 93, 4), 93],
            "head_dim": 128,
            "num_heads": 96,
            "short_conv_kernel_size": 4,
            "use_full_rank_gate": True,
        },
        "vocab_size": 163840,
        "max_position_embeddings": 1048576,
    },
}
GEMMA_4_12B: dict[str, Any] = {
    "model_type": "gemma4_unified",
    "text_config": {
        "model_type": "gemma4_unified_text",
        "hidden_size": 3840,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 1,
        "head_dim": 256,
        "global_head_dim": 512,
        "intermediate_size": 15360,
        "attention_k_eq_v": True,
        "enable_moe_block": False,
        "sliding_window": 1024,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 8,
        "vocab_size": 262144,
        "max_position_embeddings": 131072,
    },
}
GEMMA_4_26B: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": {
        "model_type": "gemma4_text",
        "hidden_size": 2816,
        "num_hidden_layers": 30,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "head_dim": 256,
        "global_head_dim": 512,
        "intermediate_size": 2112,
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "num_experts": 128,
        "top_k_experts": 8,
        "moe_intermediate_size": 704,
        "sliding_window": 1024,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
        "vocab_size": 262144,
        "max_position_embeddings": 262144,
    },
}


def same_cache(found: ModelArch, known: ModelArch) -> bool:
    fields = ("kind", "layers", "n_kv", "head_dim", "window", "kv_lora_rank", "compress_ratio", "state_elems")

    def shape(arch: ModelArch) -> set[tuple[object, ...]]:
        return {tuple(getattr(group, name) for name in fields) for group in arch.attention}

    return shape(found) == shape(known)


@pytest.mark.parametrize(
    ("config", "name"),
    [(DEEPSEEK_V4_FLASH, "DeepSeek-V4-Flash"), (KIMI_K3, "Kimi K3"), (GEMMA_4_26B, "Gemma 4 26B-A4B")],
)
def test_config_gives_the_catalogs_architecture(config: dict[str, Any], name: str) -> None:
    found, known = parse_hf_config(config), published(name)

    assert same_cache(found, known)
    assert count_parameters(found).total == pytest.approx(count_parameters(known).total, rel=2e-4)
    assert count_parameters(found).active == pytest.approx(count_parameters(known).active, rel=3e-3)


def test_8_bit_attention_with_4_bit_experts() -> None:
    assert parse_hf_config(DEEPSEEK_V4_FLASH).native_format == "fp8_mxfp4_experts"


def test_too_few_compression_ratios() -> None:
    with pytest.raises(UnsupportedModel) as raised:
        parse_hf_config(DEEPSEEK_V4_FLASH | {"compress_ratios": [4, 128]})

    assert raised.value.field == "compress_ratios"


@pytest.mark.parametrize("key", ["num_kv_shared_layers", "hidden_size_per_layer_input"])
def test_structures_that_are_not_modelled_are_refused(key: str) -> None:
    text = GEMMA_4_12B["text_config"] | {key: 20}
    with pytest.raises(UnsupportedModel) as raised:
        parse_hf_config(GEMMA_4_12B | {"text_config": text})

    assert raised.value.field == key


def test_windows_and_heads_differ_by_layer() -> None:
    groups = {group.kind: group for group in parse_hf_config(GEMMA_4_12B).attention}

    assert (groups["sliding"].layers, groups["sliding"].n_kv, groups["sliding"].head_dim) == (40, 8, 256)
    assert (groups["full"].layers, groups["full"].n_kv, groups["full"].head_dim) == (8, 1, 512)
