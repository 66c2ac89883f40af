"""PostgreSQL and Redis servers of a test's own, on free ports, with their data in a folder that goes afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

from tests.planner.live_processes import stop_with_parent

START_TIMEOUT_S = 60.0


@contextmanager
def postgresql() -> Iterator[str]:
    """A running PostgreSQL with a database ``takar``; yields its URL."""
    binaries = _postgresql_binaries()
    account = _unprivileged_account()
    with _folder(account) as folder:
        data, port = str(folder / "data"), free_port()
        _run_as(
            account,
            [f"{binaries}/initdb", "-D", data, "-U", "takar", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        )
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with _server(account, [f"{binaries}/postgres", "-D", data, *flags], stop=signal.SIGINT):
            maintenance = f"postgresql://takar@127.0.0.1:{port}/postgres"
            _wait_until(lambda: psycopg.connect(maintenance, connect_timeout=2).close(), psycopg.OperationalError)
            with psycopg.connect(maintenance, autocommit=True) as connection:
                connection.execute("CREATE DATABASE takar")
            yield f"postgres://takar@127.0.0.1:{port}/takar"


@contextmanager
def redis_server() -> Iterator[str]:
    """A running Redis; yields its URL."""
    with restartable_redis() as server:
        yield server.url


@contextmanager
def restartable_redis() -> Iterator[Redis]:
    """A running Redis that keeps nothing and can be restarted."""
    with _folder(None) as folder:
        server = Redis(folder)
        try:
            yield server
        finally:
            server.stop()


class Redis:
    """A Redis server on a port of its own, nothing kept on disk."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self._command += ["--port", str(self.port)]
        self._start()

    def _start(self) -> None:
        self._process = _started(None, self._command)
        client = redis.Redis(port=self.port)
        _wait_until(client.ping, redis.ConnectionError)
        client.close()

    def stop(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def restart(self) -> None:
        """Killed, and started again empty."""
        self._process.kill()
        self._process.wait(30)
        self._start()


def free_port() -> int:
    """A TCP port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _postgresql_binaries() -> Path:
    # Debian keeps the server's programs out of PATH, one folder a version.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    if found is None:
        raise FileNotFoundError("No PostgreSQL server here: apt-get install postgresql")
    return Path(found).resolve().parent


def _unprivileged_account() -> pwd.struct_passwd | None:
    """Who PostgreSQL runs as, for it refuses root; None is whoever runs the tests."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


@contextmanager
def _folder(account: pwd.struct_passwd | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="takar-server-"))
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _run_as(account: pwd.struct_passwd | None, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_identity(account))
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


@contextmanager
def _server(account: pwd.struct_passwd | None, command: list[str], *, stop: signal.Signals) -> Iterator[None]:
    process = _started(account, command)
    try:
        yield
    finally:
        process.send_signal(stop)
        process.wait(30)


def _started(account: pwd.struct_passwd | None, command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        preexec_fn=stop_with_parent,
        **_identity(account),
    )


def _identity(account: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _wait_until(attempt: Callable[[], object], not_yet: type[Exception]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            attempt()
        except not_yet:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
