"""``manage.py rebuild_accuracy``: predict every measured case anew and write the accuracy page's file."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from catalog.accuracy_file import ACCURACY_FILE, write_accuracy
from planner.services.validation.accuracy import build_accuracy


class Command(BaseCommand):
    help = "Predict every measured case, each by a fit without its own group, and write the accuracy page's file."

    def handle(self, *args: Any, **options: Any) -> None:
        accuracy = build_accuracy(today=timezone.now().date(), told=self.stderr.write)
        write_accuracy(accuracy)
        for found in accuracy.sets:
            cases = len(found.cases)
            self.stdout.write(f"{found.kind}: {cases} cases of {sum(found.files.values())} rows")
        self.stdout.write(f"wrote {ACCURACY_FILE}")
