"""What the simulation form asks for, as a job's parameters: typed fields, an uploaded trace, a scenario file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import Run
from planner.selectors.runs import find_run
from planner.services.fitted_traffic import fitted_at_once
from planner.services.json_input import read_object
from planner.services.stored_traces import MAX_TRACE_BYTES, may_use_trace, open_trace, store_trace

SCENARIO_BYTES = 256 * 2**10


def run_before(request: HttpRequest, name: str) -> Run | None:
    """The run that this one is to be compared with, where its name is one."""
    try:
        return find_run(uuid=UUID(name), user=request.user)
    except ValueError:
        return None


def trace_of(request: HttpRequest, run: Run | None) -> str:
    """The trace that a run serves, while it is kept and the visitor may simulate it."""
    trace = run.params.get("trace") if run is not None else None
    return trace if isinstance(trace, str) and may_use_trace(trace, user=request.user) else ""


def lost_trace(request: HttpRequest, run: Run | None) -> bool:
    """Whether the run before served a trace that isn't there for the visitor any more."""
    return run is not None and bool(run.params.get("trace")) and not trace_of(request, run)


def regions_of(run: Run | None) -> list[Any]:
    """The regions of a run."""
    regions = run.params.get("regions") if run is not None else None
    return regions if isinstance(regions, list) else []


def sources(request: HttpRequest, traffic: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Scenario, traffic or trace, and regions: uploads go before what the run before had, that before typed fields.

    Raises ``InvalidQuestion`` for a file that can't be used. A trace is kept from here on.
    """
    before = run_before(request, request.POST.get("from", ""))
    found: dict[str, Any] = {"scenario": dict(scenario)}
    regions = regions_of(before) if request.POST.get("again-regions") else []
    upload = request.FILES.get("scenario")
    if upload is not None:
        given = _read_scenario(upload)
        regions = given.pop("regions", regions)
        found["scenario"] |= given
    if regions:
        found["regions"] = regions
    trace = request.FILES.get("trace")
    again = trace_of(request, before) if request.POST.get("again-trace") else ""
    if trace is not None:
        found["trace"] = _keep(trace, request)
    elif again:
        found["trace"] = again
    else:
        found["traffic"] = dict(traffic)
    return found


def fitted_traffic(request: HttpRequest) -> dict[str, Any]:
    """The fields of traffic like the uploaded trace, or like that of the run before.

    Raises ``InvalidQuestion`` where there is none, or it can't be used.
    """
    upload = request.FILES.get("trace")
    if upload is not None:
        return fitted_at_once(upload)
    again = trace_of(request, run_before(request, request.POST.get("from", "")))
    if not again:
        missing = FieldError(field="trace", value=None, message=_("No trace was sent."), allowed=_("a file"))
        raise InvalidQuestion([missing])
    with open_trace(again) as stream:
        return fitted_at_once(stream)


def _read_scenario(upload: Any) -> dict[str, Any]:
    if (upload.size or 0) > SCENARIO_BYTES:
        allowed = _("up to %(n)s KiB") % {"n": SCENARIO_BYTES // 2**10}
        raise InvalidQuestion([FieldError(field="scenario", value=None, message=_("Too large."), allowed=allowed)])
    try:
        return read_object(upload.read())
    except InvalidQuestion as invalid:
        raise InvalidQuestion([replace(fault, field="scenario") for fault in invalid.errors]) from invalid


def _keep(upload: Any, request: HttpRequest) -> str:
    if (upload.size or 0) > MAX_TRACE_BYTES:
        allowed = _("up to %(n)s MiB; gzip helps") % {"n": MAX_TRACE_BYTES // 2**20}
        raise InvalidQuestion([FieldError(field="trace", value=None, message=_("Too large."), allowed=allowed)])
    return store_trace(upload.chunks(), owner=request.user if request.user.is_authenticated else None)
