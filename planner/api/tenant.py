"""What the endpoints of an organization share: the scope, its permission, lists by cursor, documents in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
    inline_serializer,
)
from rest_framework import serializers, status
from rest_framework.pagination import Cursor
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import ORGANIZATION_HEADER, request_scope
from planner.api.base import ApiView
from planner.api.components import ref
from planner.api.conditions import CHANGES
from planner.api.filters import Filter, read_parameters
from planner.api.openapi import RATE_HEADERS, answer, error_responses, response_header
from planner.api.paging import CURSOR_WORDS, DEFAULT_LIMIT, LIMIT, ListKeyPagination, bad_cursor
from planner.api.throttles import ReadThrottle
from planner.engine.errors import InvalidQuestion
from planner.models import Organization
from planner.permissions import PERMISSIONS
from planner.selectors.scope import Scope
from planner.services.idempotency import KEY_FIELD, KEY_LENGTH
from planner.services.plan_json import plain
from planner.services.tenancy import lock
from planner.services.tiers import usage

QUOTA_HEADER = "Takar-Quota"
QUOTA_WORDS = "How far the tier's limit is used up: `keys;used=3;limit=10`."
PRIVATE = {"Cache-Control": "private, no-store"}
IDEMPOTENCY = OpenApiParameter(
    KEY_FIELD,
    {"type": "string", "minLength": KEY_LENGTH[0], "maxLength": KEY_LENGTH[1], "pattern": "^[ -~]*$"},
    OpenApiParameter.HEADER,
    description="The same key with the same body within 24 hours creates nothing new.",
)
ORGANIZATION = OpenApiParameter(
    ORGANIZATION_HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Slug or id of the organization, for people; a key belongs to one.",
)


class TenantView(ApiView):
    """Answers members of an organization alone; ``self.scope`` is theirs."""

    throttle_classes = [ReadThrottle]
    permissions: ClassVar[Mapping[str, str]]
    """What each method needs, by name in ``planner.permissions``."""
    scope: Scope

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        permission = self.permissions.get("GET" if request.method == "HEAD" else str(request.method))
        if permission is not None:
            self.scope = request_scope(request)
            self.scope.require(permission)
            if request.method in CHANGES and "If-Match" in request.headers:
                name = request.method.lower()
                setattr(self, name, self._if_matched(getattr(self, name, self.http_method_not_allowed)))

    def _if_matched(self, change: Callable[..., Response]) -> Callable[..., Response]:
        """``change`` in one transaction with the check of what it rests on: nobody else's conditional change fits
        between the two."""

        def checked(request: Request, *args: Any, **names: Any) -> Response:
            with transaction.atomic():
                lock(self.scope.organization)
                self.require_match(request, **names)
                return change(request, *args, **names)

        return checked

    def make_once(self, what: str, asked: Any, service: Callable[..., Any], /, **given: Any) -> UUID:
        """The public name of the row that ``service`` makes in this scope of what was ``given``, once for each
        ``Idempotency-Key`` with the same ``asked`` (a dataclass: the body as it was read)."""

        def make() -> UUID:
            made: UUID = service(scope=self.scope, **given).uuid
            return made

        return self.once_here(what, make, plain(asdict(asked)))

    def once_here(self, what: str, make: Callable[[], UUID], asked: Mapping[str, Any]) -> UUID:
        """``once``, in the space of this caller in this organization."""
        return self.once(f"{what}:{self.scope.organization.pk}:{self.scope.user.pk}", make, asked)


class NewestFirst(ListKeyPagination):
    """The latest rows first."""

    ordering = ("-created_at", "-uuid")

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        try:
            if cursor is not None:
                datetime.fromisoformat(str(cursor.position))
        except ValueError:
            raise InvalidQuestion([bad_cursor(request.query_params.get(self.cursor_query_param, ""))]) from None
        return cursor


class TenantListView(TenantView):
    """A list of the organization's rows: filtered, paged by cursor, the latest first."""

    title: ClassVar[str]
    """What is listed, in words."""
    tag: ClassVar[str]
    filters: ClassVar[dict[str, Filter]] = {}
    serializer: ClassVar[type[serializers.BaseSerializer[Any]]]
    pages: ClassVar[type[ListKeyPagination]] = NewestFirst
    quota: ClassVar[str] = ""
    """What the tier limits, a name in ``planner.services.tiers.QUOTAS``; answers say how far it is used up."""

    def __init_subclass__(cls) -> None:
        cls.query_parameters = ("limit", "cursor", *cls.filters)
        extend_schema_view(get=_list_schema(cls))(cls)

    def allowed_parameters(self, request: Request) -> tuple[str, ...]:
        return self.query_parameters if request.method in ("GET", "HEAD") else ()

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        if self.quota and hasattr(self, "scope"):
            response.headers[QUOTA_HEADER] = quota_text(self.scope.organization, self.quota)
        return response

    def rows(self) -> QuerySet[Any]:
        """The rows to list, unfiltered."""
        raise NotImplementedError

    def get(self, request: Request, **_: Any) -> Response:
        specs = {"limit": LIMIT} | {name: each.spec for name, each in self.filters.items()}
        given = read_parameters(request.query_params, specs)
        pages = self.pages(limit=given.pop("limit", DEFAULT_LIMIT))
        rows = self.rows()
        for name, value in given.items():
            rows = rows.filter(self.filters[name].keep(value))
        page = pages.paginate_queryset(rows, request) or []
        results = self.serializer(page, many=True, context={"scope": self.scope}).data
        return Response({**pages.links(), "results": results}, headers=PRIVATE)


