"""Calibrating training: fit memory and step time on the measurement files, cross-validate, set bands.

Memory is fitted first, because a run whose recomputation is unknown is taken to recompute the least
that fits. Cross-validation holds out whole groups (source, model, accelerator, precision) in 5 folds;
error bands are quantiles of the held-out residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.engine.confidence import bands_from_residuals
from planner.engine.training.constants import MemoryConstants, StepConstants
from planner.engine.training.memory import training_memory
from planner.engine.training.profile import (
    ConstantLaw,
    Context,
    TrainingProfiles,
    memory_constants,
    step_constants,
)
from planner.engine.training.search import USABLE_SHARE
from planner.engine.training.step import step_time
from planner.engine.units import GIB
from planner.services.validation.training_case import (
    TrainingCase,
    context_of,
    resolve_recompute,
    stack_cases,
)
from planner.services.validation.training_fit import FitData, LawSpec, fit_laws, grouped_folds
from planner.services.validation.training_measurements import Measurement

FloatArray = NDArray[np.float64]

STEP_SIGMA = 0.05
MEMORY_SIGMA = 0.10
GRADE_WEIGHT = {"A": 1.0, "B": 1.0, "C": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Fitted profiles, and what cross-validation found: ratios predicted / measured, one a row (NaN where none)."""

    profiles: TrainingProfiles
    step_ratio: FloatArray
    memory_ratio: FloatArray


def specs_from(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, LawSpec]:
    """What each constant may depend on, from the profile file."""
    return {
        name: LawSpec(
            prior=row["prior"],
            spread=row["spread"],
            fixed=tuple((tuple(known["attributes"]), known["values"]) for known in row["fixed"]),
            effects=tuple((tuple(effect["attributes"]), effect["spread"]) for effect in row["effects"]),
            per_year=tuple((tuple(slope["attributes"]), slope["spread"]) for slope in row["per_year"]),
            cap=row["cap"],
        )
        for name, row in rows.items()
    }


