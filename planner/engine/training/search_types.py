"""What the training search is asked and what it answers: layouts as columns, clusters by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.candidates import TrainingCandidates, TrainingRecipe
from planner.engine.training.layouts import AskedLayout
from planner.engine.training.memory import TrainingMemory
from planner.engine.training.profile import (
    FrameworkProfile,
)
from planner.engine.training.step import StepTime
from planner.engine.training.work import ModelWork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

USABLE_SHARE = 0.94
"""Of driver-visible memory: the rest is lost to fragmentation at the peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutQuestion:
    """What the search is asked, beside the hardware."""

    recipe: TrainingRecipe
    sequence_length: int
    global_batch: float
    batch_is_fixed: bool
    """False: the global batch may move by an eighth so that it divides."""
    asked: AskedLayout
    sharding: str
    """A ``SHARDING`` name, or auto: as the framework does."""
    recompute: str
    """A ``RECOMPUTE`` name, or auto: the least that fits."""
    framework: FrameworkProfile
    schedule: str = "auto"
    """auto (interleaved where the framework and the layers allow), 1f1b, interleaved, zero_bubble."""
    teacher: ModelWork | None = None

    @property
    def sharding_name(self) -> str:
        """What is sharded: as asked, or as the framework does."""
        return self.framework.default_sharding if self.sharding == "auto" else self.sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSize:
    """A kind of node (index) and how many of them; ``gpus`` used."""

    node: int
    nodes: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutTable:
    """All candidate layouts: equal-length columns."""

    cluster: IntArray
    """Index into the cluster list."""
    node: IntArray
    global_batch: FloatArray
    candidates: TrainingCandidates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestLayouts:
    """The best layout of each cluster that has one; equal lengths."""

    cluster: IntArray
    global_batch: FloatArray
    candidates: TrainingCandidates
    memory: TrainingMemory
    step: StepTime
    tokens_per_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """What the search found, and the numbers that broke for what it did not."""

    best: BestLayouts
    tried: int
    least_memory_bytes: FloatArray
    """By cluster: what its leanest layout needs on one GPU; NaN where no layout is valid."""
    leanest: Sequence[str]
    """By cluster: the layout meant, in words."""
