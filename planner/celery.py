"""The Celery application: ``celery -A planner.celery worker`` runs jobs, ``... beat`` the periodic ones."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "planner.settings")

app = Celery("planner")
# The default of every thread: without it a threaded web process would enqueue to an unconfigured broker.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["planner"])
