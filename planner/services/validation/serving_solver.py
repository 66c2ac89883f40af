"""Finding serving constants: robust hierarchical least squares on the logarithms of what was measured.

Gauss-Newton steps use the derivative of every prediction by each effective constant (one evaluation a constant,
whatever the number of effects), Student-t weights against outliers, and Gaussian priors that shrink effects no case
asks for. Steps that make things worse are damped until they don't (Levenberg, 1944; Marquardt, 1963): the loss has
ridges on which shorter steps of the same direction get stuck.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsmr

from planner.engine.serving_calibration import CONSTANTS
from planner.services.validation.serving_fit import QUANTITIES, FitProblem

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

SCALE: Final = {"tput": 0.12, "tpot": 0.12, "ttft": 0.28}
"""Log errors counted as ordinary: about what held-out rows scatter by."""
DEGREES: Final = {"tput": 4.0, "tpot": 4.0, "ttft": 4.0}
"""Of the Student-t loss: errors far beyond the scale count ever less. First tokens of published runs are often
slowed by what no input tells: compilation, warm-up, a queue behind a smaller batch limit."""
DERIVATIVE_STEP: Final = 0.02
MOST_SENSITIVE: Final = 3.0
ROUNDS: Final = 40
SETTLED: Final = 2e-3
"""Share of the loss that two rounds running take off at least, or the fit has settled."""
FIRST_DAMPING: Final = 0.3
MOST_DAMPED: Final = 7
"""Dampings tried before a round gives up."""
SOLVER_ROUNDS: Final = 100
GROUP_CASES: Final = 4.0
"""Cases of one GPU, model, precision and layout repeat each other: together they count as so many."""
GRADED_WEIGHTS: Final = {"A": 1.3, "B": 1.3, "own": 1.6, "replay": 8.0}
"""Of rows whose source states everything, and of runs of our own, over rows of the sweeps around them; means of whole
logs, of hundreds of requests each, are known to a few percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Fitted effects, and the predictions they give for every case, held out or not."""

    effects: FloatArray
    logs: FloatArray
    predicted: dict[str, FloatArray]
    cost: float


def fit(problem: FitProblem, train: BoolArray, *, rounds: int = ROUNDS) -> Fit:
    """Fit the effects to the cases of ``train``; others are predicted, not seen."""
    weights = _case_weights(problem, train)
    x = np.zeros(len(problem.effects.spread))
    current = _evaluate(problem, x, train, weights)
    damping, idle = FIRST_DAMPING, 0
    for _ in range(rounds):
        found = _damped_step(problem, x, current, damping, train, weights)
        if found is None:
            break
        x, following, damping = found
        idle = idle + 1 if current.cost - following.cost < SETTLED * current.cost else 0
        current = following
        if idle == 2:
            break
    return Fit(effects=x, logs=current.logs, predicted=current.predicted, cost=current.cost)


def _damped_step(
    problem: FitProblem, x: FloatArray, state: _State, damping: float, train: BoolArray, weights: FloatArray
) -> tuple[FloatArray, _State, float] | None:
    """Effects after one step that lowers the loss, their state, and the next round's damping; None where none does."""
    matrix, target = _system(problem, x, state, weights)
    for _ in range(MOST_DAMPED):
        solved = lsmr(matrix, target, damp=np.sqrt(damping), maxiter=SOLVER_ROUNDS, atol=1e-5, btol=1e-5)[0]
        moved = x + solved * problem.effects.spread
        tried = _evaluate(problem, moved, train, weights)
        if tried.cost < state.cost:
            return moved, tried, damping / 3.0
        damping = max(4.0 * damping, 0.05)
    return None


@dataclass(frozen=True, slots=True)
class _State:
    logs: FloatArray
    predicted: dict[str, FloatArray]
    rows: dict[str, Any]
    residuals: dict[str, FloatArray]
    cost: float


def _evaluate(problem: FitProblem, x: FloatArray, train: BoolArray, weights: FloatArray) -> _State:
    logs = problem.effects.logs(x)
    predicted = problem.predict(logs)
    rows, residuals = {}, {}
    cost = float(np.sum((x / problem.effects.spread) ** 2) + np.sum(problem.anchors.residuals(x) ** 2))
    for name in QUANTITIES:
        measured = problem.measured[name]
        rows[name] = np.flatnonzero(train & np.isfinite(measured) & np.isfinite(predicted[name]))
        residuals[name] = (measured - predicted[name])[rows[name]]
        scaled = residuals[name] * weights[rows[name]] / SCALE[name]
        cost += float(np.sum(2 * DEGREES[name] * np.log1p(scaled**2 / (2 * DEGREES[name]))))
    return _State(logs, predicted, rows, residuals, cost)


def _system(problem: FitProblem, x: FloatArray, state: _State, weights: FloatArray) -> tuple[Any, FloatArray]:
    """The linear least-squares problem of a Gauss-Newton step, in effects over their spreads."""
    slopes = {name: np.zeros(state.logs.shape) for name in QUANTITIES}
    for column in range(len(CONSTANTS)):
        moved = state.logs.copy()
        moved[:, column] += DERIVATIVE_STEP
        shifted = problem.predict(moved)
        for name in QUANTITIES:
            slopes[name][:, column] = (shifted[name] - state.predicted[name]) / DERIVATIVE_STEP
    spread = problem.effects.spread
    blocks, targets = [], []
    for name in QUANTITIES:
        rows, residuals = state.rows[name], state.residuals[name]
        weight = weights[rows] / SCALE[name]
        weight = weight / np.sqrt(1 + (residuals * weight) ** 2 / (2 * DEGREES[name]))
        slope = np.nan_to_num(np.clip(slopes[name][rows], -MOST_SENSITIVE, MOST_SENSITIVE))
        parts = [
            sparse.diags(weight * slope[:, column]) @ problem.effects.design[column][rows]
            for column in range(len(CONSTANTS))
        ]
        blocks.append(sum(parts[1:], start=parts[0]) @ sparse.diags(spread))
        targets.append(weight * residuals)
    anchors = problem.anchors
    matrix = sparse.vstack([*blocks, anchors.matrix @ sparse.diags(spread), sparse.identity(len(spread))]).tocsr()
    return matrix, np.concatenate([*targets, anchors.residuals(x), -x / spread])


def _case_weights(problem: FitProblem, train: BoolArray) -> FloatArray:
    """Weight of each case: those of one group together count as ``GROUP_CASES`` independent ones, graded ones more."""
    sizes = Counter(group for group, used in zip(problem.groups, train.tolist(), strict=True) if used)
    shares = [min(1.0, GROUP_CASES / sizes[group]) if group in sizes else 0.0 for group in problem.groups]
    graded = [GRADED_WEIGHTS.get(case.row.get("grade", ""), 1.0) for case in problem.cases]
    weights: FloatArray = np.sqrt(np.array(shares)) * np.array(graded)
    return weights
