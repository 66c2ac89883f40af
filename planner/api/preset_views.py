"""Use-case presets: a start for a question, with sources."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.base import ApiView
from planner.api.openapi import RATE_HEADERS, answer, error_responses
from planner.api.throttles import ReadThrottle
from planner.selectors.presets import use_case_presets


class PresetsView(ApiView):
    """Lengths and latency limits of common use cases."""

    throttle_classes = [ReadThrottle]

    @extend_schema(
        operation_id="list_presets",
        summary="List use-case presets",
        tags=["plans"],
        parameters=RATE_HEADERS,
        responses={200: answer("Presets", "Every preset."), **error_responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Read typical lengths and latency limits by use case; merge `fields` into an inference question."""
        return Response(use_case_presets(), headers={"Cache-Control": "public, max-age=300"})
