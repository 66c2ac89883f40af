"""``manage.py validate_simulator``: measured serving runs replayed through the simulator, with the errors."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from planner.services.validation.replays import compare, read_replays, table


class Command(BaseCommand):
    help = "Replays measured serving runs through the simulator and prints how far it is off."

    def handle(self, *args: Any, **options: Any) -> None:
        """One table, all runs."""
        self.stdout.write(table([one for replay in read_replays() for one in compare(replay)]))
