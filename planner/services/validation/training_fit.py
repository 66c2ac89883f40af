"""Fitting training constants: damped Gauss-Newton on log residuals, shrunk towards priors.

The laws (which constant may depend on what, how strongly) are data; the fit finds their values. A
group of like runs (same source, model, accelerator, precision) weighs less than its rows counted
one by one, and a residual beyond 1.5 sigma counts linearly, so that no table and no odd row decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.profile import ConstantLaw, Context, Effect

FloatArray = NDArray[np.float64]
Evaluate = Callable[[Mapping[str, FloatArray]], FloatArray]
"""Constants by name (one entry a case) -> predicted quantity, one entry a case."""

GROUP_POWER = 0.35
HUBER = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LawSpec:
    """What a constant may depend on: spreads of its logarithm."""

    prior: float
    spread: float
    fixed: tuple[tuple[tuple[str, ...], Mapping[str, float]], ...]
    """(attributes, log-effects) that are known."""
    effects: tuple[tuple[tuple[str, ...], float], ...]
    """(attributes, spread) of each effect."""
    per_year: tuple[tuple[tuple[str, ...], float], ...]
    """(attributes, spread) of each slope by software year."""
    cap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FitData:
    """Cases to fit: their contexts, what was measured, and the group each belongs to."""

    contexts: Sequence[Context]
    measured: FloatArray
    groups: Sequence[str]
    reliability: FloatArray
    """Weight of a row by its quality, 0 to 1."""
    at_most: NDArray[np.bool_]
    """``measured`` is an upper bound: a run that fitted its card needs no more."""
    at_least: NDArray[np.bool_]
    """``measured`` is a lower bound: a run that ran out of memory needs no less."""


class _Design:
    """Parameters of all laws, and which of them act on which case."""

    def __init__(
        self, specs: Mapping[str, LawSpec], contexts: Sequence[Context], reference: float, years: tuple[float, float]
    ) -> None:
        self.specs = specs
        self.parameters: list[tuple[str, tuple[str, ...], str]] = []
        """(constant, attributes, label); no attributes: the common shift; ("year", ...): a slope."""
        spreads: list[float] = []
        columns: dict[str, list[tuple[int, FloatArray]]] = {name: [] for name in specs}
        self.offsets = {
            name: np.array(
                [sum(known.get(c.label(attributes, years), 0.0) for attributes, known in spec.fixed) for c in contexts]
            )
            for name, spec in specs.items()
        }
        for name, spec in specs.items():
            self._add(name, (), "", spec.spread, np.ones(len(contexts)), spreads, columns)
            for attributes, spread in spec.effects:
                labels = np.array([context.label(attributes, years) for context in contexts])
                for label in sorted(set(labels)):
                    self._add(name, attributes, label, spread, (labels == label) * 1.0, spreads, columns)
            when = np.array([min(max(c.year, years[0]), years[1]) - reference for c in contexts])
            for attributes, spread in spec.per_year:
                labels = np.array([context.label(attributes, years) for context in contexts])
                for label in sorted(set(labels)):
                    applies = when * (labels == label)
                    self._add(name, ("year", *attributes), label, spread, applies, spreads, columns)
        self.spreads = np.array(spreads)
        self.columns = columns

    def _add(
        self,
        name: str,
        attributes: tuple[str, ...],
        label: str,
        spread: float,
        column: FloatArray,
        spreads: list[float],
        columns: dict[str, list[tuple[int, FloatArray]]],
    ) -> None:
        columns[name].append((len(self.parameters), column))
        self.parameters.append((name, attributes, label))
        spreads.append(spread)

    def constants(self, x: FloatArray) -> dict[str, FloatArray]:
        values = {}
        for name, spec in self.specs.items():
            log = np.zeros_like(self.offsets[name])
            for index, column in self.columns[name]:
                log = log + x[index] * column
            values[name] = np.minimum(spec.cap, spec.prior * np.exp(log)) * np.exp(self.offsets[name])
        return values


def fit_laws(
    specs: Mapping[str, LawSpec],
    data: FitData,
    evaluate: Evaluate,
    *,
    sigma: float,
    reference_year: float,
    year_range: tuple[float, float],
    rounds: int = 25,
) -> dict[str, ConstantLaw]:
    """The laws that best explain ``data``; deterministic."""
    design = _Design(specs, data.contexts, reference_year, year_range)
    counts = Counter(data.groups)
    weights = data.reliability * np.array([(1.0 / counts[group]) ** GROUP_POWER for group in data.groups])
    target = np.log(data.measured)

    def residuals(values: Mapping[str, FloatArray]) -> FloatArray:
        gap = np.log(evaluate(values)) - target
        gap = np.where(data.at_most, np.maximum(gap, 0.0), gap)
        return np.where(data.at_least, np.minimum(gap, 0.0), gap)

    def loss(x: FloatArray) -> float:
        r = np.abs(residuals(design.constants(x)))
        huber = np.where(r < HUBER * sigma, r**2 / 2, HUBER * sigma * (r - HUBER * sigma / 2))
        return float((weights * huber).sum() / sigma**2 + ((x / design.spreads) ** 2).sum() / 2)

    x = np.zeros(len(design.parameters))
    current = loss(x)
    for _ in range(rounds):
        step = _newton_step(design, x, residuals, weights, sigma)
        scale = 1.0
        while scale > 1e-3 and loss(x + scale * step) > current:
            scale /= 2
        if scale <= 1e-3:
            break
        x = x + scale * step
        current = loss(x)
        if float(np.abs(scale * step).max()) < 1e-3:
            break
    return _laws(design, x)


def _newton_step(
    design: _Design,
    x: FloatArray,
    residuals: Callable[[Mapping[str, FloatArray]], FloatArray],
    weights: FloatArray,
    sigma: float,
) -> FloatArray:
    values = design.constants(x)
    base = residuals(values)
    jacobian = np.zeros((len(base), len(x)))
    epsilon = 1e-4
    for name, spec in design.specs.items():
        moved = dict(values)
        limit = spec.cap * np.exp(design.offsets[name])
        moved[name] = np.minimum(limit, values[name] * np.exp(epsilon))
        slope = (residuals(moved) - base) / epsilon
        for index, column in design.columns[name]:
            jacobian[:, index] = slope * column
    robust = weights * np.minimum(1.0, HUBER * sigma / np.maximum(np.abs(base), 1e-12)) / sigma**2
    hessian = jacobian.T @ (robust[:, None] * jacobian) + np.diag(1.0 / design.spreads**2)
    gradient = jacobian.T @ (robust * base) + x / design.spreads**2
    return -np.linalg.solve(hessian, gradient)


def _laws(design: _Design, x: FloatArray) -> dict[str, ConstantLaw]:
    found: dict[str, ConstantLaw] = {
        name: ConstantLaw(
            prior=spec.prior,
            log_shift=0.0,
            fixed=tuple(Effect(attributes=attributes, values=known) for attributes, known in spec.fixed),
            effects=tuple(Effect(attributes=attributes, values={}) for attributes, _ in spec.effects),
            per_year=tuple(Effect(attributes=attributes, values={}) for attributes, _ in spec.per_year),
            cap=spec.cap,
        )
        for name, spec in design.specs.items()
    }
    values: dict[str, dict[tuple[str, ...], dict[str, float]]] = {name: {} for name in found}
    for value, (name, attributes, label) in zip(x, design.parameters, strict=True):
        rounded = round(float(value), 4)
        if not attributes:
            found[name] = replace(found[name], log_shift=rounded)
        elif abs(rounded) >= 5e-4:
            values[name].setdefault(attributes, {})[label] = rounded
    return {
        name: replace(
            law,
            effects=tuple(replace(e, values=values[name].get(e.attributes, {})) for e in law.effects),
            per_year=tuple(replace(e, values=values[name].get(("year", *e.attributes), {})) for e in law.per_year),
        )
        for name, law in found.items()
    }


def grouped_folds(groups: Sequence[str], folds: int = 5) -> NDArray[np.int64]:
    """Fold of each row: whole groups, largest first, each to the emptiest fold so far.

    >>> grouped_folds(["a", "a", "b", "c"], folds=2).tolist()
    [0, 0, 1, 1]
    """
    filled = [0] * folds
    fold_of: dict[str, int] = {}
    for group, rows in sorted(Counter(groups).items(), key=lambda item: (-item[1], item[0])):
        fold_of[group] = int(np.argmin(filled))
        filled[fold_of[group]] += rows
    return np.array([fold_of[group] for group in groups])
