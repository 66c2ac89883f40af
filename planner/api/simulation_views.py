"""Simulations: a plan's cluster serves generated traffic or an uploaded trace, as a job."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import IO, Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import prices_scope
from planner.api.base import ApiView
from planner.api.exceptions import TooLarge
from planner.api.openapi import RATE_HEADERS, answer, error_responses
from planner.api.run_views import start_once, starts_job
from planner.api.tenant import IDEMPOTENCY
from planner.api.throttles import RunThrottle
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.models import User
from planner.services.fitted_traffic import fitted_at_once
from planner.services.json_input import read_object
from planner.services.plan_json import plain
from planner.services.runs import create_run
from planner.services.stored_traces import MAX_TRACE_BYTES, delete_trace, may_use_trace, open_trace, store_trace

SIMULATION = "simulation"
CAPACITY_SEARCH = "capacity_search"
CHUNK_BYTES = 2**16
SIMULATION_EXAMPLE = {
    "question": {"model": "meta-llama/Llama-3.1-70B-Instruct", "requests_per_second": 10, "ttft_ms": 2000},
    "traffic": {"requests_per_second": 10, "hours": 24, "daily_peak": 2, "gap_cv": 1.5},
    "scenario": {"autoscaler": "hpa", "seed": 1},
}

CAPACITY_EXAMPLE = {
    "question": {
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "requests_per_second": 10,
        "ttft_ms": 2000,
        "slo_percentile": "p99",
    },
    "traffic": {"requests_per_second": 10, "hours": 24, "daily_peak": 2},
    "scenario": {"autoscaler": "hpa"},
    "search": {"most_replicas": 64},
}


class SimulationsView(ApiView):
    """Start simulations."""

    throttle_classes = [RunThrottle]

    @starts_job(
        id="start_simulation",
        summary="Simulate a plan",
        tag="simulations",
        request="SimulationRequest",
        example=OpenApiExample("A day with an autoscaler", value=SIMULATION_EXAMPLE, request_only=True),
    )
    def post(self, request: Request) -> Response:
        """Serve traffic with one option of a plan, request by request; poll the address in `Location`.

        `question` is that of a plan, `scenario` says which option and how it runs. Traffic is generated (`traffic`) or
        an uploaded one (`trace`, an id that `POST /api/v1/traces/` gave).
        """
        return _start(request, SIMULATION)


class CapacitySearchesView(ApiView):
    """Start searches for the smallest fleet."""

    throttle_classes = [RunThrottle]

    @starts_job(
        id="start_capacity_search",
        summary="Search the smallest fleet",
        tag="simulations",
        request="CapacityRequest",
        example=OpenApiExample("A day, with an autoscaler to set", value=CAPACITY_EXAMPLE, request_only=True),
    )
    def post(self, request: Request) -> Response:
        """Find the cheapest fleet that holds the question's limits for this traffic, by simulating many at a time.

        With an autoscaler in the `scenario`, its floor and target are searched too. The result is the best run's, with
        all runs tried in `search`.
        """
        return _start(request, CAPACITY_SEARCH)


def _start(request: Request, kind: str) -> Response:
    params = read_object(request.data if isinstance(request.data, bytes) else b"")

    def start() -> UUID:
        return create_run(kind=kind, params=params, owner=_owner(request), scope=prices_scope(request)).uuid

    return start_once(request, kind, params, start)


def _owner(request: Request) -> User | None:
    return request.user if request.user.is_authenticated else None


class TraceParser(BaseParser):
    """The body as it comes in, to be read in pieces."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return stream


class CsvTraceParser(TraceParser):
    media_type = "text/csv"


class JsonLinesTraceParser(TraceParser):
    media_type = "application/x-ndjson"


class GzipTraceParser(TraceParser):
    media_type = "application/gzip"


class TracesView(ApiView):
    """Uploaded traces."""

    throttle_classes = [RunThrottle]
    parser_classes = [CsvTraceParser, JsonLinesTraceParser, GzipTraceParser]

    @extend_schema(
        operation_id="upload_trace",
        summary="Upload a trace",
        tags=["simulations"],
        parameters=[IDEMPOTENCY, *RATE_HEADERS],
        request={parser.media_type: OpenApiTypes.BINARY for parser in parser_classes},
        responses={
            201: answer("StoredTrace", "The trace's id, for a simulation."),
            **error_responses(400, 413, 415, 422),
        },
    )
    def post(self, request: Request) -> Response:
        """Send a trace of requests as the body: own, Azure or BurstGPT CSV, or Mooncake JSON lines; gzip too.

        Small plain files are checked here, to the row and column; a fault in another one ends its simulation with the
        same message. Who sends it with an account or a key alone can simulate it; else whoever knows its id can.
        """
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_TRACE_BYTES:
            raise TooLarge(int(request.META["CONTENT_LENGTH"]), MAX_TRACE_BYTES)
        digest = hashlib.sha256()
        trace = store_trace(_hashed(_chunks(request.data), digest), owner=_owner(request))
        kept = self._once(request, trace, digest.hexdigest())
        return Response({"id": kept}, status=status.HTTP_201_CREATED)

    def _once(self, request: Request, trace: str, sha256: str) -> str:
        """The trace that this key sent first; what it sends again is dropped."""
        asked, kept = {"sha256": sha256}, ""
        try:
            kept = self.once(f"traces:{request.user.pk or 'anyone'}", lambda: UUID(hex=trace), asked).hex
        finally:
            if kept != trace:
                delete_trace(trace)
        return kept


class TraceTrafficView(ApiView):
    """Traffic like an uploaded trace."""

    throttle_classes = [RunThrottle]

    @extend_schema(
        operation_id="fit_trace",
        summary="Fit traffic to a trace",
        tags=["simulations"],
        parameters=[
            OpenApiParameter("trace", {"type": "string", "pattern": "^[0-9a-f]{32}$"}, OpenApiParameter.PATH),
            *RATE_HEADERS,
        ],
        responses={200: answer(TrafficQuestion, "Traffic like the trace's."), **error_responses(400, 404)},
    )
    def get(self, request: Request, trace: str) -> Response:
        """Find the fields of `traffic` whose generated requests are like those of a trace of up to 4 MiB, unpacked.

        Rate, days, bursts, lengths, what prompts begin with in common; fields that are defaults are left out.
        """
        if not may_use_trace(trace, user=_owner(request)):
            raise NotFound("No such trace.")
        with open_trace(trace) as stream:
            return Response(plain(fitted_at_once(stream)))


def _hashed(chunks: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _chunks(stream: Any) -> Iterator[bytes]:
    """The body in pieces; the framework makes an object of an empty one."""
    if hasattr(stream, "read"):
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
