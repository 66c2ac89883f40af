"""The rows of a trace as columns: what each form calls its columns, and what each value must be."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Lines = Iterator[tuple[int, list[str]]]

MOONCAKE_BLOCK_TOKENS: Final = 512
MAX_TOKENS: Final = 2**31 - 1
MAX_SECONDS: Final = 1e12
SHOWN: Final = 80

OWN: Final = {
    "arrival_s": "arrival",
    "input_tokens": "input",
    "output_tokens": "output",
    "prefix_id": "key",
    "prefix_tokens": "shared",
    "request_id": "name",
}
AZURE: Final = {"timestamp": "time", "contexttokens": "input", "generatedtokens": "output"}
BURSTGPT: Final = {"timestamp": "arrival", "request tokens": "input", "response tokens": "output"}
FORMS: Final = {"own": OWN, "Azure": AZURE, "BurstGPT": BURSTGPT}
NEEDED: Final = ("input", "output")


class TraceError(ValueError):
    """A trace that can't be used: what is wrong, in which row (from 1, the header counted) and column."""

    def __init__(
        self, message: str, *, row: int | None = None, column: str = "", value: object = None, allowed: str = ""
    ) -> None:
        place = ", ".join(
            part for part in (f"row {row:,}" if row else "", f"column {column}" if column else "") if part
        )
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.row = row
        self.column = column
        self.value = value
        self.allowed = allowed


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
class _Growing:
    """Columns while they are read: a list of pieces each, joined one column at a time."""

    pieces: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    unanswered: int = 0
    rows: int = 0
    dated: bool = False

    def add(self, name: str, values: NDArray[Any]) -> None:
        self.pieces.setdefault(name, []).append(values)

    def join(self, name: str) -> NDArray[Any] | None:
        pieces = self.pieces.pop(name, None)
        return None if pieces is None else np.concatenate(pieces)

    def columns(self) -> Columns:
        notes = []
        if self.unanswered:
            notes.append(f"{self.unanswered:,} requests with 0 output tokens were left out.")
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


def read_csv_columns(lines: Lines, told: Callable[[int], None] | None) -> Columns:
    """All rows of a CSV trace as columns."""
    growing = _Growing()
    header: dict[int, tuple[str, str]] | None = None
    width = 0
    delimiter = ","
    for first, texts in lines:
        skip = 0
        if header is None:
            delimiter = _delimiter(texts[0])
            header, width = _read_header(texts[0], delimiter)
            skip = 1
        _add_rows(growing, texts[skip:], first + skip, header, width, delimiter)
        if told is not None:
            told(growing.rows)
    if header is None:
        raise TraceError("The file is empty.", row=1, allowed="a header and one request a line")
    return growing.columns()


def _delimiter(header: str) -> str:
    return max((",", ";", "\t"), key=header.count)


def _read_header(line: str, delimiter: str) -> tuple[dict[int, tuple[str, str]], int]:
    """Position -> (what it is, its name in the file) for the columns used, and the number of columns."""
    names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    lowered = [name.lower() for name in names]
    for form in FORMS.values():
        used = {
            lowered.index(name): (kind, names[lowered.index(name)]) for name, kind in form.items() if name in lowered
        }
        kinds = {kind for kind, _ in used.values()}
        if {"input", "output"} <= kinds and kinds & {"arrival", "time"}:
            return used, len(names)
    missing = [name for name, kind in OWN.items() if kind in ("arrival", *NEEDED) and name not in lowered]
    shown = ", ".join(names)[:SHOWN]
    raise TraceError(
        f"The header lacks {', '.join(missing)}; it has {shown or 'nothing'}.",
        row=1,
        column=missing[0],
        value=shown,
        allowed="arrival_s,input_tokens,output_tokens or TIMESTAMP,ContextTokens,GeneratedTokens",
    )


def _add_rows(
    growing: _Growing,
    texts: Sequence[str],
    first: int,
    header: dict[int, tuple[str, str]],
    width: int,
    delimiter: str,
) -> None:
    numbers, rows = [], []
    for number, row in enumerate(_split(texts, first, delimiter), start=first):
        if not row:
            continue
        if len(row) != width:
            raise TraceError(
                f"{len(row)} values in a row of {width} columns.", row=number, allowed=f"{width} values a row"
            )
        numbers.append(number)
        rows.append(row)
    if not rows:
        return
    by_position = list(zip(*rows, strict=True))
    read: dict[str, NDArray[Any]] = {}
    for position, (kind, name) in header.items():
        read[kind] = _READERS[kind](by_position[position], numbers, name)
    if "time" in read:
        read["arrival"] = read.pop("time")
        growing.dated = True
    _keep_answered(growing, read)


