"""Hugging Face configs: published models come out exact, anything else is refused by name."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engine.arch_spec import arch_from_spec, arch_to_spec
from planner.engine.errors import UnsupportedModel
from planner.engine.hf_config import parse_hf_config
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.quantization import weight_bytes

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "topk_method": "noaux_tc",
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
GPT_OSS_120B: dict[str, Any] = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 2880,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "vocab_size": 201088,
    "max_position_embeddings": 131072,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
}
GEMMA_3_27B: dict[str, Any] = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 5376,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "intermediate_size": 21504,
        "sliding_window": 1024,
        "sliding_window_pattern": 6,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
    "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
}
QWEN3_NEXT: dict[str, Any] = {
    "model_type": "qwen3_next",
    "decoder_sparse_step": 1,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "mlp_only_layers": [],
    "moe_intermediate_size": 512,
    "num_attention_heads": 16,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
MAVERICK: dict[str, Any] = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text",
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_size": 5120,
        "interleave_moe_layer_step": 2,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_attention_heads": 40,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 128,
        "vocab_size": 202048,
        "max_position_embeddings": 1048576,
    },
}
NEMOTRON_3_NANO: dict[str, Any] = {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "num_hidden_layers": 52,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "intermediate_size": 1856,
    "vocab_size": 131072,
}


def without(config: dict[str, Any], *keys: str, **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in keys} | changes


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


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "hidden_size"),
        ({"_class_name": "UNet2DConditionModel", "sample_size": 64}, "hidden_size"),
        ({"model_type": "bert", "hidden_size": 768}, "model_type"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "model_type"),
        (without(LLAMA_8B, "num_hidden_layers"), "num_hidden_layers"),
        (without(LLAMA_8B, "vocab_size"), "vocab_size"),
        (LLAMA_8B | {"hidden_size": -4096}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": 0}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": "4096"}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": True}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": math.nan}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": math.inf}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": 4096.5}, "hidden_size"),
        (LLAMA_8B | {"hidden_size": 10**400}, "hidden_size"),
        (LLAMA_8B | {"num_hidden_layers": 10**6}, "num_hidden_layers"),
        (LLAMA_8B | {"num_key_value_heads": 7}, "num_key_value_heads"),
        (LLAMA_8B | {"num_attention_heads": 33, "num_key_value_heads": 33}, "head_dim"),
        (LLAMA_8B | {"layer_types": ["full_attention"] * 31}, "layer_types"),
        (LLAMA_8B | {"layer_types": ["strange"] * 32}, "layer_types"),
        (LLAMA_8B | {"layer_types": ["sliding_attention"] * 32}, "sliding_window"),
        (LLAMA_8B | {"layer_types": ["linear_attention"] * 32}, "layer_types"),
        (LLAMA_8B | {"quantization_config": {"quant_method": "magic"}}, "quantization_config.quant_method"),
        (LLAMA_8B | {"quantization_config": "fp8"}, "quantization_config"),
        (LLAMA_8B | {"torch_dtype": "float7"}, "torch_dtype"),
        (LLAMA_8B | {"block_configs": [{}]}, "block_configs"),
        (DEEPSEEK_V3 | {"num_experts_per_tok": 300}, "num_experts_per_tok"),
        (DEEPSEEK_V3 | {"first_k_dense_replace": 61}, "first_k_dense_replace"),
        (DEEPSEEK_V3 | {"n_routed_experts": 10**9}, "n_routed_experts"),
        (
            LLAMA_8B | {"hidden_size": 10**6, "intermediate_size": 10**7, "num_attention_heads": 8,
                        "num_hidden_layers": 1000},
            "hidden_size",
        ),
    ],
)  # fmt: skip
def test_refusals_name_the_key(config: dict[str, Any], field: str) -> None:
    with pytest.raises(UnsupportedModel) as raised:
        parse_hf_config(config)

    assert raised.value.field == field
    assert field.split(".", maxsplit=1)[0] in str(raised.value)


@pytest.mark.parametrize("junk", [None, [], "config", 3, {"text_config": {"text_config": {"text_config": []}}}])
def test_not_an_object_or_not_a_model(junk: object) -> None:
    with pytest.raises(UnsupportedModel):
        parse_hf_config(junk)  # type: ignore[arg-type]


def test_config_that_contains_itself() -> None:
    config: dict[str, Any] = dict(LLAMA_8B)
    config["text_config"] = config

    assert count_parameters(parse_hf_config(config)).total == 8_030_261_248


KEYS = sorted(
    {key for config in (LLAMA_8B, DEEPSEEK_V3, GPT_OSS_120B, QWEN3_NEXT, NEMOTRON_3_NANO) for key in config}
    | {"text_config", "linear_attn_config", "attn_config", "ffn_config", "quantization_config", "sliding_window",
       "moe_layer_freq", "mlp_only_layers", "attention_chunk_size", "no_rope_layers", "moe_latent_size",
       "compress_ratios", "o_lora_rank", "index_head_dim", "enable_moe_block", "routed_expert_hidden_size"}
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(0, 300),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["linear_attention", "full_attention", "fp8", "gptq", "compressed-tensors", "M*E-", "bfloat16"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=8,
)


def arch_or_refusal(config: dict[str, Any]) -> ModelArch | UnsupportedModel:
    try:
        return parse_hf_config(config)
    except UnsupportedModel as refusal:
        return refusal


@settings(max_examples=200, deadline=None)
@given(
    base=st.sampled_from([LLAMA_8B, DEEPSEEK_V3, GPT_OSS_120B, GEMMA_3_27B, QWEN3_NEXT, MAVERICK, NEMOTRON_3_NANO]),
    changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
)
def test_any_config_gives_an_architecture_or_a_named_refusal(base: dict[str, Any], changes: dict[str, Any]) -> None:
    outcome = arch_or_refusal(base | changes)

    if isinstance(outcome, UnsupportedModel):
        assert outcome.field
        assert str(outcome)
        return
    counts = count_parameters(outcome)
    assert 0 < counts.active <= counts.total <= 10**15
    assert math.isfinite(weight_bytes(outcome).total)
    assert arch_from_spec(json.loads(json.dumps(arch_to_spec(outcome)))) == outcome
