"""One model on every candidate: memory, admission and step coefficients, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from planner.engine.candidates import Candidates
from planner.engine.collectives import LINK_CLASSES, Topology
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.kv_cache import max_concurrency
from planner.engine.memory import ServingMemory, ServingMemoryProfile, serving_memory
from planner.engine.model_arch import ModelArch
from planner.engine.offers import Shape
from planner.engine.serving import AdmissionLimits
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_candidates import ServingCandidates, ServingCoefficients, build_coefficients
from planner.engine.units import GB
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]

PREEMPTION_MARGIN = 0.95
"""Share of the KV pool planned for: an engine that runs to the last block preempts (handbook 6.4)."""
PCIE_BYTES_S_BY_GEN = {3: 16 * GB, 4: 32 * GB, 5: 64 * GB, 6: 128 * GB}
"""A x16 slot, one direction, by PCI-SIG generation."""
UNKNOWN_NETWORK_BYTES_S = 10 * GB / 8
"""Where a provider states no network: 10 Gbit/s Ethernet, the least any of them sells."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """Candidates with what the engine knows of each; equal lengths."""

    candidates: Candidates
    serving: ServingCandidates
    memory: ServingMemory
    limits: AdmissionLimits
    coefficients: ServingCoefficients
    kv_format: str

    def rows(self, keep: NDArray[np.bool_]) -> Evaluated:  # pragma: no cover - replaced below
        raise NotImplementedError


def evaluate(
    arch: ModelArch,
    shapes: Sequence[Shape],
    candidates: Candidates,
    question: InferenceQuestion,
    profiles: ServingProfiles,
    memory_profile: ServingMemoryProfile,
) -> Evaluated:
    """Memory, admission and step coefficients of every candidate."""
    raise NotImplementedError
