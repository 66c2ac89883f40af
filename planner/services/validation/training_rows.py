"""Published training rows (the ``validate_engine training`` columns) as cases.

A blank input is unknown: what is assumed for it is listed. Recipe facts that published tables keep in
their notes (node-local shard group, natural routing, packed documents) are read by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from planner.engine.hardware import Accelerator
from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.training.power import power_share
from planner.engine.training.profile import FrameworkProfile, TrainingProfiles
from planner.services.validation.training_case import RACK_SCALE_DOMAIN, TrainingCase, sixteen_bit_peak

Row = Mapping[str, str]
FindModel = Callable[[str], ModelArch | None]
FindAccelerator = Callable[[str], Accelerator | None]

PACKED_LONG_DOCUMENTS = 1e12
NETWORK_DEFAULT_BYTES_S = {"Ampere": 25e9, "Ada": 12.5e9}
"""One GPU's share where a source doesn't state it: the reference designs of that generation."""
NETWORK_REFERENCE_BYTES_S = 50e9
DEFAULT_SEQUENCE = 4096
POWER_LIMITED = 0.75
"""Of nominal power, where a source says limited but not how far."""
MARKETING_GB_TO_BYTES = 1.069e9
"""Driver-visible bytes of a marketing GB on HBM cards (81,559 MiB for 80 GB)."""


Assumed = TypeVar("Assumed", int, float, str)
Group = TypeVar("Group", AttentionGroup, FfnGroup)


class UnreadableRow(ValueError):
    """A row that can't be turned into a case, with a reason its author can act on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Reads rows with a catalog of models, accelerators and frameworks at hand."""

    find_model: FindModel
    find_accelerator: FindAccelerator
    profiles: TrainingProfiles
    framework_patterns: tuple[tuple[str, str], ...]
    """(pattern, framework key), first match wins."""
    framework_facts: Mapping[str, Mapping[str, object]]
    fallback_framework: str
    model_aliases: Mapping[str, str]
    mtp_models: Mapping[str, int]
    """Models that are trained with multi-token-prediction modules."""

    def read(self, row: Row) -> TrainingCase:
        """The case of one row; raises ``UnreadableRow``."""
        assumed: list[str] = []
        arch = self._arch(row)
        accelerator, memory_bytes, power_share = self._accelerator(row["gpu"])
        framework = self._framework(row, assumed)
        layout = _layout(row, arch, framework, assumed)
        year = _year(row.get("date", ""))
        precision = precision_of(row.get("precision", ""))
        method = method_of(row)
        sequence = int(_number(row, "seq_len") or _assume(assumed, "seq_len", DEFAULT_SEQUENCE))
        per_node, domain = _topology(row, accelerator)
        facts = self.framework_facts[framework.key]
        notes = _text(row)
        sharding = _sharding(row, framework, layout["data"], assumed)
        return TrainingCase(
            arch=arch,
            accelerator=accelerator,
            memory_bytes=memory_bytes,
            power_share=power_share,
            gpus_per_node=per_node,
            link_domain_gpus=domain,
            network_bytes_s=_network(row.get("network", ""), per_node, accelerator, assumed),
            framework=framework.key,
            year=year,
            precision=precision,
            method=method,
            optimizer=_optimizer(row, str(facts["default_optimizer"])),
            sequence_length=sequence,
            document_tokens=self._document_tokens(row, method),
            sharding=sharding,
            shard_group=_shard_group(notes, layout),
            recompute=_recompute(row, method, framework, assumed),
            sequence_parallel=_sequence_parallel(notes, year, facts),
            flash_attention=None,
            chunked_loss="chunked" in notes or ("cumulative ladder" in notes and row.get("recompute") == "full"),
            natural_routing="natural routing" in notes,
            mtp_modules=_mtp_modules(notes, self.mtp_models, row["model"]),
            recompute_modules=_recompute_modules(notes),
            fused=_is_fused(notes, bool(facts["compiled"])),
            async_tensor=bool(re.search(r"async ?tp", notes)),
            dropout=year < self.profiles.frameworks[framework.key].flash_attention_since,
            grad_bytes=_grad_bytes(framework.key, precision),
            lora_rank=16,
            memory_measure=_memory_measure(notes, str(facts["memory_measure"])),
            assumptions=tuple(assumed),
            **layout,
        )

    def _arch(self, row: Row) -> ModelArch:
        """The catalog's architecture where the row means it, else the row's own columns."""
        known = self.find_model(self.model_aliases.get(row["model"], row["model"]))
        layers, hidden = _number(row, "layers"), _number(row, "hidden")
        if known is not None and hidden in (None, known.hidden):
            return _with_layers(known, int(layers)) if layers and int(layers) != known.layers else known
        if layers is None or hidden is None:
            raise UnreadableRow(
                f"model {row['model']!r} is not in the catalog and the row states no layers and hidden size: "
                "give them, or name a catalog model."
            )
        return _arch_from_columns(row)

    def _accelerator(self, text: str) -> tuple[Accelerator, float, float]:
        name, _, variant = text.partition("(")
        found = self.find_accelerator(name.strip())
        if found is None:
            raise UnreadableRow(f"gpu {text!r} is not in the catalog.")
        memory = re.search(r"(\d+)\s*GB", variant)
        watts = re.search(r"(\d+)\s*W\b", variant)
        limit = float(watts[1]) if watts else (found.tdp_w or 0.0) * (POWER_LIMITED if "limited" in variant else 1.0)
        reference = self.profiles.reference_watts_per_tflop
        share = power_share(found.generation, limit, sixteen_bit_peak(found), reference)
        return found, float(memory[1]) * MARKETING_GB_TO_BYTES if memory else found.memory_bytes, share

    def _framework(self, row: Row, assumed: list[str]) -> FrameworkProfile:
        text = row.get("framework", "")
        for pattern, key in self.framework_patterns:
            if re.search(pattern, text):
                return self.profiles.frameworks[key]
        _assume(assumed, "framework profile", self.fallback_framework)
        return self.profiles.frameworks[self.fallback_framework]

    def _document_tokens(self, row: Row, method: str) -> float:
        if method == "pretrain" or re.search(r"govreport", _text(row)):
            return PACKED_LONG_DOCUMENTS
        return self.profiles.finetune_document_tokens


