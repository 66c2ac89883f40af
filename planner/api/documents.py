"""The API about itself: its OpenAPI document and the page that shows it."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.views.generic import TemplateView
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.base import ApiView
from planner.api.throttles import ReadThrottle


@cache
def openapi_document() -> dict[str, Any]:
    """The document; the same for everyone, so it is made once in a process."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


class SchemaView(ApiView):
    """OpenAPI 3: JSON, or YAML where the ``Accept`` header asks for it."""

    schema = None
    throttle_classes = [ReadThrottle]
    renderer_classes = [OpenApiJsonRenderer2, OpenApiJsonRenderer, OpenApiYamlRenderer]

    def get(self, request: Request) -> Response:
        return Response(openapi_document(), headers={"Cache-Control": "public, max-age=300"})


class DocsView(TemplateView):
    """The document as a page to read and try; all its scripts and styles are files of this server."""

    template_name = "planner/api_docs.html"
