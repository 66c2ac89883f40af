"""The rows of a trace as columns: what each form calls its columns."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.sentences import Noun, say
from planner.services.trace_columns import Columns, GrowingColumns, TraceError, keep_answered
from planner.services.trace_values import READERS, SHOWN, input_lengths, lengths, milliseconds

Lines = Iterator[tuple[int, list[str]]]
MOONCAKE_BLOCK_TOKENS: Final = 512
MOST_HASHES: Final = 200_000_000
"""Block hashes of a trace: 1.6 GB."""
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
DECIMAL_COMMA: Final = re.compile(r"\d+,\d+", re.ASCII)
ONE_GROUP: Final = re.compile(r"[1-9]\d{0,2},\d{3}", re.ASCII)
"""May be thousands as well."""


def read_csv_columns(lines: Lines, told: Callable[[int], None] | None, *, names: bool = True) -> Columns:
    """All rows of a CSV trace as columns; the requests' own ids only where ``names`` are asked for."""
    growing = GrowingColumns()
    header: dict[int, tuple[str, str]] | None = None
    width = 0
    delimiter = ","
    for first, texts in lines:
        skip = 0
        if header is None:
            delimiter = _delimiter(texts[0])
            header, width = _read_header(texts[0], delimiter)
            if not names:
                header = {at: used for at, used in header.items() if used[0] != "name"}
            skip = 1
        _add_rows(growing, texts[skip:], first + skip, header, width, delimiter)
        if told is not None:
            told(growing.rows)
    if header is None:
        raise TraceError(say("The file is empty."), row=1, allowed=say("a header and one request a line"))
    return growing.columns()


def _delimiter(header: str) -> str:
    return max((",", ";", "\t"), key=header.count)


def _read_header(line: str, delimiter: str) -> tuple[dict[int, tuple[str, str]], int]:
    """Position -> (what it is, its name in the file) for the columns used, and the number of columns."""
    names = [name.strip() for _number, row in _split([line], 1, delimiter) for name in row]
    lowered = [name.lower() for name in names]
    for form in FORMS.values():
        used = {
            lowered.index(name): (kind, names[lowered.index(name)]) for name, kind in form.items() if name in lowered
        }
        kinds = {kind for kind, _ in used.values()}
        if {"input", "output"} <= kinds and kinds & {"arrival", "time"}:
            _refuse_twins(names, [lowered[at] for at in used])
            return used, len(names)
    missing = [name for name, kind in OWN.items() if kind in ("arrival", *NEEDED) and name not in lowered]
    shown = ", ".join(names)[:SHOWN]
    raise TraceError(
        say("The header lacks {missing}; it has {names}.", missing=", ".join(missing), names=shown or Noun("nothing")),
        row=1,
        column=missing[0],
        value=shown,
        allowed=say(
            "{own} or {azure}",
            own="arrival_s,input_tokens,output_tokens",
            azure="TIMESTAMP,ContextTokens,GeneratedTokens",
        ),
    )


def _refuse_twins(names: Sequence[str], used: Sequence[str]) -> None:
    """Of two columns with one name nobody knows which is meant."""
    for wanted in used:
        twins = [name for name in names if name.lower() == wanted]
        if len(twins) > 1:
            message = say("The header has {column} {times} times.", column=twins[0], times=len(twins))
            raise TraceError(message, row=1, column=twins[0], value=twins[0], allowed=say("each column once"))


def _add_rows(
    growing: GrowingColumns,
    texts: Sequence[str],
    first: int,
    header: dict[int, tuple[str, str]],
    width: int,
    delimiter: str,
) -> None:
    numbers, rows = [], []
    for number, row in _split(texts, first, delimiter):
        if not row:
            continue
        if len(row) != width:
            raise TraceError(
                say("{values} values in a row of {columns} columns.", values=len(row), columns=width),
                row=number,
                allowed=say("{columns} values a row", columns=width),
            )
        numbers.append(number)
        rows.append(row)
    if not rows:
        return
    by_position = list(zip(*rows, strict=True))
    read: dict[str, NDArray[Any]] = {}
    for position, (kind, name) in header.items():
        values = by_position[position]
        if kind == "arrival" and delimiter != ",":
            values = _with_points(values, growing)
        read[kind] = READERS[kind](values, numbers, name)
    if "time" in read:
        read["arrival"] = read.pop("time")
        growing.dated = True
    keep_answered(growing, read)


