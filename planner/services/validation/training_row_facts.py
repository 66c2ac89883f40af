"""What a published training row says about recipe, layout and network; and what is assumed where it doesn't.

Recipe facts that published tables keep in their notes are read by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.training.profile import FrameworkProfile
from planner.services.validation.training_case import RACK_SCALE_DOMAIN
from planner.services.validation.training_row_arch import Row, number

NETWORK_DEFAULT_BYTES_S = {"Ampere": 25e9, "Ada": 12.5e9}
"""One GPU's share where a source doesn't state it: the reference designs of that generation."""
NETWORK_REFERENCE_BYTES_S = 50e9

Assumed = TypeVar("Assumed", int, float, str)


def assume(assumed: list[str], what: str, value: Assumed) -> Assumed:
    """Note that ``value`` was assumed for ``what``."""
    assumed.append(f"{what} {value if isinstance(value, str) else format(value, 'g')} assumed")
    return value


def prose_of(row: Row) -> str:
    """Everything a row says in prose, lower case."""
    return f"{row.get('model', '')} {row.get('framework', '')} {row.get('notes', '')}".lower()


def year_of(date: str) -> float:
    """A date as a year with fraction: mid-month where only the month is known."""
    parts = re.findall(r"\d+", date)
    if not parts:
        return 2026.0
    return float(parts[0]) + ((float(parts[1]) - 0.5) / 12 if len(parts) > 1 else 0.5)


def precision_of(label: str) -> str:
    """The matrix-multiplication format of a published precision label.

    >>> precision_of("FP8 (per-tensor current scaling)"), precision_of("BF16 (amp, fp32 master)")
    ('fp8', 'bf16')
    """
    text = label.lower()
    if "mxfp8" in text:
        return "mxfp8"
    if "fp8" in text or "float8" in text:
        return "fp8"
    if "fp4" in text:
        return "nvfp4"
    return "fp16" if text.startswith("fp16") and "bf16" not in text else "bf16"


def method_of(row: Row) -> str:
    """pretrain, full_finetune, lora or qlora, by the row's model, framework and notes."""
    text = prose_of(row)
    if "qlora" in text:
        return "qlora"
    if "lora" in text:
        return "lora"
    return "full_finetune" if re.search(r"\bsft\b|finetun|fine-tun", text) else "pretrain"


def layout_of(row: Row, arch: ModelArch, framework: FrameworkProfile, assumed: list[str]) -> dict[str, float]:
    """Parallel sizes and batches; blanks completed."""
    gpus = number(row, "gpus") or assume(assumed, "gpus", 1.0)
    tensor, pipeline, context, expert = (number(row, name) or 1.0 for name in ("tp", "pp", "cp", "ep"))
    data = number(row, "dp") or gpus / (tensor * pipeline * context)
    micro = number(row, "micro_batch_seqs")
    batch = number(row, "global_batch_seqs")
    if micro is None:
        by_stages = framework.micro_batches_are_stages and pipeline > 1 and batch
        micro = max(1.0, (batch or 1.0) / (data * pipeline)) if by_stages else 1.0
        assume(assumed, "micro_batch_seqs", micro)
    if batch is None:
        batch = assume(assumed, "global_batch_seqs", micro * data)
    virtual = number(row, "vpp")
    if virtual is None:
        virtual = most_chunks(arch.layers, int(pipeline)) if framework.interleaves else 1.0
        if pipeline > 1:
            assume(assumed, "vpp", virtual)
    return {
        "gpus": gpus,
        "tensor": tensor,
        "pipeline": pipeline,
        "virtual": max(1.0, virtual),
        "context": context,
        "expert": expert,
        "expert_tensor": _expert_tensor(row),
        "data": data,
        "micro_batch": micro,
        "global_batch": max(batch, micro * data),
    }


def _expert_tensor(row: Row) -> float:
    stated = re.search(r"ETP=(\d+)", row.get("notes", ""))
    return float(stated[1]) if stated else 1.0


def mtp_modules_of(notes: str, models: Mapping[str, int], model: str) -> int:
    """Multi-token-prediction modules trained beside the model."""
    stated = re.search(r"\bmtp-(\d)", notes)
    if stated:
        return int(stated[1])
    return 1 if "w/ mtp" in notes else models.get(model, 0)


def recompute_modules_of(notes: str) -> str:
    """Modules named after ``recompute modules``, or before ``recompute``: ``moe_act+layernorm``."""
    stated = re.search(r"recompute modules:? \[?([a-z_+, ]+)", notes) or re.search(r"([a-z_+]+) recompute\b", notes)
    known = {"mlp", "moe", "core_attn", "layernorm", "moe_act", "mla_up_proj"}
    found = [name for name in re.split(r"[+, ]+", stated[1]) if name in known] if stated else []
    return "+".join(found)


def is_fused(notes: str, default: bool) -> bool:
    """Whether kernels are compiled or hand-fused: as stated, else as the framework does.

    Rungs of a cumulative ladder keep what came before them: after packing comes compilation.
    """
    if re.search(r"\beager\b|compile off|ladder: (?:baseline|\+ packed dataset)", notes):
        return False
    return default or "compile" in notes or "cumulative ladder:" in notes


