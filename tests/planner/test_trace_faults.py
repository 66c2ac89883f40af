"""Traces that can't be read: one clear error that names row and column, found in little memory."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys

import pytest

from planner.services import trace_rows
from planner.services.trace_columns import TraceError
from planner.services.trace_files import MAX_LINE_BYTES, read_trace_stream
from tests.planner.test_trace_files import AZURE, HEADER, read

FAULTS: dict[str, tuple[bytes, int | None, str, str]] = {
    "empty file": (b"", 1, "", "The file is empty."),
    "header only": (HEADER, None, "", "The trace has no requests."),
    "missing column": (
        b"arrival_s,input_tokens\n1,2\n",
        1,
        "output_tokens",
        "The header lacks output_tokens; it has arrival_s, input_tokens.",
    ),
    "short row": (HEADER + b"1,2,3\n1,2\n", 3, "", "2 values in a row of 3 columns."),
    "long row": (HEADER + b"1,2,3,4\n", 2, "", "4 values in a row of 3 columns."),
    "text": (HEADER + b"1,2,3\nsoon,2,3\n", 3, "arrival_s", "Not a number."),
    "blank value": (HEADER + b"1,,3\n", 2, "input_tokens", "Empty."),
    "nan": (HEADER + b"1,nan,3\n", 2, "input_tokens", "Not a finite number. (nan)"),
    "nan time": (HEADER + b"nan,1,3\n", 2, "arrival_s", "Not a finite time. (nan)"),
    "infinite": (HEADER + b"inf,2,3\n", 2, "arrival_s", "Not a finite time. (inf)"),
    "milliseconds since 1970": (
        HEADER + b"1700000000500,2,3\n",
        2,
        "arrival_s",
        "Out of range. (1700000000500)",
    ),
    "negative time": (HEADER + b"-1,2,3\n", 2, "arrival_s", "Negative. (-1)"),
    "negative tokens": (HEADER + b"1,2,-3\n", 2, "output_tokens", "Negative. (-3)"),
    "no prompt": (HEADER + b"1,0,3\n", 2, "input_tokens", "A prompt of no tokens. (0)"),
    "fraction": (HEADER + b"1,2.5,3\n", 2, "input_tokens", "Not a whole number. (2.5)"),
    "huge": (HEADER + b"1,2,99999999999\n", 2, "output_tokens", "Out of range. (99999999999)"),
    "blank lines are counted": (HEADER + b"1,2,3\n\n\n2,x,3\n", 5, "input_tokens", "Not a number."),
    "UTF-16": (HEADER.decode().encode("utf-16"), 1, "", "The file is UTF-16 or UTF-32."),
    "UTF-32": (HEADER.decode().encode("utf-32"), 1, "", "The file is UTF-16 or UTF-32."),
    "UTF-16 without its mark": (
        HEADER.decode().encode("utf-16-le"),
        1,
        "",
        "Not text: byte 1 of the line is zero.",
    ),
    "zero byte": (HEADER + b"1,2\0,3\n", 2, "", "Not text: byte 3 of the line is zero."),
    "CR alone": (HEADER.replace(b"\n", b"\r") + b"1,2,3\r", 1, "", "Lines end in CR alone."),
    "column twice": (
        b"arrival_s,input_tokens,Input_Tokens,output_tokens\n1,2,3,4\n",
        1,
        "input_tokens",
        "The header has input_tokens 2 times.",
    ),
    "header again": (HEADER + b"1,2,3\n" + HEADER + b"2,3,4\n", 3, "arrival_s", "Not a number."),
    "long name of a column": (
        b"a" * 200_000 + b"," + HEADER,
        1,
        "",
        "Not CSV: field larger than field limit (131072).",
    ),
    "digits without end": (
        HEADER + b"1," + b"9" * 400 + b",3\n",
        2,
        "input_tokens",
        f"Not a finite number. ({'9' * 80})",
    ),
    "line ends inside quotes are counted": (HEADER + b'"1\n",2,3\n1,2,x\n', 4, "output_tokens", "Not a number."),
    "Latin-1": (HEADER + b"1,2,3\n1,\xe9,3\n", 3, "", "Not UTF-8 text at byte 2 of the line."),
    "open quote": (HEADER + b'1,"2,3\n', 2, "", "Not CSV: unexpected end of data."),
    "no time": (b"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", 2, "TIMESTAMP", "Not a time. (yesterday)"),
    **{
        f"{name} for a time": (
            AZURE + b"2023-11-16 18:15:46,1,2\n" + text + b",1,2\n",
            3,
            "TIMESTAMP",
            f"Not a time. ({text.decode()})",
        )
        for name, text in {
            "month 13": b"2023-13-01",
            "day 30 of February": b"2023-02-30 10:00",
            "day first": b"16/11/2023 18:15",
            "twelve hours": b"2023-11-16 06:15:46 PM",
            "seconds since 1970": b"1700000000",
            "a year": b"2023",
            "now": b"now",
            "NaT": b"NaT",
            "too early": b"1969-12-31 23:59:59",
            "too late": b"9999-12-31 00:00:00",
        }.items()
    },
    "gzip of another sum": (
        gzip.compress(HEADER + b"1,2,3\n", mtime=0)[:-8] + b"\0" * 8,
        None,
        "",
        "The gzip data is damaged: CRC check failed 0x0 != 0x3f3b8abd.",
    ),
    "gzip and more": (
        gzip.compress(HEADER + b"1,2,3\n", mtime=0) + b"more",
        None,
        "",
        "The gzip data is damaged: Not a gzipped file (b'mo').",
    ),
    "gzip of a kind nobody knows": (
        b"\x1f\x8b\x07" + b"\0" * 20,
        None,
        "",
        "The gzip data is damaged: Unknown compression method.",
    ),
    "gzip in gzip": (
        gzip.compress(gzip.compress(HEADER, mtime=0), mtime=0),
        1,
        "",
        "Not text: byte 3 of the line is zero.",
    ),
    "gzip cut short": (
        gzip.compress(HEADER + b"1,2,3\n" * 1000, mtime=0)[:-20],
        None,
        "",
        "The gzip data is damaged: Compressed file ended before the end-of-stream marker was reached.",
    ),
    "one endless line": (
        HEADER + b"1" * (MAX_LINE_BYTES + 10),
        2,
        "",
        "The line is longer than 4 MiB.",
    ),
    "JSON key missing": (b'{"timestamp": 1}\n', 1, "input_length", "Missing."),
    "JSON text for a number": (
        b'{"timestamp": "1", "input_length": 1, "output_length": 1}',
        1,
        "timestamp",
        "Not a number.",
    ),
    "JSON hashes": (
        b'{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1, -2]}',
        1,
        "hash_ids",
        "Not a list of whole numbers.",
    ),
    "JSON number without end": (
        b'{"timestamp": ' + b"9" * 5000 + b', "input_length": 1, "output_length": 1}\n',
        1,
        "",
        "A number of too many digits.",
    ),
    "JSON list of requests": (b'[{"timestamp": 1, "input_length": 1}]', 1, "", "Not a JSON object."),
    "JSON too deep": (b'{"a":' + b"[" * 100_000, 1, "", "Nested too deeply."),
    **{
        f"offset {offset}": (
            f"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46{offset},1,1\n".encode(),
            2,
            "TIMESTAMP",
            f"Not a time. (2023-11-16 18:15:46{offset})",
        )
        for offset in ("+99:99", "+0760", "-15:00")
    },
    "number as Python writes it": (HEADER + b"1,1_000,3\n", 2, "input_tokens", "Not a number."),
    "digits of another script": (HEADER + "1,٣,3\n".encode(), 2, "input_tokens", "Not a number."),
    "JSON array": (b'{"timestamp": 1, "input_length": 1, "output_length": 1}\n[1]\n', 2, "", "Not a JSON object."),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_name_row_and_column(fault: str) -> None:
    data, row, column, message = FAULTS[fault]
    with pytest.raises(TraceError) as caught:
        read(data)
    assert (caught.value.row, caught.value.column, caught.value.message) == (row, column, message)
    assert caught.value.allowed
    for part in (f"row {row:,}" if row else "", f"column {column}" if column else ""):
        assert part in str(caught.value)


class EndlessLine(io.RawIOBase):
    """A header, then one line of a gigabyte; counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = (HEADER if self.given == 0 else b"1" * min(len(buffer), 2**30 - self.given))[: len(buffer)]
        buffer[: len(data)] = data
        self.given += len(data)
        return len(data)


