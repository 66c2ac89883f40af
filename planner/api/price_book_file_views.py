"""Files of a price book: uploaded as they are, downloaded as they were."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import containing, read_parameters
from planner.api.negotiation import FileParser
from planner.api.openapi import RATE_HEADERS, answer, error_responses, response_header
from planner.api.price_book_serializers import PriceBookFileSerializer
from planner.api.price_book_views import CHANGE, TAG, VIEW
from planner.api.tenant import (
    IDEMPOTENCY,
    ORGANIZATION,
    PRIVATE,
    TenantListView,
    TenantView,
    created,
    needs,
    no_content,
    operation,
)
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import FieldSpec
from planner.models import PriceBook, PriceBookFile
from planner.services.price_book_files import NAME_LENGTH, TYPES, attach_file, download_file, remove_file

NAME = FieldSpec(kind="text", max_length=NAME_LENGTH, help=f"Name of the file, with its ending: {', '.join(TYPES)}.")
_BYTES = {"type": "string", "format": "binary"}


class PriceBookFilesView(TenantListView):
    """Contracts and offers kept with the price book."""

    title = "price book files"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = PriceBookFileSerializer
    filters = {"search": containing("Text in the name.", "name")}
    parser_classes = [FileParser]

    def rows(self) -> QuerySet[PriceBookFile]:
        book = self.scope.get(PriceBook, self.kwargs["book_id"])
        return self.scope.rows(PriceBookFile).filter(price_book=book).defer("content")

    def allowed_parameters(self, request: Request) -> tuple[str, ...]:
        return ("name",) if request.method == "POST" else super().allowed_parameters(request)

    @extend_schema(
        operation_id="attach_file",
        summary="Keep a file with a price book",
        description=f"The body is the file itself, at most 10 MiB.\n\n{needs(CHANGE)}",
        tags=[TAG],
        parameters=[
            OpenApiParameter(
                "name", {"type": "string", "maxLength": NAME_LENGTH}, required=True, description=NAME.help
            ),
            IDEMPOTENCY,
            ORGANIZATION,
            response_header("Location", "Where it is.", OpenApiTypes.URI_REF, 201),
            *RATE_HEADERS,
        ],
        request={"application/octet-stream": _BYTES},
        responses={
            201: answer(PriceBookFileSerializer, "The file as it is kept."),
            **error_responses(400, 401, 403, 404, 409, 413, 415, 422),
        },
    )
    def post(self, request: Request, book_id: UUID) -> Response:
        book = self.scope.get(PriceBook, book_id)
        name = read_parameters(request.query_params, {"name": NAME}).get("name", "")
        if not name:
            raise InvalidQuestion([FieldError(field="name", value=None, message="Needed.", allowed=NAME.help)])
        content = self.body()

        def make() -> UUID:
            return attach_file(scope=self.scope, book=book, name=name, content=content).uuid

        asked = {"name": name, "sha256": hashlib.sha256(content).hexdigest()}
        uuid = self.once_here(f"files:{book.pk}", make, asked)
        file = self.scope.get(PriceBookFile, uuid)
        return created(PriceBookFileSerializer(file).data, reverse("api:price-book-file", args=[book_id, uuid]))


class PriceBookFileView(TenantView):
    """One file."""

    permissions = {"GET": VIEW, "DELETE": CHANGE}

    @operation(VIEW, id="read_file", summary="Read about a file", tag=TAG, gives=PriceBookFileSerializer)
    def get(self, request: Request, book_id: UUID, file_id: UUID) -> Response:
        """Its name, type, size and SHA-256."""
        return Response(PriceBookFileSerializer(self.file(book_id, file_id)).data, headers=PRIVATE)

    @operation(CHANGE, id="remove_file", summary="Delete a file", tag=TAG, code=204)
    def delete(self, request: Request, book_id: UUID, file_id: UUID) -> Response:
        """Entries that named it name none."""
        remove_file(scope=self.scope, file=self.file(book_id, file_id))
        return no_content()

    def file(self, book_id: UUID, file_id: UUID) -> PriceBookFile:
        return self.scope.get_in(PriceBookFile, file_id, price_book=self.scope.get(PriceBook, book_id))


class PriceBookFileContentView(PriceBookFileView):
    """A file's content."""

    permissions = {"GET": VIEW}
    http_method_names = ["get", "head", "options"]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        # A file is of its own type, whatever the client would rather have.
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="download_file",
        summary="Download a file",
        description=f"As it was uploaded; the audit log notes it.\n\n{needs(VIEW)}",
        tags=[TAG],
        parameters=[ORGANIZATION, *RATE_HEADERS],
        responses={
            (200, "application/octet-stream"): OpenApiResponse(response=_BYTES, description="The file."),
            **error_responses(400, 401, 403, 404),
        },
    )
    def get(self, request: Request, book_id: UUID, file_id: UUID) -> Response:
        return file_response(self.file(book_id, file_id), self)  # type: ignore[return-value]


def file_response(file: PriceBookFile, view: TenantView) -> HttpResponse:
    """The file to be saved, never shown as a page of this site."""
    content = download_file(scope=view.scope, file=file)
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(file.name)}"
    response["Cache-Control"] = PRIVATE["Cache-Control"]
    return response