def most_chunks(layers: int, pipeline: int) -> float:
    """The most model chunks a stage (up to 12) that hold whole layers, ends counted as layers or not.

    >>> most_chunks(126, 8), most_chunks(96, 8)
    (8.0, 12.0)
    """
    if pipeline == 1:
        return 1.0
    even = [v for v in range(1, 13) if layers % (pipeline * v) == 0 or (layers + 2) % (pipeline * v) == 0]
    return float(max(even, default=1))


def topology_of(row: Row, accelerator: Accelerator) -> tuple[float, float]:
    """(GPUs a node, GPUs in one scale-up domain)."""
    stated = re.search(r"(\d+) GPUs per node", row.get("network", ""))
    domain = float(accelerator.scaleup_domain_gpus)
    if domain > RACK_SCALE_DOMAIN:
        return 4.0, domain
    per_node = float(stated[1]) if stated else 8.0
    return per_node, min(per_node, domain) if accelerator.link_bytes_s else 1.0


def network_of(text: str, per_node: float, accelerator: Accelerator, assumed: list[str]) -> float:
    """Bytes per second of one GPU's share of the node's network.

    The first statement found counts: a rate a GPU, a number of adapters and their rate, a rate a node.
    """
    gpu = re.search(r"(\d+)\s*(?:-\d+)?\s*Gb/s per GPU", text)
    if gpu:
        return float(gpu[1]) * 1e9 / 8
    rails = re.search(r"(\d+)\s*Gb/s x(\d+) per node", text) or re.search(
        r"(\d+)x (?:HDR|[^,;]*?ConnectX-\d)[^,;]*? (\d+)\s*Gb/s", text
    )
    if rails:
        return float(rails[1]) * float(rails[2]) * 1e9 / 8 / per_node
    node = re.search(r"(\d+)\s*Gb/s per node", text)
    if node:
        return float(node[1]) * 1e9 / 8 / per_node
    rate = NETWORK_DEFAULT_BYTES_S.get(accelerator.generation, NETWORK_REFERENCE_BYTES_S)
    if "single" not in text:
        assumed.append(f"network {rate / 1e9:g} GB/s a GPU assumed")
    return rate


def sharding_of(row: Row, framework: FrameworkProfile, data: float, assumed: list[str]) -> str:
    """What is sharded over data ranks: as stated, else as the framework does."""
    text = row.get("sharding", "").lower()
    for name, code in (("zero3", "zero3"), ("fsdp", "zero3"), ("zero2", "zero2"), ("zero1", "zero1"), ("none", "none")):
        if name in text:
            return code
    default = framework.default_sharding if data > 1 else "none"
    return assume(assumed, "sharding", default)


def shard_group_of(notes: str, layout: Mapping[str, float]) -> float:
    """Ranks that share one copy of the sharded states."""
    stated = re.search(r"shard group = (\d+) \(node-local", notes) or re.search(r"zero-1 within (\d+) gpus", notes)
    stated = stated or re.search(r"fsdp=(\d+)-way", notes)
    if stated:
        return float(stated[1])
    hybrid = re.search(r"(\d+)b uses hsdp", notes)
    applies = notes.startswith(f"llama2-{hybrid[1]}b") if hybrid else "hsdp" in notes
    return 8.0 if applies else layout["data"] * layout["context"]


def recompute_of(row: Row, method: str, framework: FrameworkProfile, assumed: list[str]) -> str:
    """none, selective, full, or auto where nothing is said."""
    text = row.get("recompute", "").strip().lower()
    if text in ("none", "selective", "full"):
        return text
    if framework.default_recompute != "none":
        return assume(assumed, "recompute", framework.default_recompute)
    assumed.append("recompute: the least that fits")
    return "auto"


def sequence_parallel_of(notes: str, year: float, facts: Mapping[str, object]) -> bool | None:
    """False where a row or its date rules it out; None: as the framework does."""
    if "no sequence parallel" in notes:
        return False
    since = facts.get("sequence_parallel_since", 0)
    return False if isinstance(since, int | float) and year < since else None


def optimizer_of(row: Row, default: str) -> str:
    """The optimizer whose states a row keeps."""
    text = prose_of(row)
    if "8-bit adamw" in text:
        return "adamw_8bit_no_master"
    if "amp32" in row.get("precision", "").lower() or "fp32 master" in row.get("precision", "").lower():
        return "adamw_fp32"
    return default


def grad_bytes_of(facts: Mapping[str, object], precision: str) -> float | None:
    """Bytes of an accumulated gradient where a framework keeps another width for bf16 than for fp16."""
    stated = facts.get("bf16_grad_bytes")
    return float(stated) if isinstance(stated, int | float) and precision == "bf16" else None


def offload_of(notes: str) -> str:
    """What the host keeps: sharded frameworks move weights and gradients with the optimizer's states.

    >>> offload_of("full finetune 8 gpus with optimizer/cpu offload"), offload_of("optimizer offload")
    ('states', 'optimizer')
    """
    if "cpu offload" in notes:
        return "states"
    return "optimizer" if "optimizer offload" in notes else "none"


def memory_measure_of(notes: str, default: str) -> str:
    """allocated, reserved or device: what the stated memory is."""
    if "nvidia-smi" in notes:
        return "device"
    return "reserved" if "torch reserved" in notes else default
