"""``manage.py load_catalog``: bring the catalog tables in line with the data files."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from catalog.importers.data_files import DATA_DIR, InvalidData
from catalog.services import load_catalog


class Command(BaseCommand):
    """Exit 0 when the tables match the files, 1 with every problem when the files can't be loaded."""

    help = "Load the catalog's data files: one transaction, all or nothing; the same files again change nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data-dir", type=Path, default=DATA_DIR, help="Folder of the data files.")
        parser.add_argument("--force", action="store_true", help="Compare every row even if the files are the same.")

    def handle(self, *args: Any, data_dir: Path, force: bool, **options: Any) -> None:
        if not data_dir.is_dir():
            self.stderr.write(f"{data_dir}: no such folder")
            sys.exit(1)
        try:
            report = load_catalog(data_dir, force=force)
        except InvalidData as error:
            for problem in error.problems:
                self.stderr.write(str(problem))
            self.stderr.write(f"{len(error.problems)} problems; nothing was loaded.")
            sys.exit(1)
        if report.skipped:
            self.stdout.write(f"Catalog {report.version} is loaded already.")
            return
        for name, change in report.tables.items():
            self.stdout.write(
                f"{name}: {change.rows} rows ({change.created} new, {change.updated} changed, {change.retired} retired)"
            )
        self.stdout.write(f"Catalog {report.version} is loaded.")
