"""The serving model's figures of docs/performance.md: how fast a step is evaluated, how wrong held-out rows are.

Errors are those of the accuracy file: every measured row predicted by a fit that saw no row of its GPU, model,
precision and tensor parallelism (``manage.py rebuild_accuracy`` fits the five folds anew, in minutes).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from catalog.accuracy_file import AccuracyCase, read_accuracy
from planner.engine.step_time import StepCoefficients, step_time
from planner.services.figure import Figure

FloatArray = NDArray[np.float64]

QUANTITIES: Final[Mapping[str, tuple[str, float, float]]] = {
    "tpot_ms": ("TPOT", 12.0, 40.0),
    "output_tok_s_per_gpu": ("throughput", 12.0, 40.0),
    "ttft_ms": ("TTFT", 25.0, 70.0),
}
"""Name, and what its median and 90th percentile must not exceed, in percent."""
OWN_TARGETS: Final[Mapping[str, float]] = {"tpot_ms": 6.0, "output_tok_s_per_gpu": 6.0, "ttft_ms": 15.0}
OWN_SOURCE: Final = "own measurement"
GROUP_ROWS: Final = 5
GROUP_TARGET: Final = 20.0
SUPPORTED_TARGET: Final = 97.0
STEPS: Final = 10_000
ROUNDS: Final = 20


def accuracy_figures() -> Iterator[Figure]:
    """Every figure of the serving model."""
    yield Figure(
        name="step times evaluated a second", value=_steps_per_s(), unit="/s", target=1_000_000, larger_is_better=True
    )
    found = next(one for one in read_accuracy().sets if one.kind == "inference")
    rows = sum(found.files.values())
    yield Figure(
        name=f"inference rows supported, of {rows}",
        value=100.0 * (1.0 - found.unsupported / rows),
        unit="%",
        target=SUPPORTED_TARGET,
        larger_is_better=True,
    )
    own = [case for case in found.cases if case.labels["source"].startswith(OWN_SOURCE)]
    for quantity, (name, median, tail) in QUANTITIES.items():
        errors = errors_of(found.cases, quantity)
        shown = f"held-out {name}, {len(errors)} rows"
        yield Figure(name=f"{shown}: median error", value=float(np.median(errors)), unit="%", target=median)
        yield Figure(name=f"{shown}: 90th percentile", value=float(np.percentile(errors, 90)), unit="%", target=tail)
        errors = errors_of(own, quantity)
        yield Figure(
            name=f"... of them our own H200 runs, {len(errors)}: median error",
            value=float(np.median(errors)),
            unit="%",
            target=OWN_TARGETS[quantity],
        )
    for quantity in ("tpot_ms", "output_tok_s_per_gpu"):
        group, error = worst_group(found.cases, quantity)
        yield Figure(
            name=f"worst group, {QUANTITIES[quantity][0]}: {group}", value=error, unit="%", target=GROUP_TARGET
        )


def errors_of(cases: Sequence[AccuracyCase], quantity: str) -> FloatArray:
    """Absolute errors in percent of the measured value, of the cases that have one."""
    pairs = np.array([case.pairs[quantity] for case in cases if quantity in case.pairs]).reshape(-1, 2)
    errors: FloatArray = 100.0 * np.abs(pairs[:, 1] / pairs[:, 0] - 1.0)
    return errors


def worst_group(cases: Sequence[AccuracyCase], quantity: str) -> tuple[str, float]:
    """The GPU, engine, kind and precision with the largest median error, of those with enough rows."""
    groups: dict[tuple[str, ...], list[AccuracyCase]] = {}
    for case in cases:
        if quantity in case.pairs:
            kind = "dense" if case.labels["model_kind"] == "dense" else "MoE"
            key = (case.labels["gpu"], case.labels["software"], kind, case.labels["precision"])
            groups.setdefault(key, []).append(case)
    medians = {
        " ".join(key): float(np.median(errors_of(found, quantity)))
        for key, found in groups.items()
        if len(found) >= GROUP_ROWS
    }
    worst = max(medians, key=lambda key: medians[key])
    return worst, medians[worst]


def _steps_per_s() -> float:
    """Iterations timed a second on one core: every term, over arrays of candidates."""
    zero = np.zeros(STEPS)
    coefficients = StepCoefficients(*[zero] * len(StepCoefficients._fields))._replace(
        pipeline=zero + 1.0,
        attention_ranks=zero + 1.0,
        prompt_ranks=zero + 1.0,
        dense_weights_s=zero + 5e-3,
        dense_token_s=zero + 2.4e-5,
        expert_weights_s=zero + 4e-3,
        expert_token_s=zero + 1e-6,
        expert_miss_log=zero - 0.06,
        context_token_s=zero + 3e-8,
        pair_s=zero + 1e-9,
        prefill_launch_s=zero + 1e-2,
    )
    sequences = np.linspace(1.0, 256.0, STEPS)
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        step_time(coefficients, sequences, sequences * 1000.0, 512.0, 512.0 * 256.0)
        rates.append(STEPS / max(time.process_time() - start, 1e-9))
    return statistics.median(rates)
