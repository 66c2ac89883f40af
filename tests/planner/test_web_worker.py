"""The web server's worker: clients that send nothing, or half, keep no thread from the others."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from unittest.mock import Mock

import pytest

from planner.web_worker import MOST_GATHERED, MOST_HEAD, PacedSocket, missing_bytes
from tests.planner.live_processes import ROOT, stop_with_parent
from tests.planner.real_servers import free_port

THREADS = 2
MANY = 12
AT_ONCE_S = 3.0
LONG = b"POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MOST_GATHERED + 1)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server of one process with two threads."""
    folder, port = tmp_path_factory.mktemp("web"), free_port()
    arguments = ["-k", "planner.web_worker.PatientWorker", "-w", "1", "--threads", str(THREADS)]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *arguments, "-b", f"127.0.0.1:{port}", "tests.planner.echo_app:app"],
            # A folder without the project's own gunicorn.conf.py.
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=stop_with_parent,
        )
    _wait_for(port, folder / "web.log")
    yield port
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0


def _wait_for(port: int, log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    pytest.fail(log.read_text())


def said(port: int, path: str = "/", body: bytes | None = None) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=AT_ONCE_S)
    connection.request("GET" if body is None else "POST", path, body)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT",
        b"GET / HTTP/1.0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_who_sends_nothing_or_half_a_request_holds_no_thread(port: int, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(MANY):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(sent)
        time.sleep(0.3)
        start_s = time.monotonic()
        assert said(port) == "/ 0"
        assert time.monotonic() - start_s < 1.0


def test_long_bodies_leave_threads_for_the_others_and_wait_for_each_other(port: int) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(2)]
        for client in slow:
            client.sendall(LONG + b"x")
        time.sleep(0.3)
        assert said(port) == "/ 0"
        for client in slow:
            client.sendall(b"x" * MOST_GATHERED)
        for client in slow:
            answer = HTTPResponse(client)
            answer.begin()
            assert answer.read() == f"/long {MOST_GATHERED + 1}".encode()


@pytest.mark.parametrize("size", [0, 1, 70_000, MOST_GATHERED - 200, MOST_GATHERED, 3 * MOST_GATHERED])
def test_bodies_of_every_length_arrive_whole(port: int, size: int) -> None:
    assert said(port, "/body", b"x" * size) == f"/body {size}"


def test_bodies_in_chunks_and_those_that_wait_to_be_asked_for_arrive(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=AT_ONCE_S) as client:
        client.sendall(b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        time.sleep(0.1)
        client.sendall(b"2\r\nde\r\n0\r\n\r\n")
        answer = HTTPResponse(client)
        answer.begin()
        assert answer.read() == b"/c 5"
        client.sendall(b"POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100 Continue")
        client.sendall(b"data")
        answer = HTTPResponse(client)
        answer.begin()
        assert answer.read() == b"/e 4"


def test_requests_on_one_connection_come_one_after_another_however_they_are_cut(port: int) -> None:
    sent = b"".join(b"POST /%d HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab" % n for n in range(5))
    for cut in (1, 7, 50, len(sent)):
        with socket.create_connection(("127.0.0.1", port), timeout=AT_ONCE_S) as client:
            for at in range(0, len(sent), cut):
                client.sendall(sent[at : at + cut])
            found = b""
            while b"/4 2" not in found:
                found += client.recv(4096)
            assert [b"/%d 2" % n in found for n in range(5)] == [True] * 5


def test_what_is_missing_of_a_request() -> None:
    assert missing_bytes(b"x" * MOST_HEAD) == 0
    assert missing_bytes(b"POST / HTTP/1.1\r\ncontent-LENGTH:\t7 \r\nHost: x\r\n\r\nabc") == 4
    assert missing_bytes(b"POST / HTTP/1.1\r\nContent-Length: nine\r\n\r\n") == 0
    assert missing_bytes(b"POST / HTTP/1.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n") == 0


def test_a_threads_patience_ends_where_next_to_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("planner.web_worker.time", Mock(monotonic=lambda: now_s[0]))
    waits: list[float] = []

    def recv(_size: int) -> bytes:
        now_s[0] += min(4.0, waits[-1])
        if waits[-1] < 4.0:
            raise TimeoutError
        return b"x"

    def settimeout(seconds: float | None) -> None:
        if seconds is not None:
            waits.append(seconds)

    slow = PacedSocket(Mock(gettimeout=lambda: None, settimeout=settimeout, recv=recv))
    assert [slow.recv(10), slow.recv(10)] == [b"x", b"x"]
    with pytest.raises(ConnectionResetError):
        slow.recv(10)
    assert waits == pytest.approx([10.0, 6.0, 2.0], abs=0.01)
