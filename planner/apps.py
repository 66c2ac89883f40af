"""App configuration."""

from typing import Any

from django.apps import AppConfig
from django.core.management import call_command
from django.db.models.signals import post_migrate

from planner import celery

__all__ = ["PlannerConfig", "celery"]  # Importing the Celery app makes it the one that services enqueue to.


class PlannerConfig(AppConfig):
    name = "planner"
    verbose_name = "Takar planner"

    def ready(self) -> None:
        post_migrate.connect(_make_cache_table, sender=self)


def _make_cache_table(using: str, **_: Any) -> None:
    """A cache in the database is a table of it: made by whatever migrates, where it isn't there yet."""
    call_command("createcachetable", database=using, verbosity=0)
