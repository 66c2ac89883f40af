"""Jobs: started with 202, polled at their own address, cancelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import prices_scope
from planner.api.base import ApiView
from planner.api.components import ref
from planner.api.exceptions import KeyConflict
from planner.api.openapi import RATE_HEADERS, answer, error_responses, response_header
from planner.api.tenant import ORGANIZATION
from planner.api.throttles import ReadThrottle, RunThrottle
from planner.engine.errors import FieldError, InvalidQuestion, unknown_fields
from planner.models import Run, RunStatus
from planner.selectors.runs import find_run, find_run_to_cancel
from planner.services.idempotency import KEY_FIELD, KEY_LENGTH, KeyReused, create_once
from planner.services.json_input import read_object
from planner.services.runs import cancel_run, create_run

POLL_AFTER_S = 1
_REQUEST_MEMBERS = ("kind", "params")


class RunSerializer(serializers.ModelSerializer[Run]):
    """A job as it stands now."""

    id = serializers.UUIDField(
        source="uuid", help_text="Keep it: whoever knows it can read and cancel a job that nobody's account started."
    )
    kind = serializers.CharField(help_text="What is done.")
    params = serializers.DictField(help_text="With what, as given.")
    status = serializers.ChoiceField(RunStatus.choices, help_text="The last three are final.")
    progress = serializers.FloatField(min_value=0, max_value=1, help_text="Share done.")
    message = serializers.CharField(help_text="What it is doing.")
    attempts = serializers.IntegerField(help_text="How many workers have taken it up.")
    result = serializers.DictField(allow_null=True, help_text="Null until it has succeeded.")
    error = serializers.DictField(allow_null=True, help_text="Why it failed.")

    class Meta:
        model = Run
        fields = [
            "id",
            "kind",
            "params",
            "status",
            "progress",
            "message",
            "cancel_requested",
            "attempts",
            "result",
            "error",
            "catalog_version",
            "created_at",
            "started_at",
            "finished_at",
        ]
        read_only_fields = fields


START_PARAMETERS = [
    ORGANIZATION,
    OpenApiParameter(
        KEY_FIELD,
        {"type": "string", "minLength": KEY_LENGTH[0], "maxLength": KEY_LENGTH[1], "pattern": "^[ -~]*$"},
        OpenApiParameter.HEADER,
        description="16 to 200 printable ASCII characters, for example a UUID. The same key with the same body "
        "within 24 hours starts nothing new: send again freely when no answer came.",
    ),
    response_header("Location", "Where to poll the job.", {"type": "string", "format": "uri-reference"}, 202),
    *RATE_HEADERS,
]
Operation = TypeVar("Operation", bound=Callable[..., Any])


def starts_job(
    *, id: str, summary: str, tag: str, request: str, example: OpenApiExample | None = None
) -> Callable[[Operation], Operation]:
    """The description of an operation that starts a job: ``request`` names the component of its body."""
    return extend_schema(
        operation_id=id,
        summary=summary,
        tags=[tag],
        parameters=START_PARAMETERS,
        request={"application/json": ref(request)},
        responses={
            202: answer(RunSerializer, "The job, waiting for a worker."),
            **error_responses(400, 404, 413, 415, 422),
        },
        examples=[example] if example is not None else None,
    )


class RunsView(ApiView):
    """Start jobs."""

    throttle_classes = [RunThrottle]

    @starts_job(id="start_run", summary="Start a job", tag="runs", request="RunRequest")
    def post(self, request: Request) -> Response:
        """Start a job that takes longer than a request may; poll the address in `Location` until it is final."""
        kind, params = _read_run_request(request)
        return start_once(request, kind, params, partial(_start, request=request, kind=kind, params=params))


class RunView(ApiView):
    """One job."""

    throttle_classes = [ReadThrottle]

    @extend_schema(
        operation_id="read_run",
        summary="Poll a job",
        tags=["runs"],
        parameters=RATE_HEADERS,
        responses={200: answer(RunSerializer, "The job as it stands."), **error_responses(400, 404)},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Read a job's status, progress and, once it has succeeded, its result.

        While it is not final, `Retry-After` says when to ask again.
        """
        return _run_response(_find(request, run_id), status.HTTP_200_OK)


class RunCancelView(ApiView):
    """Stop one job."""

    throttle_classes = [ReadThrottle]

    @extend_schema(
        operation_id="cancel_run",
        summary="Cancel a job",
        tags=["runs"],
        parameters=RATE_HEADERS,
        request=None,
        responses={200: answer(RunSerializer, "The job as it stands."), **error_responses(400, 404)},
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Ask for a job to stop. It stops within seconds; poll until it is final. A final job stays as it is."""
        run = find_run_to_cancel(uuid=run_id, user=request.user)
        if run is None:
            raise NotFound("No such run.")
        return _run_response(cancel_run(run=run), status.HTTP_200_OK)


def start_once(request: Request, kind: str, params: Mapping[str, Any], start: Callable[[], UUID]) -> Response:
    """Start a job, or find the one that the request's key started before; answers 202."""
    key = request.headers.get(KEY_FIELD)
    if key is None:
        uuid = start()
    else:
        try:
            uuid, _ = create_once(
                scope=_scope(request), key=key, request={"kind": kind, "params": params}, create=start
            )
        except KeyReused as error:
            raise KeyConflict(key) from error
    return _run_response(_find(request, uuid), status.HTTP_202_ACCEPTED)


def _read_run_request(request: Request) -> tuple[str, dict[str, Any]]:
    raw = read_object(request.data if isinstance(request.data, bytes) else b"")
    faults = unknown_fields(raw, _REQUEST_MEMBERS)
    kind, params = raw.get("kind"), raw.get("params", {})
    if not isinstance(kind, str):
        faults.append(FieldError(field="kind", value=kind, message="Not a text.", allowed="a kind of job"))
    if not isinstance(params, dict):
        faults.append(FieldError(field="params", value=params, message="Not a JSON object.", allowed="a JSON object"))
    if faults or not isinstance(kind, str):
        raise InvalidQuestion(faults)
    return kind, params


def _start(*, request: Request, kind: str, params: dict[str, Any]) -> UUID:
    owner = request.user if request.user.is_authenticated else None
    try:
        return create_run(kind=kind, params=params, owner=owner, scope=prices_scope(request)).uuid
    except InvalidQuestion as invalid:
        raise InvalidQuestion([_in_request(error) for error in invalid.errors]) from invalid


def _in_request(error: FieldError) -> FieldError:
    """The error of a parameter, named as the request names it."""
    field = error.field if error.code == "unknown_kind" else f"params.{error.field}"
    return FieldError(field=field, value=error.value, message=error.message, allowed=error.allowed, code=error.code)


def _scope(request: Request) -> str:
    return f"runs:{request.user.pk or 'anyone'}"


def _find(request: Request, uuid: UUID) -> Run:
    run = find_run(uuid=uuid, user=request.user)
    if run is None:
        raise NotFound("No such run.")
    return run


def _run_response(run: Run, status_code: int) -> Response:
    headers = {"Cache-Control": "no-store"}
    if status_code == status.HTTP_202_ACCEPTED:
        headers["Location"] = reverse("api:run", args=[run.uuid])
    if not run.is_final:
        headers["Retry-After"] = str(POLL_AFTER_S)
    return Response(RunSerializer(run).data, status=status_code, headers=headers)
