"""Vision and audio towers of a ``config.json``: how many parameters they add to the text model.

    layers x ((4 h^2 + m h f) + biases + norms) + patches x h + positions x h + projector

``m`` is 3 with a gate, else 2; the projector takes ``merge^2`` patches of ``h`` at a time to the text model's width.
Of the towers in the catalog this is right to a few percent; they are a few percent of their models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_reader import MAX_FFN, MAX_LAYERS, ConfigReader

TOWERS: Final = ("vision_config", "vit_config", "visual", "vision_tower_config", "audio_config")
GATED: Final = frozenset({"pixtral", "qwen2_5_vl", "qwen2_5_omni_vision_encoder", "aimv2"})
"""Vision models with a gate in their MLP."""
AUDIO_KERNEL: Final = 3
"""Width of an audio tower's two convolutions over mel bands."""


def encoder_params(reader: ConfigReader, text_hidden: int) -> tuple[int, str]:
    """Parameters of all towers with their projectors, and the sections whose size can't be read from them.

    A tower never makes a config unusable: the text model is planned, and what is missing is said.
    """
    total, unread = 0, []
    for key in TOWERS:
        section = _section(reader, key)
        if section is None:
            continue
        try:
            params = _tower(ConfigReader(section), text_hidden)
        except UnsupportedModel:
            params = 0
        total += params
        if not params:
            unread.append(key)
    return total, ", ".join(unread)


def _section(reader: ConfigReader, key: str) -> Mapping[str, Any] | None:
    found = reader.find(key)[1]
    return found if isinstance(found, Mapping) and found else None


def _tower(tower: ConfigReader, text_hidden: int) -> int:
    """Parameters of one tower; 0 where it doesn't state its width and depth."""
    width = tower.optional("embed_dim", "width", "d_model") or tower.optional("hidden_size")
    layers = tower.optional("depth", "num_hidden_layers", "encoder_layers", "layers", maximum=MAX_LAYERS)
    if not width or not layers:
        return 0
    ffn = tower.optional("intermediate_size", "encoder_ffn_dim", maximum=MAX_FFN) or round(_mlp_ratio(tower) * width)
    matrices = 3 if set(tower.texts("model_type")) & GATED else 2
    block = 4 * width**2 + matrices * width * ffn + (4 * width + (matrices - 1) * ffn + width) + 4 * width
    return layers * block + _patches(tower, width) + _projector(tower, width, text_hidden)


def _mlp_ratio(tower: ConfigReader) -> float:
    value = tower.find("mlp_ratio")[1]
    if value is None:
        return 4.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 100:
        raise UnsupportedModel("mlp_ratio: must be 0 to 100.", field="mlp_ratio", value=repr(value)[:80])
    return float(value)


def _patches(tower: ConfigReader, width: int) -> int:
    """The convolution that makes patches, or frames of sound, and learned positions."""
    mels = tower.optional("num_mel_bins")
    if mels:
        frames = tower.optional("max_source_positions")
        return AUDIO_KERNEL * width * (mels + width) + frames * width
    patch = tower.optional("patch_size", "spatial_patch_size")
    channels = tower.integer("num_channels", "in_channels", "in_chans", default=3)
    frames = tower.integer("temporal_patch_size", default=1)
    size = tower.find("image_size")[1]
    image = tower.optional("image_size") if isinstance(size, int) else 0
    rotates = tower.has("rope_theta", "spatial_merge_size")
    positions = tower.optional("num_position_embeddings") or (0 if rotates or not patch else (image // patch) ** 2)
    return channels * frames * patch**2 * width + positions * width


def _projector(tower: ConfigReader, width: int, text_hidden: int) -> int:
    merge = tower.integer("spatial_merge_size", default=1, maximum=64)
    merged = width * merge**2
    out = tower.optional("out_hidden_size", "output_dim") or text_hidden
    mergers = 1 + len(tower.sequence("deepstack_visual_indexes") or ())
    return mergers * ((merged**2 if merge > 1 else 0) + merged * out)
