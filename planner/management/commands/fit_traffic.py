"""``manage.py fit_traffic TRACE --out TRAFFIC.json``: a trace in a few numbers, to generate traffic like it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandParser

from planner.engine.errors import FieldError
from planner.engine.simulate.traffic_question import changed_fields, traffic_question_of
from planner.engine.simulate.workload_model import fit, fit_prefixes
from planner.engine.units import SECONDS_PER_HOUR
from planner.services.error_envelope import envelope
from planner.services.plan_json import encode
from planner.services.trace_columns import TraceError
from planner.services.trace_files import Trace, read_trace

EXIT_BAD_INPUT = 2


class Command(BaseCommand):
    help = (
        "Finds rate, days, bursts, lengths and shared prefixes of a trace: the file that `simulate --generate` takes."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("trace", metavar="TRACE", help="as `simulate` takes it")
        parser.add_argument("--out", required=True, metavar="TRAFFIC.json", help="where the fields go; - prints them")

    def handle(self, *args: Any, trace: str, out: str, **options: Any) -> None:
        """Exit 0, or 2 and the error envelope on standard error for a trace that can't be used."""
        try:
            found = fitted_fields(read_trace(Path(trace)))
        except (TraceError, ValueError) as error:
            allowed = error.allowed if isinstance(error, TraceError) else "10 requests or more, at different times"
            fault = FieldError(field="trace", value=trace, message=str(error), allowed=allowed, code="invalid_trace")
            self.stderr.write(encode(envelope([fault]), indent=2), self.style.NOTICE)
            sys.exit(EXIT_BAD_INPUT)
        text = encode(found, indent=1) + "\n"
        if out == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(out).write_text(text, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or str(error)
            fault = FieldError(field="out", value=out, message=f"Can't write the file: {reason}.", allowed="a file")
            self.stderr.write(encode(envelope([fault]), indent=2), self.style.NOTICE)
            sys.exit(EXIT_BAD_INPUT)


def fitted_fields(trace: Trace) -> dict[str, Any]:
    """The fields of ``TrafficQuestion`` that make traffic like the trace's; defaults are left out."""
    columns = trace.columns
    inputs = columns.input_tokens.astype(np.int64)
    prefixes = None
    if columns.key is not None:
        shared = None if columns.shared_tokens is None else columns.shared_tokens.astype(np.int64)
        prefixes = fit_prefixes(columns.key, shared)
    if prefixes is not None:
        # Generated prompts are what is their own, and a shared start before it.
        inputs = np.maximum(inputs - prefixes.tokens, 1)
    model = fit(columns.arrival_s, inputs, columns.output_tokens.astype(np.int64), empirical=False)
    hours = float(columns.arrival_s[-1]) / SECONDS_PER_HOUR
    return changed_fields(traffic_question_of(replace(model, prefixes=prefixes), hours=hours))
