"""What the accuracy page shows, built anew: every measured case predicted by a fit that never saw its group."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np

from catalog.accelerator_files import find_accelerator
from catalog.accuracy_file import Accuracy, AccuracyCase, AccuracySet
from catalog.model_files import find_model
from catalog.profiles import DATA, load_profile_file, serving_profiles
from catalog.training_files import PROFILES_FILE, profiles_from
from planner.engine.errors import UnsupportedModel
from planner.engine.inference_plan import ENGINE_VERSION
from planner.engine.model_arch import ModelArch
from planner.engine.serving_candidates import model_kind
from planner.services.validation import kv_capacity, memory
from planner.services.validation.inference_cases import InferenceCase, Unsupported, read_case
from planner.services.validation.memory_fit import FITTED_ENGINE, held_out_pools_gib, read_logs
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import Case, Prediction, number, read_cases
from planner.services.validation.serving_crossval import cross_validate, fold_of_case
from planner.services.validation.serving_fit import FitProblem
from planner.services.validation.training_calibration import Calibrator, specs_from
from planner.services.validation.training_measurements import Measurement, read_measurements

Told = Callable[[str], object]
MEASUREMENTS = DATA / "measurements"
STATED_FILES = ("inference.csv", "inference_h200.csv")
"""Errors are stated for these; the sweeps around them only help to fit."""
SWEEP_FILES = ("inference_sweeps.csv", "inference_replays.csv")
INFERENCE_QUANTITIES = {"tput": "output_tok_s_per_gpu", "tpot": "tpot_ms", "ttft": "ttft_ms"}
MEMORY_FILE, CAPACITY_FILE, TRAINING_FILE = "serving_memory.csv", "kv_capacity.csv", "training.csv"
MEMORY_COLUMNS = {
    "date": "log_date",
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "weight_precision": "weight_format",
    "kv_precision": "kv_format",
    "gpu_memory_utilization": "memory_utilization",
    "gpu_total_gib": "total_gib",
}
"""A start-up log's columns by the names that memory cases have."""


def build_accuracy(*, today: date, told: Told = lambda line: None) -> Accuracy:
    """Predict every measured case of the project; takes minutes, because each fold is fitted anew."""
    return Accuracy(
        engine_version=ENGINE_VERSION,
        built_on=today.isoformat(),
        sets=(_inference(told), _training(told), _memory(told)),
    )


def measured_rows(name: str) -> int:
    """Rows that a measurement file has now.

    >>> measured_rows("kv_capacity.csv") > 0
    True
    """
    with (MEASUREMENTS / name).open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.DictReader(file))


def _files(*names: str) -> dict[str, int]:
    return {name: measured_rows(name) for name in names}


def _inference(told: Told) -> AccuracySet:
    """Held-out throughput, TPOT and TTFT; folds by GPU x model x precision x tensor parallelism."""
    library = ModelLibrary(find_model)
    cases: list[InferenceCase] = []
    stated: set[int] = set()
    unsupported = 0
    for name in (*STATED_FILES, *SWEEP_FILES):
        for row in read_cases(MEASUREMENTS / name, ("model", "gpu", "engine")):
            case = read_case(row, library, find_accelerator)
            if isinstance(case, Unsupported):
                unsupported += name in STATED_FILES
                continue
            if name in STATED_FILES:
                stated.add(id(case.row))
            cases.append(case)
    problem = FitProblem(cases, serving_profiles())
    predicted = cross_validate(problem, fold_of_case(problem), progress=told)
    found = []
    for index, case in enumerate(problem.cases):
        if id(case.row) in stated:
            logs = {name: (problem.measured[name][index], predicted[name][index]) for name in INFERENCE_QUANTITIES}
            found.append(_inference_case(case, logs))
    return AccuracySet(
        kind="inference",
        files=_files(*STATED_FILES),
        unsupported=unsupported,
        quantities=tuple(INFERENCE_QUANTITIES.values()),
        cases=tuple(found),
    )


def _inference_case(case: InferenceCase, logs: Mapping[str, tuple[float, float]]) -> AccuracyCase:
    row = case.row
    rate = row.get("request_rate", "")
    load = f"{rate} requests/s" if rate and rate != "inf" else f"concurrency {row['concurrency']}"
    return AccuracyCase(
        labels=_labels(row, row["weight_precision"], case.arch, case.engine),
        model=row["model"],
        setup=f"{row['gpus']}× {row['gpu']}, TP{case.tp}, ISL {row['isl']}, OSL {row['osl']}, {load}, "
        f"{row['engine']} {row['engine_version']}".strip(),
        pairs={
            quantity: (float(np.exp(logs[name][0])), float(np.exp(logs[name][1])))
            for name, quantity in INFERENCE_QUANTITIES.items()
            if np.isfinite(logs[name]).all()
        },
    )


