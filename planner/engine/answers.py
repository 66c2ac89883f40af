"""The answers: what a plan says, in the order a reader needs it. Plain values, ready for JSON.

Money is Decimal USD. Memory is GiB for one GPU. A ``Term`` is one line of the working: parts of a
group sum to that group's total.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from planner.engine.advice import Advice

ConfidenceClass = Literal["exact", "calibrated", "extrapolated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One line of the working."""

    group: str
    """What it is part of: step_time, memory, ttft, cost, demand ..."""
    name: str
    value: float
    unit: str
    formula: str
    """The sum in words and numbers, e.g. ``weights 16.1 GB / (0.85 x 3.35 TB/s)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How far to trust a number: class, 90 % band as factors, and the nearest measurements."""

    kind: ConfidenceClass
    low: float
    """The true value lies between low x and high x the stated one in 90 % of measured cases."""
    high: float
    basis: str
    """e.g. ``34 measured cases: Hopper, vLLM, dense, fp8``."""
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a model is spread. ``replicas`` are independent copies behind the load balancer (serving)
    or data-parallel ranks (training)."""

    tensor: int
    pipeline: int
    expert: int
    context: int
    replicas: int

    @property
    def gpus_per_replica(self) -> int:
        """Of a serving replica: experts wider than a tensor group bring GPUs of their own."""
        return self.pipeline * max(self.tensor, self.expert)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an option costs and how old its price is."""

    usd_per_gpu_hour: Decimal
    usd_per_node_hour: Decimal
    usd_per_hour: Decimal
    usd_per_month: Decimal
    as_of: date
    age_days: int
    is_stale: bool
    """Older than the limit of its purchase option."""
    flags: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What is rented."""

    provider: str
    instance_type: str
    region: str
    country: str
    purchase_option: str
    accelerator: str
    accelerator_name: str
    gpus_per_node: float
    nodes: int
    gpus_used: int
    gpus_billed: float
    interconnect: str
    """e.g. ``NVLink in the node, InfiniBand NDR between nodes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """GiB of one GPU; the named parts and ``free`` sum to ``capacity``."""

    capacity_gib: float
    parts_gib: dict[str, float]
    free_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpeed:
    """Speed of one option at the asked peak. ms; tokens per second of the whole system."""

    ttft_ms: dict[str, float]
    """By statistic: mean, p50, p90, p95, p99."""
    tpot_ms: dict[str, float | None]
    """By the same; null where the only output token comes with the prefill."""
    output_tok_s: float
    output_tok_s_per_gpu: float
    peak_requests_s: float
    """The demand it is sized for."""
    capacity_requests_s: float
    """What it sustains within the SLOs."""
    concurrency: float
    """Requests in flight at the peak, all replicas."""
    max_concurrency: float
    """That KV memory and the batch limit admit, all replicas."""
    utilization: float
    """Peak demand over capacity; a simulation's ``utilization`` is the share of time that GPUs are busy."""
    kv_cache_used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What one replica's KV cache admits, one attention rank, before any planning margin."""

    request_tokens: int
    """Input and output as asked."""
    concurrency: float
    """Requests of that length, held whole."""
    max_model_len: int
    """The longest request the engine is started for."""
    concurrency_at_max_model_len: float
    kv_cache_tokens: int
    """The engine's own token line."""
    log_lines: tuple[str, ...]
    """What the engine prints when it starts; empty where its words aren't known."""
    confidence: Confidence
    """Of what a pool of a stated size admits: exact where the engine's allocator is followed block by block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPool:
    """The replicas that only prefill, where pools are split; the option's own layout then only decodes."""

    layout: Layout
    gpus: int
    gpus_per_decode_gpu: float
    """The ratio P:D."""
    utilization: float
    """Peak demand over what the pool prefills."""
    kv_transfer_gib: float
    """KV cache of one prompt, one GPU's share."""
    kv_transfer_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineJob:
    """Requests that are all queued at once, on one option."""

    requests: int
    hours: float
    """Until the last is answered, every replica busy."""
    usd: Decimal
    """For those hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceOption:
    """One accepted cluster."""

    id: str
    cluster: Cluster
    layout: Layout
    prefill_pool: PrefillPool | None
    """None where the same replicas prefill and decode."""
    weight_format: str
    kv_format: str
    max_num_batched_tokens: int
    """Tokens an iteration of one attention rank."""
    price: Price
    usd_per_million_input: Decimal
    usd_per_million_output: Decimal | None
    """Null where the only output token comes with the prefill: input carries the whole bill."""
    usd_per_million_tokens: Decimal
    """Of all tokens, at the mean (not peak) load: what the month's bill divides to."""
    speed: ServingSpeed
    memory: GpuMemory
    admission: Admission
    limit: str
    """The resource that binds: kv_memory, decode_bandwidth, compute, ttft_slo, tpot_slo, batch_limit ..."""
    working: tuple[Term, ...]
    confidence: Confidence
    """Of throughput, and so of the number of replicas and the cost."""
    ttft_confidence: Confidence
    tpot_confidence: Confidence
    memory_confidence: Confidence
    """Of the KV pool's size, and so of everything that it admits."""
    job: OfflineJob | None
    """None where clients are answered."""
    on_pareto_front: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why something can't serve: a reason with the number that broke. ``count`` options share it."""

    subject: str
    """What was tried, e.g. ``1x L4 (24 GB), TP1, bf16``."""
    code: str
    reason: str
    value: float | None
    limit: float | None
    unit: str
    count: int
    tried: bool = True
    """Whether they are among the options tried; else their offers were ruled out before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """The model as the engine understood it."""

    name: str
    hf_id: str
    total_params: int
    active_params: int
    layers: int
    attention: str
    native_format: str
    kv_bytes_per_token: float
    """16-bit, whole model, one token."""
    max_context: int | None
    """None: not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the answers to all questions have."""

    question: dict[str, object]
    catalog_version: str
    engine_version: str
    priced_on: date
    model: ModelSummary
    options: tuple[Any, ...]
    """Ranked: the cheapest that meets every limit first."""
    recommended: str = ""
    """Id of the cheapest option with a price young enough to act on; empty without options."""
    options_found: int
    """That meet the question; the best of them are listed."""
    options_beaten: int = 0
    """That would too, but are neither cheaper nor faster than another on the same nodes."""
    options_tried: int
    """All ways to do it on the nodes of every offer: found, beaten, or rejected with a reason that was tried."""
    rejections: tuple[Rejection, ...]
    advice: tuple[Advice, ...]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePlan(Plan):
    """The answer to an ``InferenceQuestion``."""

    options: tuple[InferenceOption, ...]
    peak_requests_s: float
    mean_requests_s: float
