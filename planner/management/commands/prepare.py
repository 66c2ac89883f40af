"""Bring database, catalog and static files up to date; what is up to date already is left alone."""

from __future__ import annotations

import hashlib
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Everything a start needs, in one process."""

    help = "Migrate, load the catalog and collect static files, skipping what is up to date."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-static", action="store_true", help="The static files are collected already.")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("load_catalog", verbosity=options["verbosity"])
        if not options["no_static"]:
            self._collect_static()

    def _collect_static(self) -> None:
        # Compressing takes seconds, so it is done only when a source file has changed.
        stamp = Path(settings.STATIC_ROOT) / ".collected"
        state = hashlib.sha256("\n".join(sorted(_static_files())).encode()).hexdigest()
        if stamp.is_file() and stamp.read_text(encoding="ascii") == state:
            return
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        stamp.write_text(state, encoding="ascii")


def _static_files() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            yield f"{name} {facts.st_size} {facts.st_mtime_ns}"
