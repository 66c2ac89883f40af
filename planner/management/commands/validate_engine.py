"""Replay published cases through the engine and print the error table."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.selectors import CatalogNotLoaded, find_model
from planner.services.validation import inference, kv_capacity, long_runs, memory, training
from planner.services.validation.model_library import ModelLibrary, read_architectures
from planner.services.validation.replay import BadCaseFile, read_cases, write_predictions
from planner.services.validation.report import format_report

KINDS = {
    "inference": inference.KIND,
    "kv_capacity": kv_capacity.KIND,
    "long_runs": long_runs.KIND,
    "memory": memory.KIND,
    "training": training.KIND,
}


class Command(BaseCommand):
    help = "Replay published cases through the engine; write predictions, print the error table."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", choices=sorted(KINDS))
        parser.add_argument("cases", type=Path, help="CSV of published cases")
        parser.add_argument("--out", type=Path, required=True, help="where predictions are written")
        parser.add_argument("--architectures", type=Path, help="CSV for models the catalog doesn't have")

    def handle(self, *args: Any, **options: Any) -> None:
        kind = KINDS[options["kind"]]
        try:
            cases = read_cases(options["cases"], ("id", *kind.required))
            rows = read_architectures(options["architectures"]) if options["architectures"] else {}
        except (BadCaseFile, OSError, KeyError) as error:
            raise CommandError(str(error), returncode=2) from error
        try:
            predictions = kind.predict(cases, ModelLibrary(find_model, rows))
        except CatalogNotLoaded as error:
            raise CommandError(str(error), returncode=2) from error
        write_predictions(options["out"], cases, predictions, kind)
        self.stdout.write(format_report(cases, predictions, kind))
