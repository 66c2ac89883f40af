"""How far to trust a prediction: bands taken from the errors on measured cases that were held out.

Residuals (log of measured over predicted) of cross-validation folds are summed up as quantiles by group, from
the most alike cases (same chip, engine, kind of model and precision) back to all of them. A candidate takes
the first group with enough cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Confidence, ConfidenceClass

FloatArray = NDArray[np.float64]

BACK_OFF: Final = (
    ("chip", "engine", "kind", "format"),
    ("chip", "engine", "kind"),
    ("engine", "kind"),
    ("chip", "kind"),
    ("kind",),
    (),
)
"""Levels of likeness, nearest first."""

ENOUGH_CASES: Final = 8
LOW_QUANTILE, HIGH_QUANTILE = 0.05, 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Held-out cases of one group: how many, and the factors that hold 90 % of them."""

    cases: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualBands:
    """Bands of one quantity, by level and attribute values; the last level, ``()``, holds all cases."""

    quantity: str
    bands: Mapping[tuple[str, ...], Mapping[tuple[str, ...], Band]]


def bands_from_residuals(
    quantity: str, attributes: Sequence[Mapping[str, str]], log_residuals: FloatArray
) -> ResidualBands:
    """Sum up held-out residuals: one band for every group of at least ``ENOUGH_CASES``."""
    bands: dict[tuple[str, ...], dict[tuple[str, ...], Band]] = {}
    for level in BACK_OFF:
        groups: dict[tuple[str, ...], list[float]] = {}
        for case, residual in zip(attributes, log_residuals.tolist(), strict=True):
            groups.setdefault(tuple(case[name] for name in level), []).append(residual)
        bands[level] = {
            key: _band(np.asarray(values)) for key, values in groups.items() if len(values) >= ENOUGH_CASES or not level
        }
    return ResidualBands(quantity=quantity, bands=bands)


def _band(residuals: FloatArray) -> Band:
    """Factors around 1 that hold 90 %, widened for small groups (the quantile of n + 1 draws)."""
    margin = 1.0 / (len(residuals) + 1)
    low = np.quantile(residuals, max(LOW_QUANTILE - margin / 2, 0.0))
    high = np.quantile(residuals, min(HIGH_QUANTILE + margin / 2, 1.0))
    return Band(cases=len(residuals), low=float(np.exp(min(low, -0.02))), high=float(np.exp(max(high, 0.02))))


def confidence_of(bands: ResidualBands, attributes: Mapping[str, str]) -> Confidence:
    """Class and 90 % band of a candidate with these attributes.

    ``calibrated`` where cases of its own chip and engine were measured, ``extrapolated`` elsewhere.
    """
    for level in BACK_OFF:
        key = tuple(attributes[name] for name in level)
        found = bands.bands.get(level, {}).get(key)
        if found is not None:
            kind: ConfidenceClass = "calibrated" if {"chip", "engine"} <= set(level) else "extrapolated"
            where = ", ".join(key) or "all cases"
            basis = f"{found.cases} measured cases: {where}"
            return Confidence(kind=kind, low=found.low, high=found.high, basis=basis, cases=found.cases)
    return Confidence(kind="extrapolated", low=0.0, high=float("inf"), basis="no measured case", cases=0)
