"""Feed-forward blocks of a config: which layers are dense or mixture-of-experts, and their sizes."""

from __future__ import annotations

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_families import Family
from planner.engine.hf_reader import MAX_EXPERTS, MAX_FFN, MAX_LAYERS, ConfigReader, check_integer
from planner.engine.model_arch import FfnGroup

EXPERT_KEYS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")


def ffn_groups(reader: ConfigReader, family: Family, hidden: int, layers: int) -> tuple[FfnGroup, ...]:
    """Groups of like feed-forward layers: leading dense ones, experts, interleaved dense, none."""
    experts = _experts(reader)
    pattern = reader.text("hybrid_override_pattern")
    if pattern:
        sparse = [character == "E" for character in pattern]
        dense = [character == "-" for character in pattern]
    else:
        sparse = _sparse_layers(reader, layers) if experts else [False] * layers
        dense = [not is_sparse for is_sparse in sparse]
    moe_layers = sum(sparse)
    if moe_layers and not experts:
        raise UnsupportedModel("n_routed_experts: missing, but there are expert layers.", field="n_routed_experts")
    leading = sparse.index(True) if moe_layers and not pattern else 0
    groups = []
    if leading:
        groups.append(_dense(reader, family, hidden, leading, leading=True))
    if moe_layers:
        groups.append(_moe(reader, family, hidden, moe_layers, experts))
    between = sum(dense) - leading
    if between:
        groups.append(_dense(reader, family, hidden, between, leading=False))
    idle = layers - moe_layers - sum(dense)
    if idle:
        groups.append(FfnGroup(kind="none", layers=idle))
    return tuple(groups)


def _experts(reader: ConfigReader) -> int:
    nested = reader.section("ffn_config")
    if nested is not None and nested.has("moe_num_experts"):
        return nested.optional("moe_num_experts", maximum=MAX_EXPERTS)
    experts = reader.optional(*EXPERT_KEYS, maximum=MAX_EXPERTS)
    return experts if experts > 1 else 0


def _sparse_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Which layers hold experts."""
    frequency = reader.sequence("moe_layer_freq") if isinstance(reader.find("moe_layer_freq")[1], list) else None
    if frequency is not None:
        if len(frequency) != layers:
            raise UnsupportedModel("moe_layer_freq: not one entry a layer.", field="moe_layer_freq")
        return [check_integer("moe_layer_freq", item, minimum=0, maximum=1) == 1 for item in frequency]
    listed = reader.sequence("moe_layers")
    if listed:
        numbers = {check_integer("moe_layers", item, minimum=0, maximum=layers - 1) for item in listed}
        return [index in numbers for index in range(layers)]
    step = reader.integer(
        "interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq", "moe_layer_interval",
        "expert_layer_period", default=1, maximum=MAX_LAYERS,
    )  # fmt: skip
    first = reader.optional("first_k_dense_replace", "moe_layer_start_index", maximum=MAX_LAYERS)
    without = reader.sequence("mlp_only_layers") or ()
    dense = {check_integer("mlp_only_layers", item, minimum=0, maximum=layers - 1) for item in without}
    sparse = [index >= first and (index + 1) % step == 0 and index not in dense for index in range(layers)]
    if not any(sparse):
        raise UnsupportedModel("first_k_dense_replace: leaves no expert layer.", field="first_k_dense_replace")
    return sparse


def dense_width(reader: ConfigReader, family: Family, hidden: int) -> int:
    """Width of a dense MLP; the family's multiple of the hidden size where it isn't stated."""
    keys = ("intermediate_size_mlp", "ffn_hidden_size", "intermediate_size", "n_inner", "ffn_dim", "d_ff", "inner_size")
    default = family.default_ffn_ratio * hidden or None
    ratio = reader.optional("expansion_ratio", maximum=MAX_FFN)
    return reader.integer(*keys, default=ratio * hidden or default, maximum=MAX_FFN)


def _dense(reader: ConfigReader, family: Family, hidden: int, layers: int, *, leading: bool) -> FfnGroup:
    return FfnGroup(
        kind="dense",
        layers=layers,
        intermediate=dense_width(reader, family, hidden),
        gated=family.gated,
        bias=family.mlp_bias or reader.flag("mlp_bias"),
        leading=leading,
    )


def _moe(reader: ConfigReader, family: Family, hidden: int, layers: int, experts: int) -> FfnGroup:
    nested = reader.section("ffn_config")
    source = nested if nested is not None and nested.has("moe_num_experts") else reader
    width = source.integer(
        "moe_intermediate_size", "expert_ffn_hidden_size", "ffn_hidden_size", "intermediate_size", "expert_dim",
        maximum=MAX_FFN,
    )  # fmt: skip
    top_k = source.integer(
        "num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_k", "num_selected_experts", "moe_topk",
        "top_k_experts",
        maximum=MAX_EXPERTS,
    )  # fmt: skip
    if top_k > experts:
        raise UnsupportedModel(
            f"num_experts_per_tok: {top_k} of {experts} experts.", field="num_experts_per_tok", value=top_k
        )
    latent = reader.optional("moe_latent_size", "routed_expert_hidden_size")
    shared = _shared_width(reader, width)
    if reader.flag("enable_moe_block"):
        # A dense MLP beside the experts, added to their output: a shared expert by another name.
        shared += dense_width(reader, family, hidden)
    extra = hidden if family.shared_gate and shared else 0
    return FfnGroup(
        kind="moe",
        layers=layers,
        intermediate=width,
        gated=family.gated,
        experts=experts,
        top_k=top_k,
        shared_intermediate=shared,
        bias=family.expert_bias,
        router_bias=family.router_bias or reader.text("topk_method") == "noaux_tc",
        expert_hidden=latent,
        extra_params=extra + 2 * hidden * latent,
    )


def _shared_width(reader: ConfigReader, expert_width: int) -> int:
    """Total width of the shared experts: stated, or a number of experts' widths."""
    stated = reader.optional(
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim",
        "shared_intermediate_size", maximum=MAX_FFN,
    )  # fmt: skip
    count = reader.optional("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", maximum=MAX_EXPERTS)
    if stated:
        return stated * max(count, 1)
    if reader.has("interleave_moe_layer_step") and not count:
        return expert_width
    return count * expert_width
