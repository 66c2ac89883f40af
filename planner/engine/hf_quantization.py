"""The native weight format of a config: its dtype, or the recipe of its ``quantization_config``."""

from __future__ import annotations

from planner.engine.errors import UnsupportedModel
from planner.engine.hf_reader import ConfigReader

DTYPES = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}
SMALL_GROUP = 32


def native_format(reader: ConfigReader) -> tuple[str, str]:
    """(weight format, which modules it quantizes; empty for the format's own); raises ``UnsupportedModel``."""
    recipe = reader.section("quantization_config")
    if recipe is None or not recipe.top:
        if reader.text("expert_dtype") == "fp4":
            return "fp8_mxfp4_experts", ""
        dtype = reader.text("torch_dtype", "dtype", default="bfloat16").removeprefix("torch.")
        if dtype not in DTYPES:
            raise UnsupportedModel(f"torch_dtype: {dtype!r} is not a known dtype.", field="torch_dtype", value=dtype)
        return DTYPES[dtype], ""
    method = recipe.text("quant_method", "quant_algo").lower()
    name = _recipe_format(recipe, method)
    if name == "fp8_block" and reader.text("expert_dtype") == "fp4":
        return "fp8_mxfp4_experts", ""
    return name, "" if name == "fp8_fbgemm" else _modules(recipe, method)


def _recipe_format(recipe: ConfigReader, method: str) -> str:
    match method:
        case "fp8" | "finegrained_fp8":
            return "fp8_block" if recipe.has("weight_block_size") else "fp8"
        case "fbgemm_fp8":
            return "fp8_fbgemm"
        case "mxfp4":
            return "mxfp4"
        case "awq" | "auto-round" | "auto_round":
            return _integer_format(recipe, "awq_int4")
        case "gptq":
            return _integer_format(recipe, "gptq_int4")
        case "compressed-tensors":
            return _compressed_format(recipe)
        case "modelopt" | "modelopt_fp4" | "nvfp4":
            return _modelopt_format(recipe)
        case "bitsandbytes":
            if recipe.flag("load_in_8bit", "_load_in_8bit"):
                return "int8"
            return "nf4_dq" if recipe.flag("bnb_4bit_use_double_quant") else "nf4"
    raise UnsupportedModel(
        f"quantization_config.quant_method: {method!r} is not a known recipe.",
        field="quantization_config.quant_method",
        value=method,
    )


def _integer_format(recipe: ConfigReader, four_bit: str) -> str:
    bits = recipe.integer("bits", "w_bit", default=4, minimum=2, maximum=16)
    if bits == 8:
        return "gptq_int8"
    if bits != 4:
        raise UnsupportedModel(
            f"quantization_config.bits: {bits} bits are not supported (4, 8).",
            field="quantization_config.bits",
            value=bits,
        )
    group = recipe.find("group_size", "q_group_size")[1]
    return "int4_g32" if group == SMALL_GROUP else four_bit


def _compressed_format(recipe: ConfigReader) -> str:
    """The first group's weights: number of bits, integer or float, and how scales are laid out."""
    groups = recipe.section("config_groups")
    first = groups.section(next((str(key) for key in groups.top), "")) if groups is not None else None
    weights = first.section("weights") if first is not None else None
    if weights is None:
        raise UnsupportedModel(
            "quantization_config.config_groups: no weights described.", field="quantization_config.config_groups"
        )
    bits = weights.integer("num_bits", minimum=2, maximum=16)
    kind, strategy = weights.text("type", default="int"), weights.text("strategy")
    group = weights.find("group_size")[1]
    formats = {
        ("float", 8): "fp8_block" if strategy == "block" else "fp8",
        ("float", 4): "mxfp4" if group == SMALL_GROUP else "nvfp4",
        ("int", 8): "gptq_int8" if strategy == "group" else "int8",
        ("int", 4): "int4_g32" if group == SMALL_GROUP else "gptq_int4",
    }
    name = formats.get((kind, bits))
    if name is None:
        raise UnsupportedModel(
            f"quantization_config.config_groups: {bits}-bit {kind} weights are not supported.",
            field="quantization_config.config_groups",
            value=bits,
        )
    return name


def _modelopt_format(recipe: ConfigReader) -> str:
    nested = recipe.section("quantization")
    algorithm = (nested or recipe).text("quant_algo", default="").upper()
    for part, name in (("NVFP4", "nvfp4"), ("FP8_PB", "fp8_block"), ("FP8", "fp8"), ("W4A16_AWQ", "awq_int4")):
        if part in algorithm:
            return name
    raise UnsupportedModel(
        f"quantization_config.quant_algo: {algorithm!r} is not a known recipe.",
        field="quantization_config.quant_algo",
        value=algorithm,
    )


def _modules(recipe: ConfigReader, method: str) -> str:
    """Modules quantized, where the recipe leaves attention (or all but the experts) alone."""
    if method == "mxfp4":
        return "experts"
    kept = recipe.sequence("modules_to_not_convert", "ignore", "exclude_modules") or ()
    names = [item for item in kept if isinstance(item, str)]
    if not any("self_attn" in name or "attention" in name for name in names):
        return ""
    return "experts" if any("shared_expert" in name or ".mlp." in name for name in names) else "ffn"
