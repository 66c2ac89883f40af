"""What a serving engine runs on: vendors, and the weight formats its kernels have on a generation.

Matrix units alone don't decide: an engine without kernels for a format refuses to load such weights, and one with
weight-only kernels runs a format that the card can't multiply in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.engine.hardware import Accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSupport:
    """Data with a source; what isn't recorded is not restricted."""

    vendors: tuple[str, ...] = ()
    """Accelerator vendors it runs on; empty: any."""
    least_capability: float = 0.0
    """CUDA compute capability it needs at all."""
    format_capability: Mapping[str, float] = field(default_factory=dict)
    """The same by weight format."""
    formats_without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Weight formats it has no kernels for, by vendor."""

    def runs_on(self, accelerator: Accelerator) -> bool:
        """Whether it runs there at all."""
        if self.vendors and accelerator.vendor not in self.vendors:
            return False
        capability = cuda_capability(accelerator)
        return capability is None or capability >= self.least_capability

    def loads(self, weight_format: str, accelerator: Accelerator) -> bool:
        """Whether it has kernels for these weights there."""
        if weight_format in self.formats_without.get(accelerator.vendor, ()):
            return False
        capability = cuda_capability(accelerator)
        return capability is None or capability >= self.format_capability.get(weight_format, 0.0)


ANYWHERE = EngineSupport()


def cuda_capability(accelerator: Accelerator) -> float | None:
    """The compute capability as a number; None for other vendors' cards and where it isn't stated."""
    try:
        return float(accelerator.compute_capability)
    except ValueError:
        return None
