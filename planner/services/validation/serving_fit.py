"""What serving constants are fitted to: cases, what was measured of them, and the effects that reach each case.

Each case's prediction depends on a handful of effective constants, each the exponential of a sum of level effects
(``serving_levels``); ``serving_solver`` finds the effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from catalog.profiles import DATA
from planner.engine.serving_calibration import CONSTANTS, SHARES, Level, ServingProfiles
from planner.services.validation.inference_batch import CaseBatch
from planner.services.validation.inference_cases import InferenceCase, is_median
from planner.services.validation.replay import Case, number, read_cases
from planner.services.validation.serving_levels import LEVELS, START

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

QUANTITIES: Final = ("tput", "tpot", "ttft")
KERNEL_FILE: Final = "serving_kernels.csv"
KERNEL_LEVELS: Final[tuple[Level, ...]] = ((), ("chip",), ("format",), ("chip", "format"))
"""Levels that kernel timings speak of."""
ERA_STEP: Final = 0.7
"""How far an engine moves from one quarter to the next, over how far engines differ."""


def kernel_timings() -> list[Case]:
    """Shares of peak that single kernels reach, by chip and format."""
    return read_cases(DATA / "measurements" / KERNEL_FILE, ("chip", "format", "constant", "value", "spread"))


class FitProblem:
    """Cases, what was measured of them, and which effects reach which case."""

    def __init__(
        self, cases: Sequence[InferenceCase], profiles: ServingProfiles, kernels: Sequence[Case] | None = None
    ) -> None:
        """``kernels`` are kernel timings to hold to; None: the project's own."""
        self.batch = CaseBatch(cases, profiles.engines)
        self.work = self.batch.work(profiles)
        self.cases = self.batch.cases
        self.measured = {name: _measured(self.cases, name) for name in QUANTITIES}
        self.medians = {name: _by_median(self.cases, name) for name in ("ttft", "tpot")}
        self.groups = [group_of(case) for case in self.cases]
        self.effects = Effects(self.batch.attributes)
        self.anchors = self.effects.anchors(kernel_timings() if kernels is None else kernels)

    def predict(self, logs: FloatArray) -> dict[str, FloatArray]:
        """Log predictions (tokens a second and GPU; ms) for log constants, cases x constants."""
        values = np.exp(logs)
        constants = {
            name: np.minimum(values[:, k], 1.0) if name in SHARES else values[:, k] for k, name in enumerate(CONSTANTS)
        }
        predicted = self.batch.evaluate(self.work, constants)
        by_stat = {
            name: np.where(self.medians[name], stats["p50"], stats["mean"])
            for name, stats in (("ttft", predicted.ttft_s), ("tpot", predicted.tpot_s))
        }
        with np.errstate(all="ignore"):
            return {
                "tput": np.log(predicted.output_tok_s_per_gpu),
                "tpot": np.log(by_stat["tpot"] * 1e3),
                "ttft": np.log(by_stat["ttft"] * 1e3),
            }


def _known_eras(attributes: Sequence[Mapping[str, str]]) -> dict[tuple[Level, tuple[str, ...]], list[str]]:
    """Eras with cases, in order, for every level that has one and every value of its other attributes."""
    known: dict[tuple[Level, tuple[str, ...]], set[str]] = {}
    for values in attributes:
        for level, _ in LEVELS:
            if "era" in level:
                known.setdefault((level, _but_era(level, values)), set()).add(values["era"])
    return {key: sorted(eras) for key, eras in known.items()}


def _keys_up_to(
    level: Level, values: Mapping[str, str], eras: Mapping[tuple[Level, tuple[str, ...]], list[str]]
) -> list[tuple[tuple[str, ...], bool]]:
    """The keys of a level that a case's constant sums over: its own, and with eras all earlier ones.

    A new era starts from where the one before ended, so what it doesn't measure it inherits.
    """
    if "era" not in level:
        return [(tuple(values[name] for name in level), True)]
    passed = [era for era in eras[level, _but_era(level, values)] if era <= values["era"]]
    return [
        (tuple(era if name == "era" else values[name] for name in level), index == 0)
        for index, era in enumerate(passed)
    ]


def _but_era(level: Level, values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(values[name] for name in level if name != "era")


class Effects:
    """One column for each (level, key, constant); constants are sums of their columns."""

    def __init__(self, attributes: Sequence[Mapping[str, str]]) -> None:
        self.columns: dict[tuple[tuple[str, ...], tuple[str, ...], str], int] = {}
        self.spread: FloatArray
        spreads: list[float] = []
        places: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in CONSTANTS}
        eras = _known_eras(attributes)
        for row, values in enumerate(attributes):
            for level, spread in LEVELS:
                for key, first in _keys_up_to(level, values, eras):
                    for constant, sd in spread.items():
                        column = self.columns.setdefault((level, key, constant), len(self.columns))
                        if column == len(spreads):
                            spreads.append(sd if first else ERA_STEP * sd)
                        places[constant][0].append(row)
                        places[constant][1].append(column)
        self.spread = np.asarray(spreads)
        shape = (len(attributes), len(spreads))
        self.design = [
            sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape) for rows, columns in places.values()
        ]
        self.start = np.log([START[name] for name in CONSTANTS])

    def anchors(self, kernels: Sequence[Case]) -> Anchors:
        """What kernel timings say of a chip and format, whatever the engine, as equations in the effects."""
        rows: list[int] = []
        columns: list[int] = []
        targets: list[float] = []
        weights: list[float] = []
        for kernel in kernels:
            constant = kernel["constant"]
            keys = [(level, tuple(kernel[name] for name in level), constant) for level in KERNEL_LEVELS]
            found = [self.columns[key] for key in keys if key in self.columns]
            rows += [len(targets)] * len(found)
            columns += found
            targets.append(float(np.log(float(kernel["value"]) / START[constant])))
            weights.append(1.0 / float(kernel["spread"]))
        shape = (len(targets), len(self.spread))
        matrix = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
        return Anchors(sparse.diags(weights) @ matrix, np.asarray(targets) * np.asarray(weights))

    def logs(self, effects: FloatArray) -> FloatArray:
        """Log constants of every case."""
        logs: FloatArray = self.start + np.stack([matrix @ effects for matrix in self.design], axis=1)
        return logs


@dataclass(frozen=True, slots=True)
class Anchors:
    """Equations ``matrix @ effects = target``, each scaled to a standard deviation of 1."""

    matrix: Any
    target: FloatArray

    def residuals(self, effects: FloatArray) -> FloatArray:
        found: FloatArray = self.target - self.matrix @ effects
        return found


def group_of(case: InferenceCase) -> tuple[str, str, str, str]:
    """What is held out together: GPU, model, precision and tensor parallelism."""
    return (case.row["gpu"], case.row["model"], case.row["weight_precision"], case.row["tp"])


def _measured(cases: Sequence[InferenceCase], quantity: str) -> FloatArray:
    column = {"tput": "output_tok_s_per_gpu", "tpot": "tpot_ms", "ttft": "ttft_ms"}[quantity]
    values = [None if quantity == "ttft" and case.queued else number(case.row, column) for case in cases]
    return np.log(np.array([value if value else np.nan for value in values], dtype=np.float64))


def _by_median(cases: Sequence[InferenceCase], quantity: str) -> BoolArray:
    return np.array([is_median(case.row.get(f"{quantity}_stat", "")) for case in cases])
