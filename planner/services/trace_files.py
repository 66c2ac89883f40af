"""Request traces from files: three forms, plain or gzip, checked row by row while they stream in.

Own CSV ``arrival_s,input_tokens,output_tokens[,prefix_id,prefix_tokens,request_id]``, the Azure LLM trace
(``TIMESTAMP,ContextTokens,GeneratedTokens``) and Mooncake's JSON lines (``timestamp`` in ms, ``input_length``,
``output_length``, ``hash_ids``). The first wrong value stops the reading with its row and column; what is
merely untidy (rows out of order, requests without an answer) is put right and said in ``notes``.

A trace is kept as one array a column, about 16 bytes a request, and never twice.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from planner.engine.sentences import say
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.planned_replica import Lengths
from planner.engine.simulate.traffic import BATCH, batch
from planner.services.trace_columns import Columns, TraceError
from planner.services.trace_rows import MOONCAKE_BLOCK_TOKENS, read_csv_columns, read_mooncake

MAX_LINE_BYTES = 4 * 2**20
GZIP_MAGIC = b"\x1f\x8b"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
LINES_AT_A_TIME = 65_536
BYTES_AT_A_TIME = 16 * 2**20
"""Read at once, at most, and one line: of short lines many, of long ones few, so that no file fills the memory."""
MAX_ROWS = 200_000_000

Told = Callable[[int], None]
"""Told the rows read so far."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """A checked trace, sorted by arrival; the first request arrives at 0."""

    columns: Columns
    origin_s: float
    """The file's own time of the first arrival, added back wherever its times are shown; 0 where it has dates."""
    hash_tokens: int | None
    """Tokens that one of its block hashes covers."""
    notes: tuple[str, ...]
    """What was put right or assumed, in words."""

    def __len__(self) -> int:
        return len(self.columns.arrival_s)

    @property
    def lengths(self) -> Lengths:
        """Mean prompt and answer."""
        columns = self.columns
        return Lengths(
            input_tokens=float(np.mean(columns.input_tokens)), output_tokens=float(np.mean(columns.output_tokens))
        )

    @property
    def hash_ids(self) -> NDArray[np.int64] | None:
        """Its block hashes, all requests one after another."""
        return self.columns.hash_ids

    @property
    def is_job(self) -> bool:
        """Whether all its requests arrive at once."""
        return bool(self.columns.arrival_s[-1] == 0)

    @property
    def has_no_prefixes(self) -> bool:
        """False: what its prompts share is in the trace, where it is known."""
        return False

    @property
    def loop(self) -> None:
        """None: its requests come at their own times."""

    @property
    def lasts_s(self) -> float:
        """0: a trace says when its requests come, and ends with the last."""
        return 0.0

    def batches(self, size: int = BATCH) -> Iterator[Traffic]:
        """The requests as traffic, a batch at a time."""
        columns = self.columns
        for start in range(0, max(len(self), 1), size):
            cut = slice(start, start + size)
            yield batch(
                columns.arrival_s[cut],
                columns.input_tokens[cut],
                columns.output_tokens[cut],
                key=None if columns.key is None else columns.key[cut],
                shared_tokens=None if columns.shared_tokens is None else columns.shared_tokens[cut],
                hashes=None if columns.hashes is None else columns.hashes[start : start + size + 1],
                first_request=start,
            )


def read_trace(path: Path, *, told: Told | None = None) -> Trace:
    """Read and check the trace in ``path``; raises ``TraceError`` naming the first row and column at fault."""
    try:
        with path.open("rb") as stream:
            return read_trace_stream(stream, told=told)
    except OSError as error:
        reason = error.strerror or str(error)
        text = say("Can't read the file: {reason}.", reason=reason)
        raise TraceError(text, value=str(path), allowed=say("a readable file")) from error


