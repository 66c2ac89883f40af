"""Fit training constants on the measurement files and print the cross-validated errors."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand

from catalog.accelerator_files import find_accelerator
from catalog.profiles import DATA, load_profile_file
from catalog.training_files import PROFILES_FILE, profiles_from
from planner.services.validation.training_calibration import Calibrator, specs_from
from planner.services.validation.training_measurements import read_measurements
from planner.services.validation.training_profile_file import with_values, write_profile_file
from planner.services.validation.training_summary import calibration_summary, describe_rows

MEASUREMENT_FILES = ("training.csv",)


class Command(BaseCommand):
    help = "Fit training constants on the measurement files; print grouped cross-validation errors."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="store the fitted constants in the profile file")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = [
            row
            for name in MEASUREMENT_FILES
            for row in read_measurements(DATA / "measurements" / name, find_accelerator)
        ]
        raw = load_profile_file(PROFILES_FILE)
        profiles = replace(profiles_from(raw), fitted_on=describe_rows(rows))
        calibrator = Calibrator(profiles, specs_from(raw["step"]), specs_from(raw["memory"]))
        found = calibrator.calibrate(rows)
        self.stdout.write(calibration_summary(rows, found))
        if options["write"]:
            write_profile_file(DATA / PROFILES_FILE, with_values(raw, found.profiles))
            self.stdout.write(f"wrote {DATA / PROFILES_FILE}")