def _number(row: Row, column: str) -> float | None:
    try:
        return float(row.get(column) or "")
    except ValueError:
        return None


def _assume(assumed: list[str], what: str, value: Assumed) -> Assumed:
    assumed.append(f"{what} {value if isinstance(value, str) else format(value, 'g')} assumed")
    return value


def _text(row: Row) -> str:
    return f"{row.get('model', '')} {row.get('framework', '')} {row.get('notes', '')}".lower()


def _year(date: str) -> float:
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
    text = _text(row)
    if "qlora" in text:
        return "qlora"
    if "lora" in text:
        return "lora"
    return "full_finetune" if re.search(r"\bsft\b|finetun|fine-tun", text) else "pretrain"


def _layout(row: Row, arch: ModelArch, framework: FrameworkProfile, assumed: list[str]) -> dict[str, float]:
    gpus = _number(row, "gpus") or _assume(assumed, "gpus", 1.0)
    tensor, pipeline, context, expert = (_number(row, name) or 1.0 for name in ("tp", "pp", "cp", "ep"))
    data = _number(row, "dp") or gpus / (tensor * pipeline * context)
    micro = _number(row, "micro_batch_seqs")
    batch = _number(row, "global_batch_seqs")
    if micro is None:
        by_stages = framework.micro_batches_are_stages and pipeline > 1 and batch
        micro = max(1.0, (batch or 1.0) / (data * pipeline)) if by_stages else 1.0
        _assume(assumed, "micro_batch_seqs", micro)
    if batch is None:
        batch = _assume(assumed, "global_batch_seqs", micro * data)
    virtual = _number(row, "vpp")
    if virtual is None:
        virtual = most_chunks(arch.layers, int(pipeline)) if framework.interleaves else 1.0
        if pipeline > 1:
            _assume(assumed, "vpp", virtual)
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


def _mtp_modules(notes: str, models: Mapping[str, int], model: str) -> int:
    stated = re.search(r"\bmtp-(\d)", notes)
    if stated:
        return int(stated[1])
    return 1 if "w/ mtp" in notes else models.get(model, 0)


def _recompute_modules(notes: str) -> str:
    """Modules named after ``recompute modules``, or before ``recompute``: ``moe_act+layernorm``."""
    stated = re.search(r"recompute modules:? \[?([a-z_+, ]+)", notes) or re.search(r"([a-z_+]+) recompute\b", notes)
    known = {"mlp", "moe", "core_attn", "layernorm", "moe_act", "mla_up_proj"}
    found = [name for name in re.split(r"[+, ]+", stated[1]) if name in known] if stated else []
    return "+".join(found)


def _is_fused(notes: str, default: bool) -> bool:
    if re.search(r"\beager\b|compile off|baseline|\+ packed dataset", notes):
        return False
    return default or "compile" in notes


def most_chunks(layers: int, pipeline: int) -> float:
    """The most model chunks a stage (up to 12) that hold whole layers, ends counted as layers or not.

    >>> most_chunks(126, 8), most_chunks(96, 8)
    (8.0, 12.0)
    """
    if pipeline == 1:
        return 1.0
    even = [v for v in range(1, 13) if layers % (pipeline * v) == 0 or (layers + 2) % (pipeline * v) == 0]
    return float(max(even, default=1))


def _topology(row: Row, accelerator: Accelerator) -> tuple[float, float]:
    """(GPUs a node, GPUs in one scale-up domain)."""
    stated = re.search(r"(\d+) GPUs per node", row.get("network", ""))
    domain = float(accelerator.scaleup_domain_gpus)
    if domain > RACK_SCALE_DOMAIN:
        return 4.0, domain
    per_node = float(stated[1]) if stated else 8.0
    return per_node, min(per_node, domain) if accelerator.link_bytes_s else 1.0


