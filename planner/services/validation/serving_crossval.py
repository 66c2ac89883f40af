"""Grouped cross-validation of the serving model: each group is predicted by a fit that never saw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.confidence import ResidualBands, bands_from_residuals, confidence_of
from planner.engine.serving_candidates import model_kind
from planner.services.validation.inference_cases import InferenceCase
from planner.services.validation.serving_fit import QUANTITIES, FitProblem
from planner.services.validation.serving_solver import fit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FOLDS: Final = 5
NAMES: Final = {"tput": "output_tok_s", "tpot": "tpot", "ttft": "ttft"}
"""Band names of the measured quantities."""
ENOUGH_ROWS: Final = 5
"""Rows of a group below which its median says little."""


def fold_of_case(problem: FitProblem, folds: int = FOLDS, seed: int = 0) -> IntArray:
    """The fold each case is held out in; cases of one group share it."""
    groups = sorted(set(problem.groups))
    order = np.random.default_rng(seed).permutation(len(groups))
    fold = {groups[place]: index % folds for index, place in enumerate(order.tolist())}
    return np.array([fold[group] for group in problem.groups])


def cross_validate(
    problem: FitProblem, fold: IntArray, *, progress: Callable[[str], object] = lambda line: None
) -> dict[str, FloatArray]:
    """Log predictions of every case from the fit of the other folds."""
    held_out = {name: np.full(len(problem.cases), np.nan) for name in QUANTITIES}
    for index in range(int(fold.max()) + 1):
        fitted = fit(problem, fold != index)
        for name, column in held_out.items():
            column[fold == index] = fitted.predicted[name][fold == index]
        progress(f"fold {index + 1}: fitted on {int((fold != index).sum())} cases")
    return held_out


def bands_of(
    problem: FitProblem, predicted: dict[str, FloatArray], rows: NDArray[np.bool_]
) -> dict[str, ResidualBands]:
    """90 % bands of every quantity from the residuals of ``rows``."""
    bands = {}
    for quantity, name in NAMES.items():
        residuals = problem.measured[quantity] - predicted[quantity]
        used = np.flatnonzero(rows & np.isfinite(residuals))
        attributes = [problem.batch.attributes[row] for row in used.tolist()]
        sweeps = [problem.groups[row] for row in used.tolist()]
        bands[name] = bands_from_residuals(name, attributes, residuals[used], sweeps)
    return bands


def band_coverage(
    problem: FitProblem, predicted: dict[str, FloatArray], fold: IntArray, rows: NDArray[np.bool_]
) -> dict[str, float]:
    """Share of ``rows`` inside the band that the other folds' residuals give: an honest check of the bands."""
    inside: dict[str, list[bool]] = {name: [] for name in QUANTITIES}
    for index in range(int(fold.max()) + 1):
        bands = bands_of(problem, predicted, fold != index)
        for quantity, name in NAMES.items():
            residuals = problem.measured[quantity] - predicted[quantity]
            for row in np.flatnonzero((fold == index) & rows & np.isfinite(residuals)).tolist():
                band = confidence_of(bands[name], problem.batch.attributes[row])
                inside[quantity].append(bool(band.low <= np.exp(residuals[row]) <= band.high))
    return {quantity: float(np.mean(found)) if found else float("nan") for quantity, found in inside.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """Absolute relative errors of one quantity in one group."""

    group: str
    quantity: str
    rows: int
    median: float
    p90: float


def error_rows(
    problem: FitProblem, predicted: dict[str, FloatArray], groups: Sequence[tuple[str, NDArray[np.bool_]]]
) -> list[ErrorRow]:
    """Errors of each (title, rows) pair and quantity that has measurements there."""
    found = []
    for title, rows in groups:
        for quantity in QUANTITIES:
            errors = np.abs(np.expm1(predicted[quantity] - problem.measured[quantity]))[rows]
            errors = errors[np.isfinite(errors)]
            if len(errors):
                median, p90 = np.percentile(errors, [50, 90])
                found.append(ErrorRow(group=title, quantity=quantity, rows=len(errors), median=median, p90=p90))
    return found


def like_groups(cases: Sequence[InferenceCase], rows: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Groups of (GPU, engine, dense or MoE, precision) with enough rows."""
    keys = [
        (
            case.row["gpu"],
            case.engine,
            "dense" if model_kind(case.arch) == "dense" else "moe",
            case.row["weight_precision"],
        )
        for case in cases
    ]
    chosen = []
    for key in sorted(set(keys)):
        mask = np.array([found == key for found in keys]) & rows
        if mask.sum() >= ENOUGH_ROWS:
            chosen.append((" ".join(key), mask))
    return chosen


def format_errors(rows: Sequence[ErrorRow]) -> str:
    """The error table as text."""
    lines = [f"{'group':56} {'quantity':8} {'rows':>5} {'median':>8} {'p90':>8}"]
    lines += [f"{r.group[:56]:56} {r.quantity:8} {r.rows:5d} {r.median:8.1%} {r.p90:8.1%}" for r in rows]
    return "\n".join(lines)
