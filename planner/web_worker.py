"""A web worker whose threads serve requests, and wait for no client.

gunicorn's threaded worker gives a connection to a thread before anything has come, and the thread waits for the rest of
a request however long it takes: a few silent connections would hold all threads. Here the loop gathers what comes, and
a thread gets a request once it is whole. Longer bodies are read by at most half of the threads, which give up on
clients that send next to nothing.
"""

from __future__ import annotations

import errno
import re
import selectors
import socket
import struct
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Final

from gunicorn.workers.gthread import TConn, ThreadWorker

WHOLE_REQUEST_S: Final = 30.0
"""From the connection, or the first byte of a further request, until all of a request has come."""
MOST_GATHERED: Final = 256 * 1024
"""Of a request, in the loop; a thread reads what is longer."""
MOST_HEAD: Final = 64 * 1024
"""Longer ones are for the parser to refuse."""
CHUNK: Final = 64 * 1024
PATIENCE_S: Final = 10.0
"""A thread waits so long for more of a body, and less where little has come before."""
SLOWEST_BYTES_S: Final = 2_000.0
SEND_S: Final = 30
"""A client that reads nothing of its answer for so long has gone."""
LINGER_S: Final = 2.0
"""A connection that is closed stays to be read for so long, or the client might lose the end of its answer."""
MOST_LINGERED: Final = 64 * 1024
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_FOR_A_THREAD: Final = re.compile(rb"\r\n(?:transfer-encoding|expect)[ \t]*:", re.IGNORECASE)


def missing_bytes(gathered: bytes) -> int:
    """How many bytes of a request have yet to come, as far as is known; at least 1 where its head isn't whole.

    >>> missing_bytes(b"GET / HTTP/1.1\\r\\nHost"), missing_bytes(b"GET / HTTP/1.1\\r\\n\\r\\n")
    (1, 0)
    >>> missing_bytes(b"POST / HTTP/1.1\\r\\nContent-Length: 5\\r\\n\\r\\n{}")
    3
    """
    end = gathered.find(_END)
    if end < 0:
        return 1 if len(gathered) < MOST_HEAD else 0
    head = gathered[: end + 2]
    length = _LENGTH.search(head)
    # A body in chunks, or one that waits to be asked for, shows its length to who reads it.
    if length is None or _FOR_A_THREAD.search(head):
        return 0
    return max(0, end + len(_END) + int(length[1]) - len(gathered))


def _received(client: socket.socket) -> bytes | None:
    """What has come; nothing where the connection has ended, None where it only has to be waited for."""
    try:
        return client.recv(CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class PacedSocket:
    """A socket to read a body from, whose patience grows with what comes."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._left_s = PATIENCE_S

    def recv(self, size: int) -> bytes:
        """More of the body; raises ``ConnectionResetError`` where too little comes."""
        before, start_s = self._sock.gettimeout(), time.monotonic()
        self._sock.settimeout(max(0.001, min(self._left_s, self._left_s if before is None else before)))
        try:
            data = self._sock.recv(size)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "Too little came of the request.") from None
        finally:
            self._sock.settimeout(before)
        earned_s = len(data) / SLOWEST_BYTES_S - (time.monotonic() - start_s)
        self._left_s = min(PATIENCE_S, self._left_s + earned_s)
        return data

    def gettimeout(self) -> float | None:
        """Of the socket itself."""
        return self._sock.gettimeout()

    def settimeout(self, seconds: float | None) -> None:
        """Of the socket itself: less patience than its own is heeded."""
        self._sock.settimeout(seconds)


class Connection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """A connection, what has come of its next request, and how it is closed."""

    def __init__(self, worker: PatientWorker, *place: Any) -> None:
        super().__init__(worker.cfg, *place)
        self.worker = worker
        self.gathered = b""
        self.is_long = False
        self.lingered = 0
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))

    def init(self) -> None:
        is_new = not self.initialized
        super().init()
        if is_new:
            self.parser.unreader.sock = PacedSocket(self.sock)
        self.parser.unreader.unread(self.gathered)
        self.gathered = b""

    def close(self, graceful: bool = False) -> None:
        if graceful:
            self.worker.linger(self)
        else:
            super().close()


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """Gathers requests in its loop and gives whole ones to its threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._long_ones = 0
        self._held: deque[Connection] = deque()
        self._lingering: deque[Connection] = deque()

    def accept(self, listener: socket.socket) -> None:
        """Take a connection, and wait for its request without a thread."""
        if self.cfg.is_ssl:
            # Only a thread can read what is encrypted.
            super().accept(listener)
            return
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        self._await(Connection(self, client, address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """A further request begins on a connection kept alive."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._await(conn)

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """What follows an answer: a longer body may be next, and so may what came of a further request already."""
        if conn.is_long:
            conn.is_long = False
            self._long_ones -= 1
            if self._held:
                self._start_long(self._held.popleft())
        early = b""
        if not fs.cancelled() and fs.exception() is None and fs.result() is True and self.alive:
            early = conn.parser.unreader.take_buffered()
        super().finish_request(conn, fs)
        if early and conn in self.keepalived_conns:
            self.poller.unregister(conn.sock)
            self.keepalived_conns.remove(conn)
            self._await(conn)
            self._add(conn, early)

    def linger(self, conn: Connection) -> None:
        """Close a connection once its client has, or has had the time to."""
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))
        except (OSError, ValueError, RuntimeError):
            conn.close()
            return
        self.nr_conns += 1
        conn.timeout = time.monotonic() + LINGER_S
        self._lingering.append(conn)

    def murder_pending(self) -> None:
        """Close what has had its time."""
        super().murder_pending()
        while self._lingering and self._lingering[0].timeout <= time.monotonic():
            self._drop(self._lingering.popleft())

    def _cap_keepalive(self, deadline: float) -> None:
        super()._cap_keepalive(deadline)
        for conn in (*self.pending_conns, *self._lingering):
            conn.timeout = min(conn.timeout, deadline)

    def _await(self, conn: Connection) -> None:
        conn.timeout = time.monotonic() + WHOLE_REQUEST_S
        conn.sock.setblocking(False)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._gather, conn))

    def _gather(self, conn: Connection, client: socket.socket) -> None:
        came = _received(client)
        if came is None:
            return
        if came:
            self._add(conn, came)
        else:
            self.pending_conns.remove(conn)
            self._drop(conn)

    def _add(self, conn: Connection, came: bytes) -> None:
        conn.gathered += came
        missing = missing_bytes(conn.gathered)
        is_long = missing + len(conn.gathered) > MOST_GATHERED
        if missing and not is_long:
            return
        self.poller.unregister(conn.sock)
        self.pending_conns.remove(conn)
        conn.data_ready = True
        head, end, _ = conn.gathered.partition(_END)
        if end and not is_long and not _FOR_A_THREAD.search(head):
            self.enqueue_req(conn)
        elif self._long_ones < max(1, self.cfg.threads // 2):
            self._start_long(conn)
        else:
            self._held.append(conn)

    def _start_long(self, conn: Connection) -> None:
        conn.is_long = True
        self._long_ones += 1
        self.enqueue_req(conn)

    def _drain(self, conn: Connection, client: socket.socket) -> None:
        came = _received(client)
        if came is None:
            return
        conn.lingered += len(came)
        if not came or conn.lingered >= MOST_LINGERED:
            self._lingering.remove(conn)
            self._drop(conn)

    def _drop(self, conn: Connection) -> None:
        # It may be closed already.
        with suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()
