"""What a serving engine runs on: vendors, and the weight formats its kernels have on a generation.

Matrix units alone don't decide: an engine without kernels for a format refuses to load such weights, and one with
weight-only kernels runs a format that the card can't multiply in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.engine.hardware import Accelerator

PLAIN_CACHE = ("auto", "bf16")


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
    kv_formats: Mapping[str, float] = field(default_factory=dict)
    """Formats of its KV cache beside 16 bit, with the CUDA compute capability each needs (0: any card)."""

    def runs_on(self, accelerator: Accelerator) -> bool:
        """Whether it runs there at all."""
        if self.vendors and accelerator.vendor not in self.vendors:
            return False
        capability = cuda_capability(accelerator)
        return capability is None or capability >= self.least_capability

    def caches(self, kv_format: str, accelerator: Accelerator) -> bool:
        """Whether it keeps its KV cache so there."""
        if not self.knows_cache(kv_format):
            return False
        least = self.kv_formats.get(kv_format, 0.0)
        capability = cuda_capability(accelerator)
        return not least or (capability is not None and capability >= least)

    def knows_cache(self, kv_format: str) -> bool:
        """Whether it keeps its KV cache so anywhere."""
        return kv_format in PLAIN_CACHE or not self.kv_formats or kv_format in self.kv_formats

    def knows_weights(self, weight_format: str) -> bool:
        """Whether it loads these weights on the cards of any vendor."""
        without = [self.formats_without.get(vendor, ()) for vendor in self.vendors]
        return not without or any(weight_format not in names for names in without)

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
