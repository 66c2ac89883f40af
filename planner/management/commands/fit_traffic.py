"""``manage.py fit_traffic TRACE --out TRAFFIC.json``: a trace in a few numbers, to generate traffic like it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from planner.engine.errors import FieldError
from planner.services.error_envelope import envelope
from planner.services.fitted_traffic import fitted_fields
from planner.services.plan_json import encode
from planner.services.trace_columns import TraceError
from planner.services.trace_files import read_trace

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
