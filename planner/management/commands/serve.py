"""Run the whole service on this machine: web server, worker and scheduler, stopped together."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from planner.supervisor import Supervisor

READY_POLL_SECONDS = 0.2


class Command(BaseCommand):
    """Web, worker and beat under one supervisor; returns when all of them have ended."""

    help = "Run web server, worker and scheduler on this machine until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=os.environ.get("HOST", "127.0.0.1"))
        # A default that is text goes through `type` too, so that a mistyped PORT is refused as a mistyped --port is.
        parser.add_argument("--port", type=_port_number, default=os.environ.get("PORT", "8000"))
        parser.add_argument("--no-prepare", action="store_true", help="Database, catalog and static files are ready.")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        _check_address(host, port)
        if not options["no_prepare"]:
            self.stdout.write("Takar: preparing database, catalog and static files.")
            call_command("prepare", verbosity=0)
        environment = _environment(host, port)
        supervisor = Supervisor(on_start=lambda say: _announce(host, port, say))
        for name, command in _commands().items():
            supervisor.add_process(name, command, env=environment, cwd=str(settings.BASE_DIR))
        supervisor.loop()
        # Ctrl-C and SIGTERM are the normal ways to stop, not failures.
        sys.exit(0 if supervisor.returncode in (130, 143) else supervisor.returncode)


def _port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535):
        raise ArgumentTypeError(f"{text!r} is not a port: a whole number from 1 to 65535, as in make start PORT=8080")
    return int(text)


def _commands() -> dict[str, str]:
    python = shlex.quote(sys.executable)
    celery = f"{python} -m celery --quiet -A planner.celery"
    return {
        "web": f"{python} -m gunicorn",
        "worker": f"{celery} worker --loglevel WARNING --without-gossip --without-mingle --without-heartbeat",
        "beat": f"{python} {shlex.quote(str(settings.BASE_DIR / 'manage.py'))} beat",
    }


def _environment(host: str, port: int) -> dict[str, str]:
    environment = os.environ | {"HOST": host, "PORT": str(port), "PYTHONUNBUFFERED": "1"}
    if "ALLOWED_HOSTS" not in environment:
        names = {"localhost", "127.0.0.1", "[::1]", socket.gethostname(), socket.getfqdn()}
        environment["ALLOWED_HOSTS"] = ",".join(sorted(names | {host} - {"0.0.0.0", "::"}))
    return environment


def _check_address(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server does, so that connections still closing after a restart don't count as in use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(f"can't listen on {host} port {port} ({error}); {_advice(error, port)}") from error


def _advice(error: OSError, port: int) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "HOST is an address of this machine: 127.0.0.1 for this machine only, 0.0.0.0 for its network too"
    if error.errno == errno.EACCES:
        return "ports below 1024 need privileges; choose a higher one: make start PORT=8000"
    return f"choose another: make start PORT={port % 65535 + 1}"


def _announce(host: str, port: int, say: Callable[[str], None]) -> None:
    """Say where the site is as soon as it answers."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    while not _is_ready(reachable, port):
        time.sleep(READY_POLL_SECONDS)
    shown = f"[{reachable}]" if ":" in reachable else reachable
    say(f"Takar is ready: http://{shown}:{port}/  (Ctrl-C stops it)")


def _is_ready(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/health/", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