def _network(text: str, per_node: float, accelerator: Accelerator, assumed: list[str]) -> float:
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


def _sharding(row: Row, framework: FrameworkProfile, data: float, assumed: list[str]) -> str:
    text = row.get("sharding", "").lower()
    for name, code in (("zero3", "zero3"), ("fsdp", "zero3"), ("zero2", "zero2"), ("zero1", "zero1"), ("none", "none")):
        if name in text:
            return code
    default = framework.default_sharding if data > 1 else "none"
    return _assume(assumed, "sharding", default)


def _shard_group(notes: str, layout: Mapping[str, float]) -> float:
    stated = re.search(r"shard group = (\d+) \(node-local", notes) or re.search(r"zero-1 within (\d+) gpus", notes)
    stated = stated or re.search(r"fsdp=(\d+)-way", notes)
    if stated:
        return float(stated[1])
    hybrid = re.search(r"(\d+)b uses hsdp", notes)
    applies = notes.startswith(f"llama2-{hybrid[1]}b") if hybrid else "hsdp" in notes
    return 8.0 if applies else layout["data"] * layout["context"]


def _recompute(row: Row, method: str, framework: FrameworkProfile, assumed: list[str]) -> str:
    text = row.get("recompute", "").strip().lower()
    if text in ("none", "selective", "full"):
        return text
    if framework.default_recompute != "none":
        return _assume(assumed, "recompute", framework.default_recompute)
    assumed.append("recompute: the least that fits")
    return "auto"


def _sequence_parallel(notes: str, year: float, facts: Mapping[str, object]) -> bool | None:
    if "no sequence parallel" in notes:
        return False
    since = facts.get("sequence_parallel_since", 0)
    return False if isinstance(since, int | float) and year < since else None


def _optimizer(row: Row, default: str) -> str:
    text = _text(row)
    if "8-bit adamw" in text:
        return "adamw_8bit_no_master"
    if "amp32" in row.get("precision", "").lower() or "fp32 master" in row.get("precision", "").lower():
        return "adamw_fp32"
    return default


def _grad_bytes(framework: str, precision: str) -> float | None:
    # DeepSpeed's bf16 optimizer accumulates gradients in fp32, its fp16 one in 16 bit.
    return 4.0 if framework == "megatron_deepspeed" and precision == "bf16" else None


def _memory_measure(notes: str, default: str) -> str:
    if "nvidia-smi" in notes:
        return "device"
    return "reserved" if "torch reserved" in notes else default


def _with_layers(arch: ModelArch, layers: int) -> ModelArch:
    """``arch`` cut or stretched to ``layers`` layers; leading dense layers stay."""
    return replace(
        arch,
        layers=layers,
        attention=tuple(_scaled(list(arch.attention), arch.layers, layers)),
        ffn=tuple(_scaled(list(arch.ffn), arch.layers, layers)),
    )


def _scaled(groups: list[Group], before: int, after: int) -> list[Group]:
    fixed = [isinstance(group, FfnGroup) and group.leading for group in groups]
    kept = sum(group.layers for group, stays in zip(groups, fixed, strict=True) if stays)
    share = max(0.0, after - kept) / max(1, before - kept)
    counts = [g.layers if stays else int(g.layers * share) for g, stays in zip(groups, fixed, strict=True)]
    counts[-1] += after - sum(counts)
    return [replace(group, layers=count) for group, count in zip(groups, counts, strict=True) if count > 0]


def _arch_from_columns(row: Row) -> ModelArch:
    def cell(name: str, default: float = 0.0) -> int:
        return int(_number(row, name) or default)

    layers, hidden = cell("layers"), cell("hidden")
    heads = cell("heads")
    if not heads:
        raise UnreadableRow(f"model {row['model']!r}: the row states no heads.")
    attention = AttentionGroup(
        kind="full", layers=layers, n_q=heads, n_kv=cell("kv_heads", heads), head_dim=max(1, hidden // heads)
    )
    gated = row.get("gated_mlp", "").strip() not in ("0", "0.0")
    experts = cell("moe_experts")
    if experts:
        ffn = FfnGroup(
            kind="moe",
            layers=layers,
            intermediate=cell("moe_ffn", cell("ffn")),
            gated=gated,
            experts=experts,
            top_k=max(1, cell("moe_topk")),
        )
    else:
        ffn = FfnGroup(kind="dense", layers=layers, intermediate=cell("ffn", 4 * hidden), gated=gated)
    arch = ModelArch(
        name=row["model"],
        hidden=hidden,
        layers=layers,
        vocab=cell("vocab", 32_000),
        attention=(attention,),
        ffn=(ffn,),
    )
    return replace(arch, tied_embeddings=_is_tied(arch, _number(row, "params_b")))


def _is_tied(arch: ModelArch, params_b: float | None) -> bool:
    """Whether the stated parameter count is nearer to one vocabulary matrix than to two."""
    if not params_b:
        return False
    tied, untied = (
        abs(count_parameters(replace(arch, tied_embeddings=flag)).total / (params_b * 1e9) - 1)
        for flag in (True, False)
    )
    return tied < untied
