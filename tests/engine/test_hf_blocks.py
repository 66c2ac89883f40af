"""Pruned variants: configs that list every block come out as exactly the layers they keep."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.model_files import find_model
from planner.engine.errors import UnsupportedModel
from planner.engine.hf_config import parse_hf_config
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.param_count import count_parameters

LLAMA_70B: dict[str, Any] = {
    "model_type": "nemotron-nas",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
ATTENTION = 2 * 8192**2 + 2 * 8192 * 1024
MLP = 3 * 8192 * 28672
WHOLE = 70_553_706_496


def block(attention: dict[str, Any] | None = None, ffn: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "attention": {"n_heads_in_group": 8, "no_op": False, "replace_with_linear": False} | (attention or {}),
        "ffn": {"ffn_mult": 5.25, "no_op": False, "replace_with_linear": False} | (ffn or {}),
    }


def config(*changed: dict[str, Any]) -> dict[str, Any]:
    return LLAMA_70B | {"block_configs": [*changed, *[block()] * (80 - len(changed))]}


def test_even_blocks_are_the_parent() -> None:
    arch = parse_hf_config(config())
    assert count_parameters(arch).total == WHOLE
    assert arch.unknown_type == ""
    assert float(kv_bytes_per_token_per_gpu(arch, "bf16", 1, 1)) == 327_680


def test_blocks_without_attention_keep_no_cache() -> None:
    """31 of 80 layers without attention, as in the 49B of this parent: 49 of them hold KV."""
    pruned = parse_hf_config(config(*[block({"no_op": True, "n_heads_in_group": None})] * 31))
    assert count_parameters(pruned).total == WHOLE - 31 * ATTENTION
    assert float(kv_bytes_per_token_per_gpu(pruned, "bf16", 1, 1)) == 49 * 4096
    published = find_model("nvidia/Llama-3_3-Nemotron-Super-49B-v1")
    assert published is not None
    assert float(kv_bytes_per_token_per_gpu(published, "bf16", 1, 1)) == 49 * 4096


def test_narrow_and_replaced_blocks() -> None:
    halved = parse_hf_config(config(block(ffn={"ffn_mult": 2.625})))
    assert count_parameters(halved).total == WHOLE - MLP // 2
    linear = parse_hf_config(config(block({"replace_with_linear": True}, {"replace_with_linear": True})))
    assert count_parameters(linear).total == WHOLE - ATTENTION - MLP + 2 * 8192**2
    none = parse_hf_config(config(block(ffn={"no_op": True, "ffn_mult": None})))
    assert count_parameters(none).total == WHOLE - MLP


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([{}] * 80, "without its attention"),
        ([block()] * 79, "not one entry a layer"),
        ([block({"n_heads_in_group": 7})] * 80, "not divisible by 7"),
        ([block({"window_length": 8})] * 80, "windows or sparsity"),
        ([block(ffn={"ffn_mult": "wide"})] * 80, "ffn_mult"),
        ([block({"no_op": True})] * 80, "no block has attention"),
    ],
)
def test_what_can_not_be_sized_is_refused(blocks: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UnsupportedModel) as refused:
        parse_hf_config(LLAMA_70B | {"block_configs": blocks})
    assert said in str(refused.value)
    assert refused.value.field == "block_configs"
