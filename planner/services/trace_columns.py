"""The columns of a trace, how they grow as rows are read, and what is wrong with one that can't be used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.engine.sentences import say

IntArray = NDArray[np.int64]


class TraceError(ValueError):
    """A trace that can't be used: what is wrong, in which row (from 1, the header counted) and column."""

    def __init__(
        self, message: str, *, row: int | None = None, column: str = "", value: object = None, allowed: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.row = row
        self.column = column
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return str(self.sentence)

    @property
    def sentence(self) -> str:
        """The message after its place."""
        values: dict[str, object] = {"row": self.row, "column": self.column, "message": self.message}
        match bool(self.row), bool(self.column):
            case True, True:
                return say("row {row:,}, column {column}: {message}", **values)
            case True, False:
                return say("row {row:,}: {message}", **values)
            case False, True:
                return say("column {column}: {message}", **values)
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """One array a column; optional ones are None where the trace has no such column."""

    arrival_s: NDArray[np.float64]
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    key: IntArray | None = None
    """Which token stream a prompt begins with; -1 none."""
    shared_tokens: NDArray[np.int32] | None = None
    hashes: IntArray | None = None
    """Index of each request's first block hash, one more entry than requests."""
    hash_ids: IntArray | None = None
    names: NDArray[np.str_] | None = None
    """The trace's own request ids."""
    dated: bool = False
    """Arrivals came as dates, and are seconds since 1970."""
    notes: tuple[str, ...] = ()

    def take(self, order: IntArray) -> Columns:
        """The requests in another order."""
        moved: dict[str, Any] = {
            name: getattr(self, name)[order]
            for name in ("arrival_s", "input_tokens", "output_tokens", "key", "shared_tokens", "names")
            if getattr(self, name) is not None
        }
        if self.hashes is not None and self.hash_ids is not None:
            counts = np.diff(self.hashes)[order]
            starts = self.hashes[:-1][order]
            moved["hashes"] = np.concatenate([[0], np.cumsum(counts)])
            within = np.arange(counts.sum()) - np.repeat(moved["hashes"][:-1], counts)
            moved["hash_ids"] = self.hash_ids[np.repeat(starts, counts) + within]
        return replace(self, **moved)


@dataclass(slots=True)
class GrowingColumns:
    """Columns while they are read: a list of pieces each, joined one column at a time."""

    pieces: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    unanswered: int = 0
    rows: int = 0
    dated: bool = False
    decimal_comma: bool = False
    """Whether a time showed that commas are decimal ones."""

    def add(self, name: str, values: NDArray[Any]) -> None:
        self.pieces.setdefault(name, []).append(values)

    def join(self, name: str) -> NDArray[Any] | None:
        pieces = self.pieces.pop(name, None)
        return None if pieces is None else np.concatenate(pieces)

    def columns(self) -> Columns:
        notes = []
        if self.unanswered:
            notes.append(
                say("1 request with 0 output tokens was left out.")
                if self.unanswered == 1
                else say("{requests:,} requests with 0 output tokens were left out.", requests=self.unanswered)
            )
        counts = self.join("hash_count")
        hashes = None if counts is None else np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Columns(
            arrival_s=_or_empty(self.join("arrival"), np.float64),
            input_tokens=_or_empty(self.join("input"), np.int32),
            output_tokens=_or_empty(self.join("output"), np.int32),
            key=self.join("key"),
            shared_tokens=self.join("shared"),
            hashes=hashes,
            hash_ids=self.join("hash_ids"),
            names=self.join("name"),
            dated=self.dated,
            notes=tuple(notes),
        )


def _or_empty(values: NDArray[Any] | None, dtype: type) -> NDArray[Any]:
    return np.zeros(0, dtype) if values is None else values


def keep_answered(growing: GrowingColumns, read: dict[str, NDArray[Any]]) -> None:
    answered = read["output"] > 0
    growing.rows += len(answered)
    if not answered.all():
        growing.unanswered += int(np.count_nonzero(~answered))
        read = {name: values[answered] for name, values in read.items()}
    for name, values in read.items():
        growing.add(name, values)
