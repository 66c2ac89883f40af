"""Recurrent layers of a config: gated DeltaNet, Kimi delta attention, Mamba 2 and Mamba.

Each keeps a fixed state a sequence; its parameters are counted whole, because no other part of the
engine needs their split.
"""

from __future__ import annotations

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_reader import MAX_HEADS, ConfigReader
from planner.engine.model_arch import AttentionGroup

WIDE_STATE_BYTES = 4
"""Recurrent states are kept in fp32 by the published models' own settings."""


def linear_group(reader: ConfigReader, hidden: int, layers: int) -> AttentionGroup:
    """``layers`` recurrent layers; raises ``UnsupportedModel`` where their sizes aren't stated."""
    if reader.has("linear_num_value_heads"):
        return delta_net_group(reader, hidden, layers)
    kimi = reader.section("linear_attn_config")
    if kimi is not None:
        return kimi_delta_group(kimi, hidden, layers)
    if reader.has("mamba_num_heads", "mamba_n_heads"):
        return mamba2_group(reader, hidden, layers)
    if reader.has("mamba_d_state", "ssm_state_size"):
        return mamba_group(reader, hidden, layers)
    raise UnsupportedModel(
        "layer_types: recurrent layers without their sizes (linear_num_value_heads, mamba_num_heads or mamba_d_state).",
        field="layer_types",
    )


def delta_net_group(reader: ConfigReader, hidden: int, layers: int) -> AttentionGroup:
    """Gated DeltaNet: state ``value heads x key dim x value dim``, a short convolution over q, k and v."""
    key_heads = reader.integer("linear_num_key_heads", maximum=MAX_HEADS)
    value_heads = reader.integer("linear_num_value_heads", maximum=MAX_HEADS)
    key_dim, value_dim = reader.integer("linear_key_head_dim"), reader.integer("linear_value_head_dim")
    kernel = reader.integer("linear_conv_kernel_dim", default=4, maximum=1024)
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolved = 2 * keys + values
    projections = hidden * (2 * keys + 2 * values) + 2 * hidden * value_heads + values * hidden
    return AttentionGroup(
        kind="linear",
        layers=layers,
        n_q=value_heads,
        n_kv=key_heads,
        head_dim=key_dim,
        v_head_dim=value_dim,
        state_elems=value_heads * key_dim * value_dim,
        state_elem_bytes=WIDE_STATE_BYTES,
        conv_state_elems=convolved * (kernel - 1),
        extra_params=projections + convolved * kernel + 2 * value_heads + value_dim,
    )


def kimi_delta_group(reader: ConfigReader, hidden: int, layers: int) -> AttentionGroup:
    """Kimi delta attention: as DeltaNet with a decay a channel and low-rank gates (arXiv 2510.26692)."""
    heads, head_dim = reader.integer("num_heads", maximum=MAX_HEADS), reader.integer("head_dim")
    kernel = reader.integer("short_conv_kernel_size", default=4, maximum=1024)
    width = heads * head_dim
    low_rank = hidden * head_dim + head_dim * width
    gates = low_rank + (hidden * width if reader.flag("use_full_rank_gate") else low_rank)
    return AttentionGroup(
        kind="linear",
        layers=layers,
        n_q=heads,
        n_kv=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        state_elems=heads * head_dim * head_dim,
        state_elem_bytes=WIDE_STATE_BYTES,
        conv_state_elems=3 * width * (kernel - 1),
        extra_params=4 * hidden * width + hidden * heads + gates + 3 * width * kernel + heads + width + head_dim,
    )


def mamba2_group(reader: ConfigReader, hidden: int, layers: int) -> AttentionGroup:
    """Mamba 2: state ``heads x head dim x state size``."""
    heads = reader.integer("mamba_num_heads", "mamba_n_heads", maximum=MAX_HEADS)
    expand = reader.integer("mamba_expand", "expand", default=2, maximum=1024)
    head_dim = reader.integer("mamba_head_dim", "mamba_d_head", default=max(1, expand * hidden // heads))
    groups = reader.integer("n_groups", "mamba_n_groups", default=1, maximum=MAX_HEADS)
    state = reader.integer("ssm_state_size", "mamba_d_state")
    kernel = reader.integer("conv_kernel", "mamba_d_conv", default=4, maximum=1024)
    inner = heads * head_dim
    convolved = inner + 2 * groups * state
    bias = convolved if reader.flag("use_conv_bias", "mamba_conv_bias", default=True) else 0
    projections = hidden * (inner + convolved + heads) + inner * hidden
    return AttentionGroup(
        kind="linear",
        layers=layers,
        n_q=heads,
        n_kv=groups,
        head_dim=head_dim,
        state_elems=inner * state,
        state_elem_bytes=WIDE_STATE_BYTES,
        conv_state_elems=convolved * (kernel - 1),
        extra_params=projections + convolved * kernel + bias + 3 * heads + inner,
    )


def mamba_group(reader: ConfigReader, hidden: int, layers: int) -> AttentionGroup:
    """Mamba: state ``expand x hidden x state size``, input-dependent steps of rank ``dt_rank``."""
    state = reader.integer("mamba_d_state", "ssm_state_size")
    expand = reader.integer("mamba_expand", "expand", default=2, maximum=1024)
    kernel = reader.integer("mamba_d_conv", "conv_kernel", default=4, maximum=1024)
    inner = expand * hidden
    rank = reader.integer("mamba_dt_rank", "time_step_rank", default=-(-hidden // 16))
    projections = 2 * hidden * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden
    return AttentionGroup(
        kind="linear",
        layers=layers,
        state_elems=inner * state,
        state_elem_bytes=WIDE_STATE_BYTES,
        conv_state_elems=inner * (kernel - 1),
        extra_params=projections + inner * (kernel + 1) + inner * state + 2 * inner,
    )
