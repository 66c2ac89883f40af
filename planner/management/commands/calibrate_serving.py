"""Fit serving constants on the measurement files; print grouped cross-validation errors."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand

from catalog.accelerator_files import find_accelerator
from catalog.model_files import find_model
from catalog.profiles import DATA, SERVING_PROFILES_FILE, load_profile_file, serving_profiles
from planner.services.validation.inference_cases import InferenceCase, Unsupported, read_case
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import read_cases
from planner.services.validation.serving_crossval import (
    FOLDS,
    band_coverage,
    bands_of,
    cross_validate,
    error_rows,
    fold_of_case,
    format_errors,
    like_groups,
)
from planner.services.validation.serving_fit import FitProblem
from planner.services.validation.serving_profile_file import with_fit, write_profile_file
from planner.services.validation.serving_solver import fit

MEASUREMENT_FILES = ("inference.csv", "inference_h200.csv", "inference_sweeps.csv", "inference_replays.csv")
CORE_GRADES = ("A", "B", "own")
"""Grades of the rows errors are stated for; sweeps around them only help to fit."""


class Command(BaseCommand):
    help = "Fit serving constants on the measurement files; print grouped cross-validation errors."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="store constants and bands in the profile file")
        parser.add_argument("--folds", type=int, default=FOLDS)
        parser.add_argument("--seed", type=int, default=0, help="of the assignment of groups to folds")

    def handle(self, *args: Any, **options: Any) -> None:
        cases = _cases(self.stderr.write)
        problem = FitProblem(cases, serving_profiles())
        fold = fold_of_case(problem, options["folds"], options["seed"])
        predicted = cross_validate(problem, fold, progress=self.stderr.write)
        core = np.array([case.row["grade"] in CORE_GRADES for case in problem.cases])
        own = np.array([case.row["grade"] == "own" for case in problem.cases])
        groups = [("core", core), ("own H200 runs", own), ("sweeps", ~core), *like_groups(problem.cases, core)]
        self.stdout.write(format_errors(error_rows(problem, predicted, groups)))
        coverage = band_coverage(problem, predicted, fold, core)
        self.stdout.write("inside the 90 % band: " + ", ".join(f"{q} {share:.1%}" for q, share in coverage.items()))
        if options["write"]:
            fitted = fit(problem, np.ones(len(problem.cases), dtype=np.bool_))
            bands = bands_of(problem, predicted, np.ones(len(problem.cases), dtype=np.bool_))
            raw = load_profile_file(SERVING_PROFILES_FILE)
            content = with_fit(raw, problem.effects, fitted, bands, _describe(problem.cases))
            write_profile_file(DATA / SERVING_PROFILES_FILE, content)
            self.stdout.write(f"wrote {DATA / SERVING_PROFILES_FILE}")


def _cases(complain: Any) -> list[InferenceCase]:
    library = ModelLibrary(find_model)
    cases = []
    for name in MEASUREMENT_FILES:
        for row in read_cases(DATA / "measurements" / name, ("model", "gpu", "engine")):
            case = read_case(row, library, find_accelerator)
            if isinstance(case, Unsupported):
                complain(f"{name}: {row['source']}: {case.reason}")
            else:
                cases.append(case)
    return cases


def _describe(cases: list[InferenceCase]) -> str:
    dates = sorted(case.date for case in cases if len(case.date) >= 7)
    sources = len({case.row["source"] for case in cases})
    return f"{len(cases)} measured cases of {sources} sources, {dates[0][:7]} to {dates[-1][:7]}"
