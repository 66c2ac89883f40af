"""The inference question, and what it shares with the training question: named, bounded fields.

One flat set for form, URL, API and CLI. Each field carries its unit, bounds, default and one-line help as metadata;
``question_reading`` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.engine.field_spec import FieldSpec, ask, choice, choices, integer, number

PURCHASE_OPTIONS = (
    "on_demand",
    "spot",
    "reserved_1y",
    "reserved_3y",
    "marketplace",
    "monthly",
    "capacity_block",
)
WEIGHT_FORMATS = (
    "auto",
    "bf16",
    "fp16",
    "fp8",
    "fp8_block",
    "int8",
    "awq_int4",
    "gptq_int4",
    "mxfp4",
    "nvfp4",
    "mxfp8",
    "gptq_int8",
    "int4_g32",
    "gguf_q8_0",
    "gguf_q4_k_m",
)
KV_FORMATS = ("auto", "bf16", "fp8", "int8", "int4", "nvfp4")
SERVING_ENGINES = ("vllm", "tensorrt_llm", "sglang", "llama_cpp", "triton")
SPECULATION = ("none", "ngram", "eagle", "mtp", "draft_model")
POOLS = ("together", "split", "both")
BATCHING = ("continuous", "dynamic", "static")
ATTENTION_RANKS = ("auto", "tensor", "data")
PREFIXES = ("private", "shared")
TOKEN_BUDGETS = ("1024", "2048", "4096", "8192", "16384", "32768")
PERCENTILES = ("mean", "p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceAndPurchase:
    """Where to look and how to buy: the filters both questions share."""

    model: str = ask(
        FieldSpec(
            kind="text",
            label="Model",
            help="A catalog name or a Hugging Face id; or give config.",
            section="model",
        ),
        "",
    )
    config: Mapping[str, Any] | None = ask(
        FieldSpec(kind="config", label="config.json", help="The model's own Hugging Face config.", section="model")
    )
    providers: tuple[str, ...] = choices("Providers", (), (), "Empty means every provider.", "where")
    countries: tuple[str, ...] = choices(
        "Countries", (), (), "ISO codes. Data residency: only regions in these countries.", "where"
    )
    accelerators: tuple[str, ...] = choices("Accelerators", (), (), "Empty means every accelerator.", "where")
    instance_types: tuple[str, ...] = choices(
        "Nodes to use", (), (), "Instance types as provider/name. Empty means every type.", "where"
    )
    purchase_options: tuple[str, ...] = choices(
        "Purchase options", ("on_demand",), PURCHASE_OPTIONS, "Spot can be taken away at short notice.", "buy"
    )
    max_price_age_days: int | None = integer(
        "Oldest price", None, 0, 3650, "days", "Leave out offers whose price was read longer ago.", "buy"
    )
    budget_usd_per_month: float | None = number(
        "Budget", None, 1, 1e12, "USD/month", "Options above it are rejected.", "buy"
    )
    max_options: int = integer("Options listed", 50, 1, 500, "options", "How many options the answer lists.")


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceQuestion(PlaceAndPurchase):
    """A model and its traffic.

    Traffic is stated in one of four ways: ``requests_per_second`` (mean, open loop), ``users`` with
    ``requests_per_user_per_day``, ``concurrency`` (a fixed number of clients, closed loop), or ``offline_requests``
    to be done within ``offline_hours`` (all queued at once).
    """

    input_tokens: int = integer("Input", 1000, 1, 10_000_000, "tokens", "Mean prompt length.", "model")
    output_tokens: int = integer("Output", 250, 1, 1_000_000, "tokens", "Mean answer length.", "model")
    requests_per_second: float | None = number(
        "Mean load", None, 1e-6, 1e7, "req/s", "Requests a second, averaged over the day.", "traffic"
    )
    users: float | None = number("Users", None, 1, 1e10, "users", "Daily active users.", "traffic")
    requests_per_user_per_day: float | None = number(
        "Requests a user", None, 1e-3, 1e6, "req/day", "Mean over active users.", "traffic"
    )
    concurrency: int | None = integer(
        "Concurrent clients",
        None,
        1,
        10_000_000,
        "clients",
        "Closed loop: each waits for its answer.",
        "traffic",
    )
    offline_requests: int | None = integer(
        "Offline requests", None, 1, 10**12, "requests", "A job: all queued at once, no limit on the wait.", "traffic"
    )
    offline_hours: float | None = number(
        "Done within", None, 0.01, 100_000, "h", "Time for the offline requests.", "traffic"
    )
    peak_factor: float = number(
        "Peak factor", 2.0, 1, 100, "x", "Busiest minutes over the daily mean; 2-3 is usual.", "traffic"
    )
    headroom: float = number("Headroom", 0.2, 0, 0.9, "share", "Share of capacity kept free at the peak.", "traffic")
    spare_replicas: int = integer(
        "Spare replicas",
        0,
        0,
        1000,
        "replicas",
        "Ready beside those the peak needs; a lost node takes all of its own.",
        "traffic",
    )
    arrival_cv: float = number(
        "Burstiness", 1.0, 0, 10, "CV", "Coefficient of variation of gaps between requests; 1 is Poisson."
    )
    ttft_ms: float | None = number(
        "TTFT limit", None, 1, 3.6e6, "ms", "Wait for the first token, at the percentile of the limits.", "traffic"
    )
    tpot_ms: float | None = number(
        "TPOT limit",
        None,
        0.1,
        1e5,
        "ms",
        "Time per output token after the first, at the same percentile.",
        "traffic",
    )
    slo_percentile: str = choice(
        "Limits at", "p95", PERCENTILES, "Where in the distribution the limits hold.", "traffic"
    )
    engine: str = choice("Engine", "vllm", SERVING_ENGINES, "Its profile's constants are used.", "precision")
    engine_version: str = ask(
        FieldSpec(
            kind="text",
            label="Engine version",
            help="Such as 0.20.1, nightly or a commit: speed and memory are that version's. Empty: the newest known.",
            section="precision",
            max_length=40,
        ),
        "",
    )
    weight_formats: tuple[str, ...] = choices(
        "Weight format",
        ("auto",),
        WEIGHT_FORMATS,
        "auto tries what model and accelerator support.",
        "precision",
    )
    kv_format: str = choice("KV cache format", "auto", KV_FORMATS, "auto keeps 16 bit.", "precision")
    tensor_parallel: int | None = integer("Tensor parallel", None, 1, 1024, "GPUs", "Empty: search.", "precision")
    pipeline_parallel: int | None = integer("Pipeline parallel", None, 1, 256, "stages", "Empty: search.", "precision")
    expert_parallel: int | None = integer("Expert parallel", None, 1, 1024, "GPUs", "Empty: search.", "precision")
    max_nodes: int = integer("Most nodes", 512, 1, 100_000, "nodes", "Options that need more are rejected.", "where")
    memory_utilization: float = number(
        "Engine's memory share", 0.9, 0.1, 1, "share", "Share of GPU memory the engine may take."
    )
    max_num_seqs: int = integer("Batch limit", 256, 1, 65_536, "sequences", "Sequences one replica runs at a time.")
    max_num_batched_tokens: int = integer(
        "Token budget", 8192, 16, 1_048_576, "tokens", "Most tokens in one engine step (chunked prefill)."
    )
    prefix_cache_hit: float = number("Prefix cache hit", 0.0, 0, 0.99, "share", "Input tokens found cached.")
    prefix_kind: str = choice(
        "Cached prefixes",
        "private",
        PREFIXES,
        "Shared: one prefix of all requests, held once; private: each client's own.",
        "advanced",
    )
    max_model_len: int | None = integer(
        "Longest request", None, 16, 10_000_000, "tokens", "As the engine is started; empty: the model's context."
    )
    token_budgets: tuple[str, ...] = choices(
        "Token budgets tried", (), TOKEN_BUDGETS, "Searched over; none: the token budget above.", "advanced"
    )
    batching: str = choice(
        "Batching",
        "continuous",
        BATCHING,
        "Static waits for a full batch, dynamic for a delay; both drain it before the next.",
        "advanced",
    )
    batch_delay_ms: float = number(
        "Batch delay", 50.0, 0, 600_000, "ms", "Dynamic batching: longest wait for company.", "advanced"
    )
    output_cv: float = number(
        "Spread of answers", 0.0, 0, 5, "CV", "Of answers' lengths; a drained batch waits for its longest.", "advanced"
    )
    pools: str = choice(
        "Prefill and decode", "together", POOLS, "Split: replicas of their own, KV sent between them.", "precision"
    )
    kv_transfer_gb_s: float | None = number(
        "KV transfer", None, 0.01, 10_000, "GB/s", "Between split pools, a GPU; empty: the node's network.", "precision"
    )
    speculation: str = choice(
        "Speculative decoding", "none", SPECULATION, "What proposes tokens for the model to verify.", "precision"
    )
    draft_model: str = ask(
        FieldSpec(
            kind="text",
            label="Draft model",
            help="For draft_model: a smaller model with the same tokenizer.",
            section="precision",
        ),
        "",
    )
    draft_tokens: int = integer("Draft tokens", 3, 1, 16, "tokens", "Proposed each step.", "precision")
    draft_acceptance: float = number(
        "Acceptance", 0.7, 0, 1, "share", "Chance that a proposed token is kept, if those before it were.", "precision"
    )
    attention_ranks: str = choice(
        "Attention over ranks",
        "auto",
        ATTENTION_RANKS,
        "Data: each rank has requests of its own beside wide expert groups; auto: where latents would be copied.",
        "precision",
    )
    expert_imbalance: float = number(
        "Expert imbalance", 1.0, 1, 10, "x", "Busiest expert rank over the mean, beyond measured cases.", "advanced"
    )
    redundant_experts: int = integer(
        "Redundant experts", 0, 0, 4096, "experts", "Copies a layer, for balance; they take memory.", "advanced"
    )
    lora_adapters: int = integer("LoRA adapters", 0, 0, 1_000_000, "adapters", "Asked for, each as often.", "advanced")
    lora_slots: int | None = integer(
        "LoRA slots", None, 1, 4096, "adapters", "Kept on the GPU; empty: up to 8.", "advanced"
    )
    lora_rank: int = integer("LoRA rank", 16, 1, 512, "rank", "The largest allowed; slots are that large.", "advanced")

    @property
    def answers_at_once(self) -> bool:
        """Whether the only output token comes with the prefill: then no token has a time or a price of its own."""
        return self.output_tokens == 1