def test_a_line_of_a_gigabyte_is_refused_after_its_first_megabytes() -> None:
    stream = EndlessLine()
    with pytest.raises(TraceError, match="longer than 4 MiB") as caught:
        read_trace_stream(io.BufferedReader(stream))  # type: ignore[type-var]
    assert caught.value.row == 2
    assert stream.given < 3 * MAX_LINE_BYTES


def test_a_gigabyte_inside_a_small_gzip_file_is_refused_too() -> None:
    member = gzip.compress(b"1" * 2**24, mtime=0)
    packed = gzip.compress(HEADER, mtime=0) + member * 64
    assert len(packed) < 2**21
    with pytest.raises(TraceError, match="longer than 4 MiB"):
        read(packed)


READ_A_BOMB = """
import io, os, resource, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "planner.settings"
import django
django.setup()
from planner.services.trace_files import read_trace_stream
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
trace = read_trace_stream(sys.stdin.buffer, names=False)
assert trace.columns.names is None
print(len(trace), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_small_file_of_huge_rows_does_not_fill_the_memory() -> None:
    """300 rows of 2.6 MB each in a few MB of gzip: read some at a time, what isn't used let go."""
    more = 25
    header = HEADER.rstrip() + b",request_id" + b"".join(b",note%d" % number for number in range(more))
    row = b"1,2,3" + (b"," + b"x" * 100_000) * (more + 1)
    packed = gzip.compress(header + b"\n" + (row + b"\n") * 300, compresslevel=1, mtime=0)
    assert len(packed) < 6e6
    done = subprocess.run([sys.executable, "-c", READ_A_BOMB], input=packed, capture_output=True, check=True)
    rows, grown_mib = (int(word) for word in done.stdout.split())
    assert rows == 300
    assert grown_mib < 300


def test_block_hashes_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_rows, "MOST_HASHES", 5)
    rows = [b'{"timestamp": %d, "input_length": 9, "output_length": 1, "hash_ids": [1, 2, 3]}\n' % at for at in (1, 2)]
    assert len(read(rows[0])) == 1
    with pytest.raises(TraceError, match="row 2, column hash_ids: Too many block hashes"):
        read(b"".join(rows))


def test_a_time_in_milliseconds_is_asked_for_in_them() -> None:
    for at, allowed in ((-1, "0 or more milliseconds"), (1e13, "milliseconds up to 1e12")):
        with pytest.raises(TraceError) as found:
            read(b'{"timestamp": %s, "input_length": 5, "output_length": 5, "hash_ids": [1]}\n' % str(at).encode())
        assert (found.value.column, found.value.allowed) == ("timestamp", allowed)
