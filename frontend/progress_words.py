"""What a job says it is doing, or why it failed, in the page's language: the worker that writes it knows none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend import numbers
from frontend.forms import allowed_text, error_text
from frontend.sentences import shown
from planner.engine.errors import FieldError
from planner.engine.sentences import WRITTEN_NUMBER

SAID = (
    (
        re.compile(r"Compiling the simulator, once for this installation: about a minute"),
        gettext_lazy("Compiling the simulator, once for this installation: about a minute"),
    ),
    (re.compile(r"Loading the simulator"), gettext_lazy("Loading the simulator")),
    (re.compile(r"Reading the trace: (?P<n>[\d,]+) rows"), gettext_lazy("Reading the trace: %(n)s rows")),
    (
        re.compile(r"(?P<n>[\d,]+) requests, (?P<hours>[\d.]+) h simulated"),
        gettext_lazy("%(n)s requests, %(hours)s h simulated"),
    ),
    (re.compile(r"(?P<n>\d+) of (?P<count>\d+) parts done"), gettext_lazy("%(n)s of %(count)s parts done")),
    (re.compile(r"Planning (?P<n>\S+) times the load"), gettext_lazy("Planning %(n)s times the load")),
)
TRIED = re.compile(r"(?P<sizes>[\d, +]+) replicas(: (?P<rest>.*))?")
ALONE = re.compile(r"Each region alone(: (?P<rest>.*))?")
SETTINGS = re.compile(r"(?P<n>\d+) autoscaler settings(: (?P<rest>.*))?")


def progress_words(message: str) -> str:
    """The message as a page says it; one that isn't known stays as it is.

    >>> progress_words("2, 4 replicas: Loading the simulator"), progress_words("step 3")
    ('2, 4 replicas: Loading the simulator', 'step 3')
    """
    if tried := TRIED.fullmatch(message):
        return _with_rest(_("%(sizes)s replicas") % {"sizes": tried["sizes"]}, tried["rest"])
    if tried := ALONE.fullmatch(message):
        return _with_rest(_("Each region alone"), tried["rest"])
    if tried := SETTINGS.fullmatch(message):
        return _with_rest(_("%(n)s autoscaler settings") % {"n": tried["n"]}, tried["rest"])
    for pattern, words in SAID:
        if said := pattern.fullmatch(message):
            values = {name: _number(value) for name, value in said.groupdict().items()}
            return str(words) % values if values else str(words)
    return message


def _number(text: str) -> str:
    """A number with the page's separators."""
    return numbers.localized(text) if WRITTEN_NUMBER.fullmatch(text) else text


def _with_rest(words: str, rest: str | None) -> str:
    return f"{words}: {progress_words(rest)}" if rest else words


def failure_words(error: Mapping[str, Any] | None) -> list[str]:
    """Why a job failed: each thing that is wrong in its question or its trace, with what would do."""
    if error is None:
        return []
    faults = [
        FieldError(
            field=str(fault.get("attr") or ""),
            value=fault.get("value"),
            message=str(fault.get("detail", "")),
            allowed=str(fault.get("allowed") or ""),
            code=str(fault.get("code", "")),
        )
        for fault in error.get("errors") or ()
    ]
    if not faults:
        return [shown(str(error.get("detail", "")))]
    # A trace's faults say where in it they are.
    named = (("" if fault.field == "trace" else f"{fault.field}: ", fault) for fault in faults)
    return [f"{name}{error_text(fault)} {allowed_text(fault)}".strip() for name, fault in named]
