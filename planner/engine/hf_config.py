"""A Hugging Face ``config.json`` as a ``ModelArch``: the exact layer groups it describes.

The config is untrusted input: whatever it holds, the outcome is an architecture or an
``UnsupportedModel`` that names the key at fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_attention import attention_groups
from planner.engine.hf_blocks import KEY as BLOCKS
from planner.engine.hf_blocks import block_groups
from planner.engine.hf_encoder import encoder_params
from planner.engine.hf_families import DEFAULT_FAMILY, FAMILIES, NOT_DECODERS, PARALLEL_NORM_TYPES, PLAIN_TYPES, Family
from planner.engine.hf_ffn import ffn_groups
from planner.engine.hf_quantization import native_format
from planner.engine.hf_reader import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, ConfigReader
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters

MAX_PARAMETERS = 10**15
PREDICTORS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
"""How many layers predict further tokens, in the spellings there are."""
DEFAULT_NAME = "model from config.json"


def parse_hf_config(config: Mapping[str, Any]) -> ModelArch:
    """Read a model's ``config.json``; raises ``UnsupportedModel`` naming the key at fault.

    >>> arch = parse_hf_config({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    ...     "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256})
    >>> count_parameters(arch).total
    8030261248
    """
    reader = ConfigReader(config)
    family = _family(reader)
    hidden = reader.integer("hidden_size", "n_embd", "d_model", "dim", "model_dim")
    layers = reader.integer("num_hidden_layers", "n_layer", "n_layers", "num_layers", maximum=MAX_LAYERS)
    vocab = reader.integer("vocab_size", "padded_vocab_size", maximum=MAX_VOCAB)
    context = reader.optional(
        "max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "max_sequence_length",
        maximum=MAX_CONTEXT,
    )  # fmt: skip
    weight_format, modules = native_format(reader)
    if reader.has(BLOCKS):
        attention, ffn = block_groups(reader, hidden, layers)
    else:
        attention, ffn = attention_groups(reader, family, hidden, layers), ffn_groups(reader, family, hidden, layers)
    positions = (context + family.position_offset) * hidden if family.learned_positions else 0
    towers, unread = encoder_params(reader, hidden)
    arch = ModelArch(
        name=_name(reader),
        hidden=hidden,
        layers=layers,
        vocab=vocab,
        tied_embeddings=reader.flag("tie_word_embeddings", default=family.tied),
        attention=attention,
        ffn=ffn,
        norms_per_layer=family.norms,
        norm_bias=family.norm_bias,
        parallel_block=_parallel_block(reader, family),
        position_params=positions,
        extra_params=(vocab if family.head_bias else 0) + (2 * hidden if family.embedding_norm else 0),
        max_context=context,
        native_format=weight_format,
        quantized_modules=modules,
        encoder_params=towers,
        unread_parts=unread,
        unknown_type=_unknown_type(reader),
    )
    counts = count_parameters(arch)
    if counts.total > MAX_PARAMETERS:
        raise UnsupportedModel("hidden_size: sizes multiply to more than 10^15 parameters.", field="hidden_size")
    predictors = reader.optional(*PREDICTORS, maximum=MAX_LAYERS)
    # A layer like the mean one, and the projection of two hidden states to one.
    layer = (counts.total - counts.embedding - counts.lm_head) // layers
    return replace(arch, mtp_params=predictors * (layer + 2 * hidden**2))


def _parallel_block(reader: ConfigReader, family: Family) -> bool:
    own = reader.flag("parallel_attn", default=family.parallel_block)
    return own and reader.flag("use_parallel_residual", default=True)


def _family(reader: ConfigReader) -> Family:
    """What the model type fixes; refuses types that are no decoder-only transformers."""
    types = reader.texts("model_type")
    unsized = next((name for name in types if name in NOT_DECODERS), "")
    if reader.flag("is_encoder_decoder") or unsized:
        raise UnsupportedModel(
            f"model_type: {unsized or 'encoder-decoder'!r} is not a decoder-only transformer.",
            field="model_type",
            value=unsized,
        )
    known = next((name for name in types if name in FAMILIES), "")
    family = FAMILIES.get(known, DEFAULT_FAMILY)
    if known in PARALLEL_NORM_TYPES and not reader.flag("new_decoder_architecture"):
        return replace(family, norms=1)
    return family


def _unknown_type(reader: ConfigReader) -> str:
    """The stated model type where no name is known; what states none is unknown too."""
    types = reader.texts("model_type")
    if any(name in FAMILIES or name in PLAIN_TYPES for name in types):
        return ""
    return types[0][:60] if types else "(not stated)"


def _name(reader: ConfigReader) -> str:
    stated = reader.find("_name_or_path")[1]
    if isinstance(stated, str) and stated.strip():
        return stated.strip()[:120]
    architectures = reader.find("architectures")[1]
    if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
        return architectures[0][:120]
    return next(iter(reader.texts("model_type")), DEFAULT_NAME)[:120]
