"""A trace in a few numbers: the traffic question whose generated requests are like it."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import IO, Any, Final

import numpy as np

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.engine.simulate.beginnings import Beginnings, fit_hashed_prefixes, fit_prefixes, nothing_shared
from planner.engine.simulate.fitted_question import changed_fields, traffic_question_of
from planner.engine.simulate.fitting import fit
from planner.engine.units import SECONDS_PER_HOUR
from planner.services.stored_traces import trace_refused
from planner.services.trace_columns import TraceError
from planner.services.trace_files import GZIP_MAGIC, Trace, read_trace_stream

MOST_BYTES: Final = 4 * 2**20
"""Of a trace that is fitted while its sender waits, unpacked: about a second's work."""


def fitted_fields(trace: Trace) -> dict[str, Any]:
    """The fields of ``TrafficQuestion`` that make traffic like the trace's; defaults are left out.

    Raises ``ValueError`` on a trace that is too short for it.
    """
    columns = trace.columns
    model = fit(columns.arrival_s, _beginnings(trace), columns.output_tokens.astype(np.int64))
    hours = float(columns.arrival_s[-1]) / SECONDS_PER_HOUR
    return changed_fields(traffic_question_of(model, hours=hours))


def fitted_at_once(stream: IO[bytes]) -> dict[str, Any]:
    """The same of an open file, for a sender who waits; raises ``InvalidQuestion`` where it can't be used."""
    data = stream.read(MOST_BYTES + 1)
    try:
        if data.startswith(GZIP_MAGIC):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            allowed = say("up to {most} MiB unpacked, such as an hour of it", most=MOST_BYTES // 2**20)
            raise TraceError(say("Too large to be fitted at once."), allowed=allowed)
        return fitted_fields(read_trace_stream(io.BytesIO(data), names=False))
    except TraceError as error:
        raise trace_refused(error) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        damaged = TraceError(say("The gzip data is damaged: {reason}.", reason=str(error)))
        raise trace_refused(damaged) from error
    except ValueError as error:
        raise InvalidQuestion([too_short()]) from error


def too_short() -> FieldError:
    """The fault of a trace that says too little to be fitted."""
    return FieldError(
        field="trace",
        value=None,
        message=say("Too short to be fitted."),
        allowed=say("10 requests or more, at different times"),
        code="invalid_trace",
    )


def _beginnings(trace: Trace) -> Beginnings:
    """What its prompts share: by their blocks' hashes, or by the prefixes that it names."""
    columns = trace.columns
    inputs = columns.input_tokens.astype(np.int64)
    if columns.hashes is not None and columns.hash_ids is not None and trace.hash_tokens:
        return fit_hashed_prefixes(inputs, columns.hashes, columns.hash_ids, trace.hash_tokens)
    if columns.key is not None:
        shared = None if columns.shared_tokens is None else columns.shared_tokens.astype(np.int64)
        return fit_prefixes(inputs, columns.key, shared)
    return nothing_shared(inputs)
