"""The training question: how many tokens, in what recipe, by when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from planner.engine.field_spec import choice, day, integer, number, text
from planner.engine.workload import PlaceAndPurchase


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion(PlaceAndPurchase):
    """A training run: how many tokens, in what recipe, by when."""

    method: str = choice(
        "Method",
        "pretrain",
        ("pretrain", "continued", "full_finetune", "lora", "qlora", "distillation"),
        "All weights; adapters on a frozen base (LoRA, QLoRA); or a student that learns from a teacher.",
        "model",
    )
    teacher: str = text("Teacher", "The model learnt from; the same vocabulary.", section="model")
    tokens: float | None = number(
        "Training tokens", None, 1, 1e17, "tokens", "Empty: compute-optimal, 20 tokens a parameter.", "model"
    )
    sequence_length: int = integer("Sequence length", 8192, 16, 16_777_216, "tokens", "One packed sample.", "model")
    global_batch_tokens: float | None = number(
        "Global batch",
        None,
        16,
        1e10,
        "tokens",
        "Tokens an optimizer step; empty: from the critical batch.",
        "model",
    )
    packing: str = choice(
        "Packing",
        "packed",
        ("packed", "padded"),
        "Documents packed into a sample, or one a sample and padding.",
        "precision",
    )
    document_tokens: float | None = number(
        "Mean document",
        None,
        1,
        16_777_216,
        "tokens",
        "Attention stays inside a document; empty: whole samples, 1,000 tokens where fine-tuning.",
        "precision",
    )
    precision: str = choice(
        "Precision",
        "bf16",
        ("bf16", "fp16", "fp8", "mxfp8", "nvfp4"),
        "Of matrix multiplications; FP8 and FP4 need accelerators that have them.",
        "precision",
    )
    optimizer: str = choice(
        "Optimizer",
        "adamw_fp32",
        ("adamw_fp32", "adamw_bf16", "adamw_8bit", "adamw_8bit_no_master", "sgd_momentum", "muon"),
        "States a parameter: 12, 4, 6, 2, 8, 8 bytes.",
        "precision",
    )
    framework: str = choice(
        "Framework",
        "megatron",
        ("megatron", "fsdp2", "ddp", "deepspeed", "jax"),
        "Its measured constants, and the strategies it has.",
        "precision",
    )
    sharding: str = choice(
        "Sharding",
        "auto",
        ("auto", "none", "zero1", "zero2", "zero3", "hsdp"),
        "Over data-parallel ranks: optimizer states (ZeRO-1), gradients (2), weights (3); HSDP in a node.",
        "layout",
    )
    recompute: str = choice(
        "Recompute",
        "auto",
        ("auto", "none", "selective", "full"),
        "Activations computed again in backward: less memory, more time. auto: the least that fits.",
        "precision",
    )
    tensor_parallel: int | None = integer("Tensor parallel", None, 1, 1024, "GPUs", "Empty: search.", "layout")
    pipeline_parallel: int | None = integer("Pipeline parallel", None, 1, 256, "stages", "Empty: search.", "layout")
    context_parallel: int | None = integer("Context parallel", None, 1, 1024, "GPUs", "Empty: search.", "layout")
    expert_parallel: int | None = integer("Expert parallel", None, 1, 1024, "GPUs", "Empty: search.", "layout")
    micro_batch: int | None = integer("Micro-batch", None, 1, 4096, "sequences", "Empty: search.", "layout")
    pipeline_schedule: str = choice(
        "Pipeline schedule",
        "auto",
        ("auto", "1f1b", "interleaved", "zero_bubble"),
        "auto interleaves where framework and layers allow.",
        "layout",
    )
    async_tensor_parallel: str = choice(
        "Async tensor parallel",
        "no",
        ("no", "yes"),
        "Its communication in pieces behind the multiplication.",
        "layout",
    )
    expert_routing: str = choice(
        "Expert routing",
        "balanced",
        ("balanced", "natural"),
        "Equal shares for every expert, as benchmarks force, or as the router decides on real data.",
        "layout",
    )
    offload: str = choice(
        "CPU offload",
        "none",
        ("none", "optimizer", "states"),
        "What the host keeps: optimizer states, or weights and gradients too; it does the update.",
        "precision",
    )
    gradient_compression: str = choice(
        "Gradient compression",
        "none",
        ("none", "8bit", "1bit"),
        "Of what data-parallel ranks exchange: 16 bit, 8, or signs with error feedback.",
        "layout",
    )
    lora_rank: int = integer("LoRA rank", 16, 1, 4096, "rank", "Of adapters on every linear layer.", "model")
    finish_days: float | None = number("Finish within", None, 0.01, 10_000, "days", "Calendar days.", "traffic")
    finish_by: date | None = day("Finish by", "Over before this day begins; the tighter of the two holds.", "traffic")
    start_on: date | None = day("Start", "Empty: today.", "traffic")
    budget_usd: float | None = number(
        "Spend at most", None, 1, 1e12, "USD", "For the whole run, storage included.", "traffic"
    )
    nodes: int | None = integer("Nodes", None, 1, 100_000, "nodes", "Exactly so many. Empty: search.", "traffic")
    gpus: int | None = integer("GPUs", None, 1, 1_000_000, "GPUs", "In place of nodes. Empty: search.", "traffic")
    max_nodes: int = integer("Most nodes", 256, 1, 100_000, "nodes", "Options that need more are rejected.", "where")
    goodput: float = number(
        "Goodput",
        0.9,
        0.05,
        1,
        "share",
        "Share of wall time that advances the run, at most; failures may take more.",
        "run",
    )
    gpu_hours_per_interruption: float = number(
        "GPU-hours between failures",
        50_677.0,
        10,
        1e9,
        "GPU-hours",
        "50,677 is Llama 3 405B's: 419 interruptions in 54 days on 16,384 H100.",
        "run",
    )
    spot_interruptions_per_node_day: float = number(
        "Spot interruptions", 0.1, 0, 100, "a node and day", "Of nodes bought as spot; 5 to 15 % a day is usual.", "run"
    )
    restart_minutes: float = number(
        "Restart", 10.0, 0, 10_000, "minutes", "From an interruption until steps go on.", "run"
    )
    replacement_minutes: float = number(
        "Node replacement", 0.0, 0, 100_000, "minutes", "Wait for another node where no spare is ready.", "run"
    )
    spare_nodes: int = integer("Spare nodes", 0, 0, 100, "nodes", "Rented and idle until a node fails.", "run")
    checkpoint_stall_s: float = number(
        "Checkpoint stall",
        10.0,
        0.01,
        36_000,
        "s",
        "Time a checkpoint stops training; asynchronous ones: seconds.",
        "run",
    )
    checkpoint_minutes: float | None = number(
        "Checkpoint interval", None, 0.1, 100_000, "minutes", "Empty: what wastes least (Young).", "run"
    )
    checkpoints_kept: int = integer("Checkpoints kept", 3, 0, 10_000, "checkpoints", "Stored at one time.", "run")
    bytes_per_token: float = number(
        "Data at rest", 4.0, 0, 1e6, "bytes/token", "Token ids take 2 to 4, text about 5.", "run"
    )
    storage_usd_per_gib_month: float = number(
        "Storage price",
        0.0247,
        0,
        1000,
        "USD/GiB·month",
        "Of checkpoints and data; 0.0247 is a usual list price of object storage.",
        "run",
    )
