"""App configuration."""

from django.apps import AppConfig

from planner import celery

__all__ = ["PlannerConfig", "celery"]  # Importing the Celery app makes it the one that services enqueue to.


class PlannerConfig(AppConfig):
    name = "planner"
    verbose_name = "Takar planner"
