"""A server that answers once with given bytes, for tests of calls out."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def answering(answer: bytes, *, context: ssl.SSLContext | None = None, drip: float = 0.0) -> Iterator[tuple[int, Any]]:
    """A server that answers each call with these bytes, all at once or one by one; yields its port and what it got."""
    got: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                caller = context.wrap_socket(plain, server_side=True) if context else plain
                got.append(_request(caller))
                for at in range(0, len(answer), 1 if drip else len(answer)):
                    caller.sendall(answer[at : at + (1 if drip else len(answer))])
                    time.sleep(drip)
                caller.close()
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], got
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def _request(caller: socket.socket) -> bytes:
    """Head and body of one request."""
    data = b""
    while b"\r\n\r\n" not in data and (part := caller.recv(65536)):
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    while length and len(body) < int(length[1]) and (part := caller.recv(65536)):
        body += part
    return head + b"\r\n\r\n" + body
