"""How far to trust a prediction: bands taken from the errors on measured cases that were held out.

Residuals (log of measured over predicted) of cross-validation folds are summed up as quantiles by group, from
the most alike cases (same chip, engine, kind of model and precision) back to all of them. A candidate takes
the first group with enough cases.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Confidence, ConfidenceClass
from planner.engine.sentences import Code, joined, say

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
ENOUGH_SWEEPS: Final = 5
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
    quantity: str,
    attributes: Sequence[Mapping[str, str]],
    log_residuals: FloatArray,
    sweeps: Sequence[Hashable] | None = None,
) -> ResidualBands:
    """Sum up held-out residuals: one band for every group of at least ``ENOUGH_CASES``.

    Cases of one sweep (same GPU, model, precision and layout) err together: where ``sweeps`` names them, a
    band needs ``ENOUGH_SWEEPS`` and each sweep counts once, however many cases it has.
    """
    labels: Sequence[Hashable] = range(len(attributes)) if sweeps is None else sweeps
    enough = ENOUGH_CASES if sweeps is None else ENOUGH_SWEEPS
    bands: dict[tuple[str, ...], dict[tuple[str, ...], Band]] = {}
    for level in BACK_OFF:
        groups: dict[tuple[str, ...], dict[Hashable, list[float]]] = {}
        for case, residual, label in zip(attributes, log_residuals.tolist(), labels, strict=True):
            by_sweep = groups.setdefault(tuple(case[name] for name in level), {})
            by_sweep.setdefault(label, []).append(residual)
        bands[level] = {key: _band(found) for key, found in groups.items() if len(found) >= enough or not level}
    return ResidualBands(quantity=quantity, bands=bands)


def _band(by_sweep: Mapping[Hashable, Sequence[float]]) -> Band:
    """Factors around 1 that hold 90 %, widened for few sweeps (the quantile of n + 1 draws)."""
    residuals = np.concatenate([np.asarray(found, dtype=np.float64) for found in by_sweep.values()])
    weights = np.concatenate([np.full(len(found), 1.0 / len(found)) for found in by_sweep.values()])
    margin = 1.0 / (len(by_sweep) + 1)
    low = weighted_quantile(residuals, weights, LOW_QUANTILE - margin / 2)
    high = weighted_quantile(residuals, weights, HIGH_QUANTILE + margin / 2)
    return Band(cases=len(residuals), low=float(np.exp(min(low, -0.02))), high=float(np.exp(max(high, 0.02))))


def weighted_quantile(values: FloatArray, weights: FloatArray, quantile: float) -> float:
    """The smallest value that this share of the weight does not exceed; the ends beyond 0 and 1.

    >>> weighted_quantile(np.array([1.0, 2.0, 10.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / np.sum(weights)
    return float(values[order][min(int(np.searchsorted(reached, quantile)), len(values) - 1)])


def confidence_of(bands: ResidualBands, attributes: Mapping[str, str]) -> Confidence:
    """Class and 90 % band of a candidate with these attributes.

    ``calibrated`` where cases of its own chip and engine were measured, ``extrapolated`` elsewhere.
    """
    for level in BACK_OFF:
        key = tuple(attributes[name] for name in level)
        found = bands.bands.get(level, {}).get(key)
        if found is not None:
            kind: ConfidenceClass = "calibrated" if {"chip", "engine"} <= set(level) else "extrapolated"
            where = joined([Code(value) for value in key], ", ") or say("all cases")
            basis = say("{cases} measured cases: {where}", cases=found.cases, where=where)
            return Confidence(kind=kind, low=found.low, high=found.high, basis=basis, cases=found.cases)
    return Confidence(kind="extrapolated", low=0.0, high=float("inf"), basis=say("no measured case"), cases=0)


def confidence_beyond(bands: ResidualBands, attributes: Mapping[str, str], reasons: Sequence[str]) -> Confidence:
    """Where something asked for was never measured: extrapolated, with the widest band of all likeness levels.

    The nearest cases say what the rest of the prediction is worth; what ``reasons`` add is known to no case, so
    the band is at least that of every wider circle of cases too.
    """
    nearest = confidence_of(bands, attributes)
    found = [
        band
        for level in BACK_OFF
        if (band := bands.bands.get(level, {}).get(tuple(attributes[name] for name in level))) is not None
    ]
    said = say("{nearest}; not measured: {reasons}", nearest=nearest.basis, reasons=joined(reasons, ", "))
    low = min([nearest.low, *(band.low for band in found)])
    high = max([nearest.high, *(band.high for band in found)])
    return Confidence(kind="extrapolated", low=low, high=high, basis=said, cases=nearest.cases)
