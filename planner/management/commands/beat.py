"""The scheduler of one machine: one runs, however many copies of the service share the data folder."""

from __future__ import annotations

import fcntl
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Waits until no other scheduler of the data folder runs, then becomes it."""

    help = "Run the scheduler; while another one runs on the same data, wait to take over from it."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        # Held by the open file, also after exec: the system lets go of it with the process, however that ends.
        lock = os.open(settings.VAR_DIR / "beat.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.stdout.write("Another scheduler runs on this data; waiting to take over from it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.set_inheritable(lock, True)
        celery = [sys.executable, "-m", "celery", "--quiet", "-A", "planner.celery", "beat", "--loglevel", "WARNING"]
        schedule = str(settings.VAR_DIR / "beat-schedule")
        os.execv(sys.executable, [*celery, "--pidfile=", "--schedule", schedule])
