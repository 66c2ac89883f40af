"""How far training predictions are from published runs: held-out errors of today's laws, beside their targets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from catalog.accelerator_files import find_accelerator
from catalog.profiles import DATA, load_profile_file
from catalog.training_files import PROFILES_FILE, profiles_from
from planner.services.figure import Figure
from planner.services.validation.long_runs import gpu_hour_ratios, reported_runs
from planner.services.validation.long_runs import predict as predict_runs
from planner.services.validation.training_calibration import Calibrator, specs_from
from planner.services.validation.training_measurements import read_measurements
from planner.services.validation.training_summary import fit_judgements

FloatArray = NDArray[np.float64]

OWN = "own H200 measurements"


def training_accuracy_figures() -> Iterator[Figure]:
    """Median and 90th percentile of held-out errors in percent: 5 folds of whole groups, core rows."""
    rows = read_measurements(DATA / "measurements" / "training.csv", find_accelerator)
    raw = load_profile_file(PROFILES_FILE)
    profiles = profiles_from(raw)
    step, memory = Calibrator(profiles, specs_from(raw["step"]), specs_from(raw["memory"])).cross_validate(rows)
    core = np.array([bool(row.effect) for row in rows])
    own = np.array([row.effect == OWN for row in rows])
    for name, ratio, limits in (("step time", step, (10.0, 28.0)), ("memory", memory, (12.0, 30.0))):
        for quantile, label, target in zip((0.5, 0.9), ("median", "90th"), limits, strict=True):
            value = _error(ratio[core], quantile)
            yield Figure(name=f"training {name}, held-out error, {label}", value=value, unit="%", target=target)
    yield Figure(name="training step time on H200, held-out median", value=_error(step[own], 0.5), unit="%", target=10)
    right, judged = fit_judgements(rows, profiles)
    yield Figure(
        name="training runs rightly said to fit or not",
        value=100.0 * right / judged,
        unit="%",
        target=92,
        larger_is_better=True,
    )
    runs = reported_runs()
    whole = np.array(gpu_hour_ratios(runs, predict_runs(runs)))
    yield Figure(name="GPU-hours of whole runs, median error", value=_error(whole, 0.5), unit="%", target=20)


def _error(ratio: FloatArray, quantile: float) -> float:
    known = ratio[~np.isnan(ratio)]
    return float(100.0 * np.quantile(np.abs(known - 1.0), quantile))
