"""Quotes as files, and a draft's lines as a table that comes back."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.conditions import READS, tag_of
from planner.api.filters import Filter, read_parameters
from planner.api.negotiation import FileParser
from planner.api.openapi import RATE_HEADERS, answer, error_responses
from planner.api.quote_views import CHANGE, TAG, VIEW, whole
from planner.api.scenario_serializers import WholeQuoteSerializer
from planner.api.tenant import (
    ORGANIZATION,
    PRIVATE,
    TenantView,
    needs,
)
from planner.documents.wording import LANGUAGES
from planner.engine.field_spec import FieldSpec
from planner.selectors import quotes as read
from planner.services import quote_files, quotes
from planner.services.quote_import import import_lines

LANGUAGE = FieldSpec(kind="choice", choices=LANGUAGES, help="Of the document; the quote's own unless given.")
_BYTES = {"type": "string", "format": "binary"}


class _FileView(TenantView):
    """A quote as a file."""

    permissions = {"GET": VIEW}
    form: ClassVar[str]
    query_parameters = ("language",)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        # A file is of its own type, whatever the client would rather have.
        return super().perform_content_negotiation(request, force=force or request.method in READS)

    def get(self, request: Request, quote_id: UUID) -> HttpResponse:
        quote = read.quote(self.scope, quote_id)
        language = read_parameters(request.query_params, {"language": LANGUAGE}).get("language", "")
        content = quote_files.export_quote(scope=self.scope, quote=quote, form=self.form, language=language)
        response = HttpResponse(content, content_type=quote_files.FORMATS[self.form])
        response["Content-Disposition"] = f'attachment; filename="{quote_files.file_name(quote, self.form)}"'
        response["Cache-Control"] = PRIVATE["Cache-Control"]
        return response


def _file_view(form: str) -> type[_FileView]:
    media_type = quote_files.FORMATS[form].partition(";")[0]
    described = extend_schema(
        operation_id=f"download_quote_{form}",
        summary=f"Download a quote as {form.upper()}",
        description=f"The same quote gives the same bytes; the audit log notes it.\n\n{needs(VIEW)}",
        tags=[TAG],
        parameters=[Filter(spec=LANGUAGE, keep=lambda _: Q()).parameter("language"), ORGANIZATION, *RATE_HEADERS],
        responses={
            (200, media_type): answer("QuoteSnapshot", "The file.")
            if form == "json"
            else OpenApiResponse(response=_BYTES, description="The file."),
            **error_responses(400, 401, 403, 404),
        },
    )
    view: type[_FileView] = type(f"Quote{form.title()}View", (_FileView,), {"form": form, "__doc__": _FileView.__doc__})
    return extend_schema_view(get=described)(view)


class CsvParser(FileParser):
    """A table's bytes."""

    media_type = "text/csv"


class QuoteLinesView(_file_view("csv")):  # type: ignore[misc]  # a class made there
    """A quote's lines as a table, out and in."""

    permissions = {"GET": VIEW, "PUT": CHANGE}
    parser_classes = [CsvParser]

    def allowed_parameters(self, request: Request) -> tuple[str, ...]:
        return self.query_parameters if request.method in READS else ()

    def tags_now(self, request: Request, **names: Any) -> set[str]:
        snapshot = quotes.priced(read.quote(self.scope, names["quote_id"])).snapshot
        return {tag_of(HttpResponse(quote_files.render(snapshot, "csv")))}

    @extend_schema(
        operation_id="import_quote_lines",
        summary="Replace a draft's lines by a table",
        description=f"A CSV as GET gives it: lines, percentages, currency and term; amounts are reckoned anew, "
        f"the tax stays.\n\n{needs(CHANGE)}",
        tags=[TAG],
        parameters=[ORGANIZATION, *RATE_HEADERS],
        request={"text/csv": _BYTES},
        responses={
            200: answer(WholeQuoteSerializer, "The draft."),
            **error_responses(400, 401, 403, 404, 409, 413, 415),
        },
    )
    def put(self, request: Request, quote_id: UUID) -> Response:
        quote = read.quote(self.scope, quote_id)
        return whole(import_lines(scope=self.scope, quote=quote, data=self.body()))


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/quotes/<uuid:quote_id>.csv", QuoteLinesView, "quote-csv"),
    *(
        (f"v1/quotes/<uuid:quote_id>.{form}", _file_view(form), f"quote-{form}")
        for form in quote_files.FORMATS
        if form != "csv"
    ),
)
