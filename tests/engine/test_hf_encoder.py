"""Vision and audio towers of configs: their parameters beside the text model's."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.hf_config import parse_hf_config
from planner.engine.model_summary import warnings
from planner.engine.param_count import count_parameters
from tests.engine.published_configs import GEMMA_3_27B
from tests.engine.published_models import published

SIGLIP = {
    "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
    "num_attention_heads": 16, "image_size": 896, "patch_size": 14,
}  # fmt: skip
QWEN2_5_VL_7B: dict[str, Any] = {
    "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "vision_config": {
        "model_type": "qwen2_5_vl", "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
        "in_chans": 3, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
    },
}  # fmt: skip
PIXTRAL = {
    "model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "image_size": 1024, "patch_size": 16, "rope_theta": 10000.0,
}  # fmt: skip
WHISPER = {
    "model_type": "qwen2_audio_encoder", "d_model": 1280, "encoder_layers": 32, "encoder_ffn_dim": 5120,
    "encoder_attention_heads": 20, "num_mel_bins": 128, "max_source_positions": 1500,
}  # fmt: skip
TEXT: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
}  # fmt: skip


def test_gemma_has_the_tower_that_its_catalog_row_has() -> None:
    arch = parse_hf_config({**GEMMA_3_27B, "vision_config": SIGLIP})
    assert arch.encoder_params == pytest.approx(published("gemma-3-27b").encoder_params, rel=0.002)
    assert arch.encoder_params == pytest.approx(423_060_336, rel=0.002)


def test_qwen_vl_has_the_total_that_its_checkpoint_has() -> None:
    arch = parse_hf_config(QWEN2_5_VL_7B)
    # The Hub counts 8.29 B parameters in Qwen2.5-VL-7B-Instruct.
    assert count_parameters(arch).total + arch.encoder_params == pytest.approx(8.29e9, rel=0.002)


@pytest.mark.parametrize(
    ("key", "tower", "params"),
    [
        # Pixtral's 400 M tower of mistralai/Pixtral-12B-2409, with a projector to this width.
        ("vision_config", PIXTRAL, 0.406e9),
        # Whisper large v3's encoder: 637 M.
        ("audio_config", WHISPER, 0.642e9),
    ],
)
def test_towers_of_other_kinds(key: str, tower: dict[str, Any], params: float) -> None:
    arch = parse_hf_config({**TEXT, key: tower})
    assert arch.encoder_params == pytest.approx(params, rel=0.02)
    assert not arch.unread_parts
    assert warnings(arch) == ()


@pytest.mark.parametrize(
    "tower",
    [
        {"model_name": "eva02_large"},
        {"hidden_size": "wide", "num_hidden_layers": 3},
        {"hidden_size": 1024, "num_hidden_layers": 24, "mlp_ratio": 1e308},
        {"hidden_size": 1024, "num_hidden_layers": 10**9},
        {"hidden_size": -1, "num_hidden_layers": 3},
    ],
)
def test_a_tower_without_sizes_is_left_out_and_said_so(tower: dict[str, Any]) -> None:
    arch = parse_hf_config({**TEXT, "vision_config": tower})
    assert (arch.encoder_params, arch.unread_parts) == (0, "vision_config")
    (warning,) = warnings(arch)
    assert warning.is_warning
    assert "the size of vision_config can't be read" in warning.suggestion


def test_a_text_model_has_none() -> None:
    arch = parse_hf_config({**TEXT, "vision_config": None, "audio_config": {}})
    assert (arch.encoder_params, arch.unread_parts) == (0, "")


def test_a_layer_that_predicts_more_tokens_is_known_from_its_config() -> None:
    assert parse_hf_config(TEXT).mtp_params == 0
    arch = parse_hf_config({**TEXT, "num_nextn_predict_layers": 1})
    # One of 32 equal layers, and the projection of two hidden states to one.
    layer = (8_030_261_248 - 2 * 128_256 * 4096) / 32
    assert arch.mtp_params == pytest.approx(layer + 2 * 4096**2, rel=1e-5)
