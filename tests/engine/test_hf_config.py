"""Hugging Face configs: published models come out exact."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.hf_config import parse_hf_config
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.param_count import count_parameters
from planner.engine.quantization import weight_bytes
from tests.engine.published_configs import (
    DEEPSEEK_V3,
    GEMMA_3_27B,
    GPT_OSS_120B,
    LLAMA_8B,
    MAVERICK,
    NEMOTRON_3_NANO,
    QWEN3_NEXT,
)


@pytest.mark.parametrize(
    ("config", "total", "active"),
    [
        (LLAMA_8B, 8_030_261_248, 8_030_261_248),
        (DEEPSEEK_V3, 671_026_419_200, 37_552_297_472),
        (GPT_OSS_120B, 116_829_156_672, 5_711_982_912),
        (GEMMA_3_27B, 27_009_346_304, 27_009_346_304),
        (QWEN3_NEXT, 79_674_391_296, 3_874_985_728),
        (MAVERICK, 400_712_000_000, 17_185_000_000),
        (NEMOTRON_3_NANO, 31_577_940_288, 3_580_000_000),
    ],
    ids=["gqa", "mla", "experts with sinks", "sliding", "delta net", "chunked", "mamba"],
)
def test_published_configs_count_exactly(config: dict[str, Any], total: int, active: int) -> None:
    counts = count_parameters(parse_hf_config(config))

    assert counts.total == pytest.approx(total, rel=1e-6)
    assert counts.active == pytest.approx(active, rel=1e-3)


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (
            {"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "vocab_size": 50257,
             "n_positions": 1024},
            1_557_611_200,
        ),
        (
            {"model_type": "opt", "hidden_size": 7168, "num_hidden_layers": 48, "num_attention_heads": 56,
             "ffn_dim": 28672, "vocab_size": 50272, "max_position_embeddings": 2048},
            29_974_540_288,
        ),
        (
            {"model_type": "bloom", "n_embed": 14336, "hidden_size": 14336, "n_layer": 70, "n_head": 112,
             "vocab_size": 250880},
            176_247_271_424,
        ),
        (
            {"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "vocab_size": 50400,
             "n_positions": 2048, "n_inner": None, "tie_word_embeddings": False},
            6_050_882_784,
        ),
        (
            {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
             "multi_query": True, "parallel_attn": True, "vocab_size": 65024},
            6_921_720_704,
        ),
        (
            {"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4,
             "vocab_size": 50432, "no_bias": True},
            6_649_286_656,
        ),
        (
            {"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
             "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
             "use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28},
            7_615_616_512,
        ),
        (
            {"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
             "num_key_value_heads": 16, "intermediate_size": 5632, "moe_intermediate_size": 1408, "num_experts": 60,
             "num_experts_per_tok": 4, "shared_expert_intermediate_size": 5632, "vocab_size": 151936},
            14_315_784_192,
        ),
        (
            {"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
             "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2,
             "vocab_size": 32000, "sliding_window": None},
            46_702_792_704,
        ),
        (
            {"model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
             "attn_config": {"kv_n_heads": 8},
             "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}},
            131_596_523_520,
        ),
        (
            {"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16,
             "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336, "sliding_window": 4096,
             "vocab_size": 256000, "max_position_embeddings": 8192},
            9_241_705_984,
        ),
    ],
    ids=["gpt2", "opt", "bloom", "gptj", "falcon", "mpt", "qwen2", "qwen2_moe", "mixtral", "dbrx", "gemma2"],
)  # fmt: skip
def test_older_and_nested_spellings(config: dict[str, Any], total: int) -> None:
    assert count_parameters(parse_hf_config(config)).total == pytest.approx(total, rel=2e-6)


def test_explicit_head_dim_is_read_not_inferred() -> None:
    config = {
        "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
        "tie_word_embeddings": True,
    }  # fmt: skip

    arch = parse_hf_config(config)

    assert arch.attention[0].head_dim == 128
    assert float(kv_bytes_per_token_per_gpu(arch, "bf16", 1, 1)) == 2 * 28 * 8 * 128 * 2
    assert count_parameters(arch).total == 596_049_920


def test_layer_kinds_of_hybrids() -> None:
    kinds = {group.kind: group.layers for group in parse_hf_config(GEMMA_3_27B).attention}
    assert kinds == {"sliding": 52, "full": 10}

    kinds = {group.kind: group.layers for group in parse_hf_config(QWEN3_NEXT).attention}
    assert kinds == {"linear": 36, "full": 12}

    kinds = {group.kind: group.layers for group in parse_hf_config(MAVERICK).attention}
    assert kinds == {"sliding": 36, "full": 12}

    kinds = {group.kind: group.layers for group in parse_hf_config(NEMOTRON_3_NANO).attention}
    assert kinds == {"linear": 23, "none": 23, "full": 6}


def test_window_that_is_off_or_wider_than_the_context_is_full_attention() -> None:
    off = parse_hf_config(LLAMA_8B | {"sliding_window": 4096, "use_sliding_window": False})
    wide = parse_hf_config(LLAMA_8B | {"sliding_window": 131072})
    on = parse_hf_config(LLAMA_8B | {"sliding_window": 4096})

    assert [group.kind for group in (*off.attention, *wide.attention)] == ["full", "full"]
    assert on.attention[0].kind == "sliding"


def compressed(weights: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}, **more}


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (None, "bf16"),
        ({}, "bf16"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "fbgemm_fp8"}, "fp8_fbgemm"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq_int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq_int4"),
        ({"quant_method": "gptq", "bits": 8}, "gptq_int8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4_dq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        (compressed({"num_bits": 8, "type": "float", "strategy": "channel"}), "fp8"),
        (compressed({"num_bits": 8, "type": "float", "strategy": "block"}), "fp8_block"),
        (compressed({"num_bits": 8, "type": "int", "strategy": "channel"}), "int8"),
        (compressed({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}), "int4_g32"),
        (compressed({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}), "gptq_int4"),
        (compressed({"num_bits": 4, "type": "float", "group_size": 16}), "nvfp4"),
    ],
)
def test_native_format(recipe: dict[str, Any] | None, expected: str) -> None:
    assert parse_hf_config(LLAMA_8B | {"quantization_config": recipe}).native_format == expected


def test_recipe_that_leaves_attention_alone() -> None:
    recipe = compressed({"num_bits": 4, "type": "int", "group_size": 32}, ignore=["re:.*self_attn.*", "lm_head"])
    arch = parse_hf_config(DEEPSEEK_V3 | {"quantization_config": recipe})

    assert arch.quantized_modules == "ffn"


def test_config_of_the_checkpoint_gives_its_bytes() -> None:
    assert weight_bytes(parse_hf_config(GPT_OSS_120B)).total == 65_248_815_744
