"""Traces from files: every form read, every fault named with its row and column."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from planner.engine.simulate.run import simulate
from planner.services.trace_columns import TraceError
from planner.services.trace_files import Trace, read_trace, read_trace_stream
from tests.engine.simulate.fleets import one_pool, replica

HEADER = b"arrival_s,input_tokens,output_tokens\n"
AZURE = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
PUBLIC_TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"


def read(data: bytes) -> Trace:
    return read_trace_stream(io.BytesIO(data))


def test_own_form_with_prefixes_and_ids() -> None:
    trace = read(
        b"request_id,arrival_s,input_tokens,output_tokens,prefix_id,prefix_tokens\n"
        b"a,5.0,100,10,chat-1,64\nb,5.5,200,1,,0\nc,7.25,300,2,chat-1,64\n"
    )
    columns = trace.columns
    assert columns.arrival_s.tolist() == [0.0, 0.5, 2.25]
    assert trace.origin_s == 5.0
    assert columns.input_tokens.tolist() == [100, 200, 300]
    assert columns.names is not None
    assert columns.names.tolist() == ["a", "b", "c"]
    assert columns.key is not None
    assert columns.key[0] == columns.key[2] != -1
    assert columns.key[1] == -1
    assert trace.notes == ()


def test_azure_form_counts_from_its_first_instant() -> None:
    trace = read(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
        b"2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    )
    assert trace.columns.arrival_s == pytest.approx([0.0, 4.314579], abs=1e-6)
    assert trace.origin_s == 0.0


def test_azure_form_of_2024_has_an_offset_and_no_rounding_of_whole_seconds() -> None:
    trace = read(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+00:00,1,2\n2024-05-10 00:00:01.5+00:00,1,2\n"
    )
    assert trace.columns.arrival_s.tolist() == [0.0, 1.5]


@pytest.mark.parametrize(
    "times",
    [
        (b"2023-11-16 18:15:46.5", b"2023-11-16 18:15:48"),
        (b"2023-11-16T18:15:46.5Z", b"2023-11-16 18:15:48"),
        (b"2023-11-17 01:15:46.5+07:00", b"2023-11-16T14:45:48-0330"),
        (b"2023-11-17 01:15:46.5 +07", b"2023-11-16T18:15:48+00:00"),
    ],
)
def test_times_of_any_offset_are_one_clock(times: tuple[bytes, bytes]) -> None:
    trace = read(AZURE + b"".join(time + b",1,2\n" for time in times))
    assert trace.columns.arrival_s.tolist() == pytest.approx([0.0, 1.5])
    assert trace.notes == ()


def test_mooncake_form() -> None:
    trace = read(
        b'{"timestamp": 0, "input_length": 1030, "output_length": 6, "hash_ids": [0, 1, 2]}\n'
        b'{"timestamp": 3000, "input_length": 512, "output_length": 4, "hash_ids": [0]}\n'
    )
    assert trace.columns.arrival_s.tolist() == [0.0, 3.0]
    assert trace.hash_tokens == 512
    assert trace.columns.hashes is not None
    assert trace.columns.hash_ids is not None
    assert (trace.columns.hashes.tolist(), trace.columns.hash_ids.tolist()) == ([0, 3, 4], [0, 1, 2, 0])


@pytest.mark.parametrize(
    "data",
    [
        HEADER + b"1,2,3\n2,3,4\n",
        HEADER.replace(b"\n", b"\r\n") + b"1,2,3\r\n\r\n2,3,4\r\n",
        b"\xef\xbb\xbf" + HEADER + b"1,2,3\n2,3,4",
        HEADER.replace(b",", b";") + b"1;2;3\n2;3;4\n",
        HEADER.upper() + b'"1","2","3"\n 2.0 , 3.0 , 4.0 \n',
        b"Timestamp,Model,Request tokens,Response tokens\n1,ChatGPT,2,3\n2,GPT-4,3,4\n",
        gzip.compress(HEADER + b"1,2,3\n2,3,4\n", mtime=0),
    ],
    ids=["plain", "crlf and blank line", "byte order mark", "semicolons", "quoted", "BurstGPT", "gzip"],
)
def test_harmless_variants(data: bytes) -> None:
    trace = read(data)
    assert trace.columns.arrival_s.tolist() == [0.0, 1.0]
    assert trace.columns.input_tokens.tolist() == [2, 3]
    assert trace.columns.output_tokens.tolist() == [3, 4]
    assert trace.notes == ()


def test_disorder_is_sorted_and_said() -> None:
    trace = read(HEADER + b"3,30,1\n1,10,1\n2,20,1\n")
    assert trace.columns.input_tokens.tolist() == [10, 20, 30]
    assert trace.notes == ("Rows were not in order of arrival (1 step back in time); they were sorted.",)


def test_disorder_takes_its_hashes_along() -> None:
    trace = read(
        b'{"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": [7, 8]}\n'
        b'{"timestamp": 1, "input_length": 2, "output_length": 1, "hash_ids": [9]}\n'
    )
    assert trace.columns.hashes is not None
    assert trace.columns.hash_ids is not None
    assert (trace.columns.hashes.tolist(), trace.columns.hash_ids.tolist()) == ([0, 1, 3], [9, 7, 8])


def test_requests_without_an_answer_are_left_out_and_said() -> None:
    trace = read(HEADER + b"1,2,0\n2,5,1\n")
    assert trace.columns.input_tokens.tolist() == [5]
    assert trace.notes == ("1 request with 0 output tokens was left out.",)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="Can't read the file"):
        read_trace(tmp_path / "nowhere.csv")


def test_batches_hold_every_request_once() -> None:
    rows = b"".join(b"%d,%d,%d\n" % (i, i + 1, i + 2) for i in range(10))
    batches = list(read(HEADER + rows).batches(size=4))
    assert [batch.first_request for batch in batches] == [0, 4, 8]
    assert np.concatenate([batch.input_tokens for batch in batches]).tolist() == list(range(1, 11))


@pytest.mark.skipif(not PUBLIC_TRACES.exists(), reason="the public traces are not beside this checkout")
@pytest.mark.parametrize(
    ("name", "requests", "input_mean"),
    [
        ("AzureLLMInferenceTrace_code.csv", 8_819, 2_048),
        ("AzureLLMInferenceTrace_conv.csv", 19_366, 1_155),
        ("mooncake_synthetic_trace.jsonl", 3_993, 15_325),
    ],
)
def test_public_traces(name: str, requests: int, input_mean: float) -> None:
    trace = read_trace(PUBLIC_TRACES / name)
    assert len(trace) == requests
    assert np.mean(trace.columns.input_tokens) == pytest.approx(input_mean, abs=1)
    assert trace.notes == ()


@pytest.mark.skipif(not PUBLIC_TRACES.exists(), reason="the public traces are not beside this checkout")
def test_an_endless_cache_finds_the_reuse_of_the_public_trace() -> None:
    """64 % of the blocks of Mooncake's synthetic trace are leading blocks seen before."""
    trace = read_trace(PUBLIC_TRACES / "mooncake_synthetic_trace.jsonl")
    kind = replica(prefix_cache=True, hash_tokens=trace.hash_tokens, kv_blocks=4_000_000, max_num_batched_tokens=65_536)
    outcome = simulate(one_pool(kind), trace.batches(), hash_ids=trace.hash_ids)
    assert trace.columns.hashes is not None
    assert outcome.cached_input_tokens / 512 / trace.columns.hashes[-1] == pytest.approx(0.64, abs=0.005)


def test_times_may_have_the_decimal_comma_of_a_spreadsheet() -> None:
    header = HEADER.replace(b",", b";")
    trace = read(header + b"0,5;10;5\n1,250;10;5\n2,75;20;5\n")
    assert trace.columns.arrival_s.tolist() == [0.0, 0.75, 2.25]
    assert read(header + b"0,125;10;5\n1,250;10;5\n").columns.arrival_s.tolist() == [0.0, 1.125]


@pytest.mark.parametrize(
    "row", [b"1,500;10;5\n", b"2,000;10;5\n3,500;10;5\n", b"1;1,5;5\n", b"1;1,000;5\n", b"0,5,5;1;1\n"]
)
def test_a_comma_that_may_group_thousands_is_refused(row: bytes) -> None:
    with pytest.raises(TraceError, match="Not a number"):
        read(HEADER.replace(b",", b";") + row)
