"""Print the serving-memory constants that the published start-up logs give, and their error on unseen logs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from planner.services.validation.memory_fit import format_fit, read_logs


class Command(BaseCommand):
    help = "Fit serving-memory constants on the published start-up logs and print them with their errors."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(format_fit(read_logs()))