def _split(texts: Sequence[str], first: int, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    try:
        yield from reader
    except csv.Error as error:
        raise TraceError(f"Not CSV: {error}.", row=first + max(reader.line_num, 1) - 1, allowed="plain CSV") from error


def _keep_answered(growing: _Growing, read: dict[str, NDArray[Any]]) -> None:
    answered = read["output"] > 0
    growing.rows += len(answered)
    if not answered.all():
        growing.unanswered += int(np.count_nonzero(~answered))
        read = {name: values[answered] for name, values in read.items()}
    for name, values in read.items():
        growing.add(name, values)


def _seconds(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    values = _floats(texts, numbers, name, "a number of seconds, 0 or more")
    _refuse(~(np.abs(values) <= MAX_SECONDS), "Not a finite time.", texts, numbers, name, "seconds up to 1e12")
    _refuse(values < 0, "Negative.", texts, numbers, name, "0 or more seconds")
    return values


def _input_tokens(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    values = _tokens(texts, numbers, name)
    _refuse(values == 0, "A prompt of no tokens.", texts, numbers, name, f"1 to {MAX_TOKENS}")
    return values


def _tokens(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    allowed = f"a whole number from 0 to {MAX_TOKENS}"
    values = _floats(texts, numbers, name, allowed)
    _refuse(~np.isfinite(values), "Not a finite number.", texts, numbers, name, allowed)
    _refuse(values < 0, "Negative.", texts, numbers, name, allowed)
    _refuse(values > MAX_TOKENS, "Out of range.", texts, numbers, name, allowed)
    _refuse(values != np.floor(values), "Not a whole number.", texts, numbers, name, allowed)
    return values.astype(np.int32)


def _floats(texts: Sequence[str], numbers: Sequence[int], name: str, allowed: str) -> NDArray[np.float64]:
    try:
        return np.array(list(map(float, texts)), dtype=np.float64)
    except ValueError:
        for text, number in zip(texts, numbers, strict=True):
            _one_float(text, number, name, allowed)
        raise


def _one_float(text: str, number: int, name: str, allowed: str) -> None:
    try:
        float(text)
    except ValueError:
        message = "Empty." if not text.strip() else "Not a number."
        raise TraceError(message, row=number, column=name, value=text[:SHOWN], allowed=allowed) from None


def _refuse(
    wrong: NDArray[np.bool_], message: str, texts: Sequence[str], numbers: Sequence[int], name: str, allowed: str
) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        shown = texts[at][:SHOWN]
        raise TraceError(f"{message} ({shown})", row=numbers[at], column=name, value=shown, allowed=allowed)


def _instants(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Timestamps (UTC) as seconds since 1970, to the microsecond."""
    plain = [text.strip().removesuffix("Z").removesuffix("+00:00") for text in texts]
    try:
        instants = np.array(plain, dtype="M8[ns]")
    except ValueError:
        for text, number in zip(plain, numbers, strict=True):
            try:
                np.datetime64(text, "ns")
            except ValueError:
                raise TraceError(
                    "Not a time.", row=number, column=name, value=text[:SHOWN], allowed="like 2023-11-16 18:15:46.68"
                ) from None
        raise
    missing = np.isnat(instants)
    _refuse(missing, "Not a time.", texts, numbers, name, "like 2023-11-16 18:15:46.68")
    # Whole seconds and the rest apart: a double can't hold nanoseconds since 1970.
    whole = instants.astype("M8[s]")
    seconds: NDArray[Any] = whole.astype(np.int64) + (instants - whole).astype(np.int64) * 1e-9
    return seconds


def _keys(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Names of shared prefixes as numbers; empty means none."""
    return np.array([_key(text.strip()) for text in texts], dtype=np.int64)


def _key(text: str) -> int:
    if not text:
        return -1
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _names(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    return np.array([text.strip()[:SHOWN] for text in texts], dtype=np.str_)


_READERS: Final[dict[str, Callable[[Sequence[str], Sequence[int], str], NDArray[Any]]]] = {
    "arrival": _seconds,
    "time": _instants,
    "input": _input_tokens,
    "output": _tokens,
    "key": _keys,
    "shared": _tokens,
    "name": _names,
}


def read_mooncake(lines: Lines, told: Callable[[int], None] | None) -> Columns:
    """All rows of a Mooncake trace (JSON lines) as columns."""
    growing = _Growing()
    for first, texts in lines:
        numbers, objects = [], []
        for number, text in enumerate(texts, start=first):
            if text.strip():
                numbers.append(number)
                objects.append(_object(text, number))
        if not objects:
            continue
        read = {
            "arrival": _seconds(_texts(objects, numbers, "timestamp"), numbers, "timestamp") / 1e3,
            "input": _input_tokens(_texts(objects, numbers, "input_length"), numbers, "input_length"),
            "output": _tokens(_texts(objects, numbers, "output_length"), numbers, "output_length"),
        }
        ids = [_hash_ids(item, number) for item, number in zip(objects, numbers, strict=True)]
        answered = read["output"] > 0
        kept = [each for each, keep in zip(ids, answered, strict=True) if keep]
        growing.add("hash_count", np.array([len(each) for each in kept], dtype=np.int64))
        growing.add("hash_ids", np.array([one for each in kept for one in each], dtype=np.int64))
        _keep_answered(growing, read)
        if told is not None:
            told(growing.rows)
    return growing.columns()


def _object(text: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise TraceError(
            f"Not JSON: {error}.", row=number, value=text[:SHOWN], allowed="one JSON object a line"
        ) from None
    if not isinstance(value, dict):
        raise TraceError("Not a JSON object.", row=number, value=text[:SHOWN], allowed="one JSON object a line")
    return value


def _texts(objects: Iterable[dict[str, Any]], numbers: Sequence[int], name: str) -> list[str]:
    texts = []
    for item, number in zip(objects, numbers, strict=True):
        value = item.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            message = "Missing." if name not in item else "Not a number."
            raise TraceError(message, row=number, column=name, value=repr(value)[:SHOWN], allowed="a number")
        texts.append(repr(value))
    return texts


def _hash_ids(item: dict[str, Any], number: int) -> list[int]:
    ids = item.get("hash_ids", [])
    if not isinstance(ids, list) or not all(
        isinstance(one, int) and not isinstance(one, bool) and 0 <= one < math.inf and one < 2**63 for one in ids
    ):
        raise TraceError(
            "Not a list of whole numbers.",
            row=number,
            column="hash_ids",
            value=repr(ids)[:SHOWN],
            allowed="[0, 1, ...]",
        )
    return ids
