"""The calibration's own table: cross-validated errors by the effect each row tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.engine.training.profile import TrainingProfiles
from planner.engine.training.search import USABLE_SHARE
from planner.engine.units import GIB
from planner.services.validation.training_calibration import Calibration, predict_memory_gib
from planner.services.validation.training_measurements import Measurement

FloatArray = NDArray[np.float64]


def describe_rows(rows: Sequence[Measurement]) -> str:
    """What constants were fitted on, in a sentence fragment with sources and dates."""
    sources = len({row.source for row in rows})
    dates = sorted(row.as_of for row in rows if row.as_of)
    return f"{len(rows):,} published runs of {sources} sources, {dates[0]} to {dates[-1]}"


def calibration_summary(rows: Sequence[Measurement], found: Calibration) -> str:
    """Held-out errors of step time and memory: core rows together and by effect, then all rows."""
    core = np.array([bool(row.effect) for row in rows])
    everything = np.ones(len(rows), dtype=np.bool_)
    lines = [f"{'held-out errors':60} {'rows':>5} {'median':>8} {'p90':>8} {'bias':>8}"]
    for name, ratio in (("step time", found.step_ratio), ("memory", found.memory_ratio)):
        lines.append(_line(f"{name}, core rows", ratio[core]))
        lines += list(_by_effect(rows, ratio))
        lines.append(_line(f"{name}, all rows", ratio[everything]))
    right, judged = fit_judgements(rows, found.profiles)
    lines.append(f"{'fits or not, as it was':60} {judged:5d} {right / max(judged, 1):8.1%}")
    return "\n".join(lines)


def fit_judgements(rows: Sequence[Measurement], profiles: TrainingProfiles) -> tuple[int, int]:
    """(right, all) judgements of whether a run fits: what ran must fit, what ran out of memory must not.

    Judged as a plan does: allocated memory against the usable share of the card.
    """
    known = [row for row in rows if row.case.recompute != "auto"]
    cases = [replace(row.case, memory_measure="allocated") for row in known]
    need = predict_memory_gib(cases, profiles) * GIB
    room = USABLE_SHARE * np.array([case.memory_bytes for case in cases])
    ran = np.array([row.outcome == "ran" for row in known])
    return int(np.count_nonzero((need <= room) == ran)), len(known)


def _by_effect(rows: Sequence[Measurement], ratio: FloatArray) -> Iterator[str]:
    for effect in sorted({row.effect for row in rows if row.effect}):
        chosen = np.array([row.effect == effect for row in rows])
        if not np.isnan(ratio[chosen]).all():
            yield _line(f"  {effect}", ratio[chosen])


def _line(label: str, ratio: FloatArray) -> str:
    known = ratio[~np.isnan(ratio)]
    error = np.abs(known - 1.0)
    median, p90 = np.quantile(error, [0.5, 0.9])
    return f"{label[:60]:60} {len(known):5d} {median:8.1%} {p90:8.1%} {np.median(known) - 1.0:+8.1%}"
