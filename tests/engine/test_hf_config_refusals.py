"""Hugging Face configs that are no model: whatever is given, it is read whole or refused by the key at fault."""

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
from planner.engine.model_arch import ModelArch
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
    without,
)


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
