"""Power limits: a card with fewer watts for its peak than its generation's reference sustains less of it."""

from __future__ import annotations

from collections.abc import Mapping

TERA = 1e12


def power_share(
    generation: str, watts: float | None, peak_flops_16bit: float, reference_watts_per_tflop: Mapping[str, float]
) -> float:
    """Watts for each peak 16-bit TFLOP/s over the reference of the generation, at most 1; 1 where unknown.

    >>> round(power_share("Hopper", 350, 756e12, {"Hopper": 700 / 989.4}), 2)
    0.65
    >>> power_share("Hopper", 700, 989.4e12, {"Hopper": 700 / 989.4})
    1.0
    """
    reference = reference_watts_per_tflop.get(generation)
    if not watts or reference is None:
        return 1.0
    return min(1.0, watts / (peak_flops_16bit / TERA) / reference)