def _labels(row: Case, precision: str, arch: ModelArch | None, software: str) -> dict[str, str]:
    return {
        "source": short_source(row.get("source", "")),
        "gpu": row["gpu"],
        "precision": precision,
        "model_kind": "" if arch is None else model_kind(arch),
        "software": software,
    }


def short_source(source: str) -> str:
    """A source's name without the file it was read from; of an address, the place.

    >>> short_source("own logs; a/b@c:results.csv"), short_source("https://github.com/a/b/issues/7")
    ('own logs', 'github.com/a/b')
    """
    name = re.split(r"; | \(", source, maxsplit=1)[0].strip()
    if name.startswith("https://"):
        return "/".join(name.removeprefix("https://").split("/")[:3])
    return name


def _training(told: Told) -> AccuracySet:
    """Held-out step time and memory; folds by source, model, accelerator and precision."""
    rows = read_measurements(MEASUREMENTS / TRAINING_FILE, find_accelerator)
    raw = load_profile_file(PROFILES_FILE)
    calibrator = Calibrator(profiles_from(raw), specs_from(raw["step"]), specs_from(raw["memory"]))
    step, peak = calibrator.cross_validate(rows)
    told("training: five folds fitted")
    return AccuracySet(
        kind="training",
        files=_files(TRAINING_FILE),
        unsupported=0,
        quantities=("step_s", "memory_gib"),
        cases=tuple(
            _training_case(row, {"step_s": (row.step_s, step[index]), "memory_gib": (row.memory_gib, peak[index])})
            for index, row in enumerate(rows)
        ),
    )


def _training_case(row: Measurement, ratios: Mapping[str, tuple[float | None, Any]]) -> AccuracyCase:
    case = row.case
    return AccuracyCase(
        labels={
            "source": short_source(row.source),
            "gpu": row.accelerator_label,
            "precision": row.precision_label.lower(),
            "model_kind": model_kind(case.arch),
            "software": case.framework,
        },
        model=row.model,
        setup=f"{case.gpus}× {row.accelerator_label}, TP{case.tensor} PP{case.pipeline} CP{case.context} "
        f"EP{case.expert}, {case.sharding}, sequence {case.sequence_length:g}, batch {case.global_batch:g}",
        pairs={
            name: (measured, float(measured * ratio))
            for name, (measured, ratio) in ratios.items()
            if measured is not None and np.isfinite(ratio)
        },
    )


def _memory(told: Told) -> AccuracySet:
    """Weights and token lines from the engine's arithmetic; KV pools held out by group."""
    library = ModelLibrary(find_model)
    logs = read_cases(MEASUREMENTS / MEMORY_FILE, ("id", "model", "engine"))
    renamed: list[dict[str, str]] = [
        {**row, **{name: row[column] for name, column in MEMORY_COLUMNS.items()}} for row in logs
    ]
    weights = memory.predict(renamed, library)
    pools = iter(held_out_pools_gib(read_logs()))
    lines = read_cases(MEASUREMENTS / CAPACITY_FILE, ("id", "model"))
    tokens = kv_capacity.predict(lines, library)
    found: list[AccuracyCase] = []
    for row, weight in zip(renamed, weights, strict=True):
        fitted = row["engine"] == FITTED_ENGINE and row["total_gib"] and row["kv_pool_gib"]
        pairs = {
            "weights_gib": (number(row, "weights_gib"), _value(weight, "weights_gib_per_gpu")),
            "kv_pool_gib": (number(row, "kv_pool_gib"), next(pools) if fitted else None),
        }
        found.append(_memory_case(row, pairs, library))
    for stated, line in zip(lines, tokens, strict=True):
        pairs = {"kv_tokens": (number(stated, "kv_tokens"), _value(line, "kv_tokens"))}
        found.append(_memory_case(stated, pairs, library))
    told("memory: start-up logs predicted")
    return AccuracySet(
        kind="memory",
        files=_files(MEMORY_FILE, CAPACITY_FILE),
        unsupported=sum(not each.supported for each in (*weights, *tokens)),
        quantities=("weights_gib", "kv_pool_gib", "kv_tokens"),
        cases=tuple(case for case in found if case.pairs),
    )


def _value(prediction: Prediction, column: str) -> float | None:
    value = prediction.values.get(column)
    return float(value) if isinstance(value, int | float) else None


def _arch(row: Case, library: ModelLibrary) -> ModelArch | None:
    try:
        return library.resolve(row["model"])
    except UnsupportedModel:
        return None


def _memory_case(
    row: Case, pairs: Mapping[str, tuple[float | None, float | None]], library: ModelLibrary
) -> AccuracyCase:
    return AccuracyCase(
        labels=_labels(row, row.get("weight_format") or row["kv_format"], _arch(row, library), row["engine"]),
        model=row["model"],
        setup=f"{row['gpu']}, TP{row['tensor_parallel'] or 1} PP{row['pipeline_parallel'] or 1}, "
        f"{row['engine']} {row['engine_version']}",
        pairs={name: (pair[0], pair[1]) for name, pair in pairs.items() if pair[0] and pair[1]},
    )