def read_trace_stream(stream: BinaryIO, *, told: Told | None = None, names: bool = True) -> Trace:
    """Read and check a trace from an open file, upload or pipe; its requests' own ids only where asked for."""
    buffered = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream
    start = buffered.read(2)
    joined: io.BufferedIOBase = io.BufferedReader(_Joined(start, buffered), 2**20)
    if start == GZIP_MAGIC:
        joined = gzip.GzipFile(fileobj=joined)
    try:
        return _read(joined, told, names)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> TraceError:
    """Compressed data that ends early or is broken."""
    return TraceError(say("The gzip data is damaged: {reason}.", reason=str(error)), allowed=say("a complete .gz file"))


class _Joined(io.RawIOBase):
    """Bytes already taken, then the rest of the stream they came from."""

    def __init__(self, taken: bytes, rest: BinaryIO | io.BufferedIOBase) -> None:
        self._taken = taken
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._taken[: len(buffer)]
        self._taken = self._taken[len(data) :]
        data += self._rest.read(len(buffer) - len(data))
        buffer[: len(data)] = data
        return len(data)


def _read(stream: io.BufferedIOBase, told: Told | None, names: bool) -> Trace:
    head = stream.read(64)
    if head.startswith(WIDE_MARKS):
        raise TraceError(say("The file is UTF-16 or UTF-32."), row=1, allowed=say("UTF-8 text"))
    head = head.removeprefix(UTF8_MARK)
    lines = _chunks(io.BufferedReader(_Joined(head, stream), 2**20))
    if head.lstrip().startswith((b"{", b"[")):
        return _finish(read_mooncake(lines, told), hash_tokens=MOONCAKE_BLOCK_TOKENS)
    return _finish(read_csv_columns(lines, told, names=names), hash_tokens=None)


@dataclass(slots=True)
class _Lines:
    """Counts physical lines for messages."""

    number: int = 0
    texts: list[str] = field(default_factory=list)


def _chunks(stream: io.BufferedIOBase) -> Iterator[tuple[int, list[str]]]:
    """Lines of text, many at a time, with the number of the first (from 1)."""
    lines = _Lines()
    while True:
        first = lines.number + 1
        lines.texts = []
        size = 0
        while len(lines.texts) < LINES_AT_A_TIME and size < BYTES_AT_A_TIME:
            line = stream.readline(MAX_LINE_BYTES)
            if not line:
                break
            lines.number += 1
            size += len(line)
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise TraceError(
                    say("The line is longer than {most} MiB.", most=MAX_LINE_BYTES // 2**20),
                    row=lines.number,
                    allowed=say("one request a line"),
                )
            lines.texts.append(_text(line, lines.number))
        if lines.number > MAX_ROWS:
            allowed = say("up to {most:,} requests", most=MAX_ROWS)
            raise TraceError(say("Too many rows."), row=lines.number, allowed=allowed)
        if not lines.texts:
            return
        yield first, lines.texts


def _text(line: bytes, row: int) -> str:
    if b"\0" in line:
        message = say("Not text: byte {byte} of the line is zero.", byte=line.index(b"\0"))
        raise TraceError(message, row=row, allowed=say("UTF-8 text"))
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        message = say("Not UTF-8 text at byte {byte} of the line.", byte=error.start)
        raise TraceError(message, row=row, allowed=say("UTF-8 text")) from error


def _finish(columns: Columns, *, hash_tokens: int | None) -> Trace:
    notes = list(columns.notes)
    if not len(columns.arrival_s):
        raise TraceError(say("The trace has no requests."), allowed=say("at least one row after the header"))
    arrival_s = columns.arrival_s
    if np.any(arrival_s[1:] < arrival_s[:-1]):
        moved = int(np.count_nonzero(arrival_s[1:] < arrival_s[:-1]))
        columns = columns.take(np.argsort(arrival_s, kind="stable"))
        arrival_s = columns.arrival_s
        notes.append(
            say("Rows were not in order of arrival (1 step back in time); they were sorted.")
            if moved == 1
            else say("Rows were not in order of arrival ({steps:,} steps back in time); they were sorted.", steps=moved)
        )
    start_s = float(arrival_s[0])
    arrival_s -= start_s
    return Trace(
        columns=columns, origin_s=0.0 if columns.dated else start_s, hash_tokens=hash_tokens, notes=tuple(notes)
    )
