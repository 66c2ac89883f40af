"""What a training plan answers: options with their speed, memory and money, and what was ruled out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from planner.engine.answers import Cluster, Confidence, GpuMemory, Layout, Plan, Price, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpeed:
    """One training layout's speed."""

    step_s: float
    steps: int
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    mfu: float
    mfu_convention: str
    days: float
    """Calendar days, goodput included."""
    gpu_hours: float
    """Of the GPUs that train."""
    goodput: float = 1.0
    """Share of wall time that advances the run."""
    interruptions_per_day: float = 0.0
    checkpoint_interval_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOption:
    """One accepted training cluster."""

    id: str
    cluster: Cluster
    layout: Layout
    sharding: str
    recompute: str
    micro_batch: int
    grad_accumulation: int
    global_batch_tokens: int
    price: Price
    usd_storage: Decimal = Decimal(0)
    """Of the total: checkpoints kept and data, while the run goes on."""
    usd_total: Decimal
    usd_per_million_tokens: Decimal
    spare_nodes: int = 0
    """Rented beside ``cluster.nodes``; the price is of both."""
    virtual_stages: int = 1
    """Model chunks a pipeline stage holds (interleaved schedule)."""
    speed: TrainingSpeed
    memory: GpuMemory
    limit: str
    working: tuple[Term, ...]
    confidence: Confidence
    on_pareto_front: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan(Plan):
    """The answer to a ``TrainingQuestion``."""

    options: tuple[TrainingOption, ...]
    tokens: float
    global_batch_tokens: int
    """As asked, in whole sequences; else as chosen. An option's own divides over its ranks."""
    critical_batch_tokens: float = 0.0
    """Beyond it a larger batch saves hardly any steps; 0 where unknown."""
    stored_gib: float = 0.0
    """Checkpoints kept, and the data."""
    flops_total: float
    layouts_tried: int = 0
    """Of all clusters together: an option is the fastest that fits its own."""