def _with_points(values: tuple[str, ...], growing: GrowingColumns) -> tuple[str, ...]:
    """Times with a decimal point, as spreadsheets of many countries write a comma; left as they are, to be refused,
    while none tells it from a group of thousands (``1,500``).
    """
    if not any("," in value for value in values):
        return values
    growing.decimal_comma |= any(
        DECIMAL_COMMA.fullmatch(value.strip()) and not ONE_GROUP.fullmatch(value.strip()) for value in values
    )
    if not growing.decimal_comma:
        return values
    return tuple(value.replace(",", ".") if DECIMAL_COMMA.fullmatch(value.strip()) else value for value in values)


def _split(texts: Sequence[str], first: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows, and the line that each begins in: quoted values may hold line ends."""
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    number = first
    try:
        for row in reader:
            yield number, row
            number = first + reader.line_num
    except csv.Error as error:
        if "new-line" in str(error):
            message, allowed = say("Lines end in CR alone."), say("plain CSV, lines ended by LF or CRLF")
            raise TraceError(message, row=number, allowed=allowed) from error
        raise TraceError(say("Not CSV: {reason}.", reason=str(error)), row=number, allowed=say("plain CSV")) from error


def read_mooncake(lines: Lines, told: Callable[[int], None] | None) -> Columns:
    """All rows of a Mooncake trace (JSON lines) as columns."""
    growing = GrowingColumns()
    hashes = 0
    for first, texts in lines:
        numbers, objects = [], []
        for number, text in enumerate(texts, start=first):
            if text.strip():
                numbers.append(number)
                objects.append(_object(text, number))
        if told is not None:
            told(growing.rows)
        if not objects:
            continue
        read = {
            "arrival": milliseconds(_texts(objects, numbers, "timestamp"), numbers, "timestamp"),
            "input": input_lengths(_texts(objects, numbers, "input_length"), numbers, "input_length"),
            "output": lengths(_texts(objects, numbers, "output_length"), numbers, "output_length"),
        }
        ids = [_hash_ids(item, number) for item, number in zip(objects, numbers, strict=True)]
        answered = read["output"] > 0
        kept = [each for each, keep in zip(ids, answered, strict=True) if keep]
        growing.add("hash_count", np.array([len(each) for each in kept], dtype=np.int64))
        found = np.array([one for each in kept for one in each], dtype=np.int64)
        hashes += len(found)
        if hashes > MOST_HASHES:
            allowed = say("up to {most:,} in all", most=MOST_HASHES)
            raise TraceError(say("Too many block hashes."), row=numbers[-1], column="hash_ids", allowed=allowed)
        growing.add("hash_ids", found)
        keep_answered(growing, read)
    return growing.columns()


def _object(text: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except RecursionError as error:
        allowed = say("one JSON object a line")
        raise TraceError(say("Nested too deeply."), row=number, value=text[:SHOWN], allowed=allowed) from error
    except ValueError as error:
        is_json = not isinstance(error, json.JSONDecodeError)
        raise TraceError(
            say("A number of too many digits.") if is_json else say("Not JSON: {reason}.", reason=str(error)),
            row=number,
            value=text[:SHOWN],
            allowed=say("one JSON object a line"),
        ) from None
    if not isinstance(value, dict):
        allowed = say("one JSON object a line")
        raise TraceError(say("Not a JSON object."), row=number, value=text[:SHOWN], allowed=allowed)
    return value


def _texts(objects: Iterable[dict[str, Any]], numbers: Sequence[int], name: str) -> list[str]:
    texts = []
    for item, number in zip(objects, numbers, strict=True):
        value = item.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            message = say("Not a number.") if name in item else say("Missing.")
            raise TraceError(message, row=number, column=name, value=repr(value)[:SHOWN], allowed=say("a number"))
        texts.append(repr(value))
    return texts


def _hash_ids(item: dict[str, Any], number: int) -> list[int]:
    ids = item.get("hash_ids", [])
    if not isinstance(ids, list) or not all(
        isinstance(one, int) and not isinstance(one, bool) and 0 <= one < math.inf and one < 2**63 for one in ids
    ):
        raise TraceError(
            say("Not a list of whole numbers."),
            row=number,
            column="hash_ids",
            value=repr(ids)[:SHOWN],
            allowed="[0, 1, ...]",
        )
    return ids