def quota_text(organization: Organization, name: str) -> str:
    """How far a limit is used up, as the header has it."""
    found = usage(organization, name)
    return f"{found.name};used={found.used};limit={found.limit}"


def needs(permission: str) -> str:
    """A permission in the words of the document."""
    grant = PERMISSIONS[permission]
    by_key = f"scope `{grant.key_scope}`" if grant.key_scope else "not by keys"
    return f"Needs the role `{grant.role.value}` at least; {by_key}."


def page_answer(name: str, serializer: type[serializers.BaseSerializer[Any]]) -> OpenApiResponse:
    """A page of a list."""
    page = inline_serializer(
        name,
        {
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": serializer(many=True),
        },
    )
    return OpenApiResponse(response=page, description="A page of rows, the latest first.")


def paging_parameters() -> list[OpenApiParameter]:
    """What every list takes."""
    return [
        Filter(spec=LIMIT, keep=lambda _: Q()).parameter("limit"),
        OpenApiParameter("cursor", OpenApiTypes.STR, description=CURSOR_WORDS),
    ]


def _list_schema(view: type[TenantListView]) -> Callable[[Any], Any]:
    return extend_schema(
        operation_id=f"list_{view.title.replace(' ', '_')}",
        summary=f"List {view.title}",
        description=f"{view.__doc__}\n\n{needs(view.permissions['GET'])}",
        tags=[view.tag],
        parameters=[
            *(each.parameter(key) for key, each in view.filters.items()),
            *paging_parameters(),
            ORGANIZATION,
            *([response_header(QUOTA_HEADER, QUOTA_WORDS, OpenApiTypes.STR, 200)] if view.quota else []),
            *RATE_HEADERS,
        ],
        responses={
            200: page_answer(f"{view.title.title().replace(' ', '')}Page", view.serializer),
            **error_responses(400, 401, 403, 404),
        },
    )


def operation(
    permission: str,
    *,
    id: str,
    summary: str,
    tag: str,
    gives: type | None = None,
    takes: type | None = None,
    code: int = status.HTTP_200_OK,
    errors: tuple[int, ...] = (),
    parameters: tuple[OpenApiParameter, ...] = (ORGANIZATION,),
) -> Callable[[Any], Any]:
    """The description of one operation: its permission, body, answer and errors."""
    found: dict[int, OpenApiResponse] = {
        code: answer(gives, summary) if gives is not None else OpenApiResponse(description="Done.")
    }
    body_errors = (413, 415) if takes is not None else ()
    if code == status.HTTP_201_CREATED:
        parameters = (
            IDEMPOTENCY,
            response_header(
                "Location", "Where it is: a path on this server.", OpenApiTypes.STR, status.HTTP_201_CREATED
            ),
            response_header(QUOTA_HEADER, f"{QUOTA_WORDS} Where the tier has a limit.", OpenApiTypes.STR, 201),
            *parameters,
        )
        errors = (*errors, 422)

    def describe(method: Any) -> Any:
        text = " ".join((method.__doc__ or summary).split())
        return extend_schema(
            operation_id=id,
            summary=summary,
            description=f"{text}\n\n{needs(permission)}",
            tags=[tag],
            parameters=[*parameters, *RATE_HEADERS],
            request={"application/json": ref(takes)} if takes is not None else None,
            responses={**found, **error_responses(400, 401, 403, 404, *body_errors, *errors)},
        )(method)

    return describe


def no_content() -> Response:
    return Response(status=status.HTTP_204_NO_CONTENT, headers=PRIVATE)


def created(body: Any, location: str) -> Response:
    """201 with the address of what was made, now or at the same key's first request."""
    return Response(body, status=status.HTTP_201_CREATED, headers={"Location": location, **PRIVATE})
