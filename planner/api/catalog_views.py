"""The catalog's facts, page by page: what the planner knows, with source and date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.selectors import catalog_version
from catalog.snapshot import age_limits
from planner.api import catalog_serializers as written
from planner.api.base import ApiView
from planner.api.filters import Filter, at_least, at_most, containing, not_older_than, one_of, read_parameters
from planner.api.openapi import RATE_HEADERS, error_responses, response_header
from planner.api.paging import CURSOR_WORDS, DEFAULT_LIMIT, LIMIT, ListKeyPagination
from planner.api.throttles import ReadThrottle
from planner.engine.field_spec import FieldSpec
from planner.engine.units import gib_to_bytes
from planner.engine.workload import PURCHASE_OPTIONS
from planner.selectors import catalog_lists

KEEP_FOR_S = 300


class CatalogListView(ApiView):
    """A list of facts: filtered, paged, and cached by catalog version."""

    throttle_classes = [ReadThrottle]
    name: ClassVar[str]
    rows: ClassVar[Callable[[], QuerySet[Any]]]
    serializer: ClassVar[type[serializers.ModelSerializer[Any]]]
    filters: ClassVar[dict[str, Filter]]

    def __init_subclass__(cls) -> None:
        cls.query_parameters = ("limit", "cursor", *cls.filters)
        extend_schema_view(get=_description(cls))(cls)

    def get(self, request: Request) -> HttpResponseBase:
        specs = {"limit": LIMIT} | {name: each.spec for name, each in self.filters.items()}
        given = read_parameters(request.query_params, specs)
        version = catalog_version()
        # Ages of prices change at midnight, whatever the version.
        etag = f'W/"{settings.SPECTACULAR_SETTINGS["VERSION"]}/{version}/{timezone.localdate()}"'
        unchanged = get_conditional_response(request._request, etag=etag)
        if unchanged is not None:
            unchanged.headers["ETag"] = etag
            return unchanged
        pages = ListKeyPagination(limit=given.pop("limit", DEFAULT_LIMIT))
        rows = type(self).rows()
        for name, value in given.items():
            rows = rows.filter(self.filters[name].keep(value))
        page = pages.paginate_queryset(rows, request) or []
        results = self.serializer(page, many=True, context=self.written_with()).data
        body = {"catalog_version": version, **pages.links(), "results": results}
        return Response(body, headers={"ETag": etag, "Cache-Control": f"public, max-age={KEEP_FOR_S}"})

    def written_with(self) -> dict[str, Any]:
        """What the serializer needs beside the rows."""
        return {}


def _description(view: type[CatalogListView]) -> Callable[[Any], Any]:
    """The OpenAPI description of a list's one operation."""
    page = inline_serializer(
        f"{view.__name__.removesuffix('View')}Page",
        {
            "catalog_version": serializers.CharField(help_text="The same data files give the same version."),
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": view.serializer(many=True),
        },
    )
    return extend_schema(
        operation_id=f"list_{view.name.lower().replace(' ', '_')}",
        summary=f"List {view.name}",
        description=f"{view.__doc__}\n\nRows keep their order as the catalog changes: follow `next` until it is null.",
        tags=["catalog"],
        parameters=[*(each.parameter(name) for name, each in view.filters.items()), *_PAGING, *RATE_HEADERS],
        responses={
            200: OpenApiResponse(response=page, description="A page of rows, in a stable order."),
            304: OpenApiResponse(description="Nothing has changed since the answer with that `ETag`."),
            **error_responses(400),
        },
    )


_PAGING = [
    Filter(spec=LIMIT, keep=lambda _: Q()).parameter("limit"),
    OpenApiParameter("cursor", OpenApiTypes.STR, description=CURSOR_WORDS),
    OpenApiParameter(
        "If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The `ETag` of an earlier answer."
    ),
    response_header("ETag", "Changes with the catalog, and daily.", OpenApiTypes.STR, 200, 304),
    response_header("Cache-Control", "How long the page may be kept.", OpenApiTypes.STR, 200),
]


class GpusView(CatalogListView):
    """Accelerators: dense peaks, driver-visible memory, one-way link rates."""

    name = "GPUs"
    rows = catalog_lists.accelerators
    serializer = written.GpuSerializer
    filters = {
        "search": containing("Text in the key or name.", "key", "name"),
        "vendor": one_of("vendor", "Who makes it, as `vendor` has it."),
        "generation": one_of("generation", "As `generation` has it."),
        "form_factor": one_of("form_factor", "As `form_factor` has it."),
        "min_memory_gib": Filter(
            spec=FieldSpec(kind="number", minimum=0, maximum=1e5, unit="GiB", help="Driver-visible memory at least."),
            keep=lambda gib: Q(memory_bytes__gte=gib_to_bytes(gib)),
        ),
    }


class InstancesView(CatalogListView):
    """Instance types: nodes that can be rented, and parts of nodes."""

    name = "instances"
    rows = catalog_lists.instance_types
    serializer = written.InstanceTypeSerializer
    filters = {
        "search": containing("Text in the name.", "name"),
        "provider": one_of("provider__code", "Provider codes."),
        "accelerator": one_of("accelerator__key", "Keys of GPUs."),
        "fabric": one_of("fabric", "Network between nodes, as `fabric` has it."),
        "min_gpus": at_least("gpu_count", "GPUs on a node at least.", 1e6, "GPUs"),
        "max_gpus": at_most("gpu_count", "GPUs on a node at most.", 1e6, "GPUs"),
    }


class OffersView(CatalogListView):
    """Offers: an instance type in a region bought in one way, at its current price, with the price's age."""

    name = "offers"
    rows = catalog_lists.current_prices
    serializer = written.OfferSerializer
    filters = {
        "provider": one_of("offer__instance_type__provider__code", "Provider codes."),
        "instance_type": one_of("offer__instance_type__name", "Names of instance types."),
        "accelerator": one_of("offer__instance_type__accelerator__key", "Keys of GPUs."),
        "country": one_of("offer__region__country", "ISO 3166 alpha-2 codes.", read=str.upper),
        "region": one_of("offer__region__code", "The provider's own region codes."),
        "purchase_option": one_of("offer__purchase_option", "How it is bought.", *PURCHASE_OPTIONS),
        "max_usd_per_gpu_hour": at_most("usd_per_gpu_hour", "Price of a GPU at most.", 1e6, "USD/GPU-hour"),
        "max_age_days": not_older_than("observed_on", "Leaves out prices read longer ago."),
    }

    def written_with(self) -> dict[str, Any]:
        return {"age_limits": age_limits()}


class ModelsView(CatalogListView):
    """Model architectures: what `model` may name in a question."""

    name = "models"
    rows = catalog_lists.model_architectures
    serializer = written.ModelArchitectureSerializer
    filters = {"search": containing("Text in the name or Hugging Face id.", "name", "hf_id")}


class TokenPricesView(CatalogListView):
    """What token APIs ask, to compare self-hosting with."""

    name = "token prices"
    rows = catalog_lists.api_token_prices
    serializer = written.TokenPriceSerializer
    filters = {
        "search": containing("Text in the model's names.", "model_key", "provider_model_id"),
        "provider": one_of("provider", "Sellers of the API."),
        "model_key": one_of("model_key", "Models, by provider-free name."),
        "weights": one_of("weights", "Whether the weights are public.", "open", "closed"),
    }