class Calibrator:
    """Fits profiles on measurements; holds the specs and the facts that don't change between folds."""

    def __init__(self, profiles: TrainingProfiles, step: Mapping[str, LawSpec], memory: Mapping[str, LawSpec]) -> None:
        self._profiles = profiles
        self._step = step
        self._memory = memory

    def fit(self, rows: Sequence[Measurement]) -> TrainingProfiles:
        """Profiles fitted on ``rows``."""
        with_memory = replace(self._profiles, memory=self._fit_memory(rows))
        return replace(with_memory, step=self._fit_step([r for r in rows if r.step_s], with_memory))

    def cross_validate(self, rows: Sequence[Measurement], folds: int = 5) -> tuple[FloatArray, FloatArray]:
        """(step, memory) ratios predicted / measured of every row, each predicted by a fit without its group."""
        fold = grouped_folds([row.group for row in rows], folds)
        step, memory = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        for number in range(folds):
            held = [int(index) for index in np.flatnonzero(fold == number)]
            fitted = self.fit([row for row, other in zip(rows, fold, strict=True) if other != number])
            step[held], memory[held] = ratios([rows[index] for index in held], fitted)
        return step, memory

    def calibrate(self, rows: Sequence[Measurement]) -> Calibration:
        """Fit on all rows, cross-validate, and draw the bands from the held-out residuals."""
        step, memory = self.cross_validate(rows)
        fitted = self.fit(rows)
        known = [int(index) for index in np.flatnonzero(~np.isnan(step))]
        attributes = [context_of(rows[index].case, fitted).attributes() for index in known]
        bands = bands_from_residuals("step_s", attributes, -np.log(step[known]))
        return Calibration(profiles=replace(fitted, bands=bands), step_ratio=step, memory_ratio=memory)

    def _fit_memory(self, every: Sequence[Measurement]) -> dict[str, ConstantLaw]:
        """Fit what was measured; runs of known recomputation that fitted, or did not, bound it."""
        rows = [row for row in every if row.memory_gib or row.case.recompute != "auto"]
        bound = np.array([row.memory_gib is None for row in rows])
        ran = np.array([row.outcome == "ran" for row in rows])
        cases = [replace(row.case, memory_measure="allocated") if row.memory_gib is None else row.case for row in rows]
        work, recipe, cand = stack_cases(cases, self._profiles)

        def evaluate(values: Mapping[str, FloatArray]) -> FloatArray:
            return training_memory(work, recipe, cand, MemoryConstants(**values)).total / GIB

        room = [USABLE_SHARE * row.case.memory_bytes / GIB for row in rows]
        measured = np.array([row.memory_gib or limit for row, limit in zip(rows, room, strict=True)])
        contexts = [context_of(case, self._profiles) for case in cases]
        return self._laws(
            self._memory, rows, contexts, measured, evaluate, MEMORY_SIGMA, at_most=bound & ran, at_least=bound & ~ran
        )

    def _fit_step(self, rows: Sequence[Measurement], profiles: TrainingProfiles) -> dict[str, ConstantLaw]:
        cases = resolve_recompute([row.case for row in rows], profiles)
        work, recipe, cand = stack_cases(cases, profiles)

        def evaluate(values: Mapping[str, FloatArray]) -> FloatArray:
            return step_time(work, recipe, cand, StepConstants(**values)).total

        measured = np.array([row.step_s for row in rows], dtype=np.float64)
        contexts = [context_of(case, profiles) for case in cases]
        exact = np.zeros(len(rows), dtype=np.bool_)
        return self._laws(self._step, rows, contexts, measured, evaluate, STEP_SIGMA, at_most=exact, at_least=exact)

    def _laws(
        self,
        specs: Mapping[str, LawSpec],
        rows: Sequence[Measurement],
        contexts: Sequence[Context],
        measured: FloatArray,
        evaluate: Callable[[Mapping[str, FloatArray]], FloatArray],
        sigma: float,
        *,
        at_most: NDArray[np.bool_],
        at_least: NDArray[np.bool_],
    ) -> dict[str, ConstantLaw]:
        data = FitData(
            contexts=contexts,
            at_most=at_most,
            at_least=at_least,
            measured=measured,
            groups=[row.group for row in rows],
            reliability=np.array([GRADE_WEIGHT[row.grade] for row in rows]),
        )
        return fit_laws(
            specs,
            data,
            evaluate,
            sigma=sigma,
            reference_year=self._profiles.reference_year,
            year_range=self._profiles.year_range,
        )


def predict_step_s(cases: Sequence[TrainingCase], profiles: TrainingProfiles) -> FloatArray:
    """Seconds of a step of every case; recomputation ``auto`` resolved by memory."""
    resolved = resolve_recompute(cases, profiles)
    work, recipe, cand = stack_cases(resolved, profiles)
    contexts = [context_of(case, profiles) for case in resolved]
    return step_time(work, recipe, cand, step_constants(profiles, contexts)).total


def predict_memory_gib(cases: Sequence[TrainingCase], profiles: TrainingProfiles) -> FloatArray:
    """GiB of the fullest GPU of every case, as its source measures memory."""
    resolved = resolve_recompute(cases, profiles)
    work, recipe, cand = stack_cases(resolved, profiles)
    contexts = [context_of(case, profiles) for case in resolved]
    return training_memory(work, recipe, cand, memory_constants(profiles, contexts)).total / GIB


def ratios(rows: Sequence[Measurement], profiles: TrainingProfiles) -> tuple[FloatArray, FloatArray]:
    """(step, memory) predicted / measured; NaN where not measured."""
    cases = [row.case for row in rows]
    step = np.array([row.step_s or np.nan for row in rows], dtype=np.float64)
    memory = np.array([row.memory_gib or np.nan for row in rows], dtype=np.float64)
    return predict_step_s(cases, profiles) / step, predict_memory_gib(cases, profiles) / memory
