"""``manage.py bench``: the figures of docs/performance.md, measured now, each beside its target."""

from typing import Any

from django.core.management.base import BaseCommand

from planner.services.benchmark import measure


class Command(BaseCommand):
    help = "Measure the figures of docs/performance.md and print them beside their targets."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{'figure':<60} {'measured':>14} {'target':>14}")
        for figure in measure():
            sign = ">=" if figure.larger_is_better else "<="
            self.stdout.write(
                f"{figure.name:<60} {figure.value:>10,.1f} {figure.unit:<3} {sign} {figure.target:>8,g} {figure.unit}"
                f"{'' if figure.met else '  MISSED'}"
            )
