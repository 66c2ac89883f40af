"""Organizations and who is in them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import person
from planner.api.base import ApiView
from planner.api.components import ref
from planner.api.filters import containing, one_of, read_parameters
from planner.api.openapi import RATE_HEADERS, answer, error_responses, response_header
from planner.api.organization_serializers import MembershipSerializer, OrganizationSerializer
from planner.api.paging import DEFAULT_LIMIT, LIMIT
from planner.api.tenant import (
    IDEMPOTENCY,
    PRIVATE,
    NewestFirst,
    TenantListView,
    TenantView,
    created,
    no_content,
    operation,
    page_answer,
    paging_parameters,
)
from planner.api.throttles import ReadThrottle
from planner.models import Membership, Organization, Role
from planner.selectors import organizations as selectors
from planner.selectors.scope import Scope, scope_of, scopes_of
from planner.services.json_input import read_body
from planner.services.organization_inputs import OrganizationInput, RoleInput
from planner.services.organizations import change_role, create_organization, remove_member, rename_organization
from planner.services.tenancy import lock

TAG = "organizations"
SEARCH = containing("Text in the name.", "name")


def _written(scopes: list[Scope], rows: Any, *, many: bool = False) -> Any:
    roles = {scope.organization.pk: scope.role.value for scope in scopes}
    return OrganizationSerializer(rows, many=many, context={"roles": roles}).data


class OrganizationsView(ApiView):
    """The caller's organizations."""

    throttle_classes = [ReadThrottle]
    query_parameters = ("search", "limit", "cursor")

    @extend_schema(
        operation_id="list_organizations",
        summary="List your organizations",
        tags=[TAG],
        parameters=[SEARCH.parameter("search"), *paging_parameters(), *RATE_HEADERS],
        responses={
            200: page_answer("OrganizationsPage", OrganizationSerializer),
            **error_responses(400, 401, 403),
        },
    )
    def get(self, request: Request) -> Response:
        """A key sees its own organization, a person each they are a member of."""
        if isinstance(request.auth, Scope):
            request.auth.require("planner.view_organization")
            scopes = [request.auth]
        else:
            scopes = scopes_of(user=person(request))
        given = read_parameters(request.query_params, {"limit": LIMIT, "search": SEARCH.spec})
        pages = NewestFirst(limit=given.get("limit", DEFAULT_LIMIT))
        rows = Organization.objects.filter(pk__in=[scope.organization.pk for scope in scopes])
        rows = rows.filter(SEARCH.keep(given["search"])) if "search" in given else rows
        page = pages.paginate_queryset(rows, request) or []
        return Response({**pages.links(), "results": _written(scopes, page, many=True)}, headers=PRIVATE)

    @extend_schema(
        operation_id="create_organization",
        summary="Found an organization",
        tags=[TAG],
        parameters=[IDEMPOTENCY, response_header("Location", "Where it is.", OpenApiTypes.URI_REF, 201), *RATE_HEADERS],
        request={"application/json": ref(OrganizationInput)},
        responses={
            201: answer(OrganizationSerializer, "The organization; you are its owner."),
            **error_responses(400, 401, 403, 409, 413, 415, 422),
        },
    )
    def post(self, request: Request) -> Response:
        """For people, not for keys."""
        user = person(request)
        values = read_body(OrganizationInput, self.body())

        def make() -> UUID:
            return create_organization(user=user, name=values.name).uuid

        uuid = self.once(f"organizations:user-{user.pk}", make, {"name": values.name})
        scope = scope_of(user=user, organization=uuid)
        return created(_written([scope], scope.organization), reverse("api:organization", args=[uuid]))


class OrganizationView(ApiView):
    """One organization."""

    throttle_classes = [ReadThrottle]

    def _scope(self, request: Request, organization_id: UUID) -> Scope:
        if isinstance(request.auth, Scope):
            return scope_of(user=request.auth.user, organization=organization_id, key=request.auth.key)
        return scope_of(user=person(request), organization=organization_id)

    @operation(
        "planner.view_organization",
        id="read_organization",
        summary="Read an organization",
        tag=TAG,
        gives=OrganizationSerializer,
        parameters=(),
    )
    def get(self, request: Request, organization_id: UUID) -> Response:
        """Its name, and the caller's role in it."""
        scope = self._scope(request, organization_id)
        scope.require("planner.view_organization")
        return Response(_written([scope], scope.organization), headers=PRIVATE)

    @operation(
        "planner.change_organization",
        id="rename_organization",
        summary="Rename an organization",
        tag=TAG,
        gives=OrganizationSerializer,
        takes=OrganizationInput,
        parameters=(),
    )
    def patch(self, request: Request, organization_id: UUID) -> Response:
        """Its slug stays."""
        scope = self._scope(request, organization_id)
        scope.require("planner.change_organization")
        with transaction.atomic():
            lock(scope.organization)
            self.require_match(request, organization_id=organization_id)
            values = read_body(OrganizationInput, self.body())
            renamed = rename_organization(scope=scope, name=values.name)
        return Response(_written([scope], renamed), headers=PRIVATE)


class MembershipsView(TenantListView):
    """Members of the organization: people and service accounts."""

    title = "memberships"
    quota = "members"
    tag = TAG
    permissions = {"GET": "planner.view_members"}
    serializer = MembershipSerializer
    filters = {
        "role": one_of("role", "Roles.", *Role.values),
        "search": containing("Text in the address or name.", "user__email", "user__service_account__name"),
    }

    def rows(self) -> QuerySet[Membership]:
        return selectors.members(self.scope)


class MembershipView(TenantView):
    """One member."""

    permissions = {
        "GET": "planner.view_members",
        "PATCH": "planner.change_members",
        "DELETE": "planner.view_members",
    }

    @operation(
        "planner.view_members", id="read_membership", summary="Read a membership", tag=TAG, gives=MembershipSerializer
    )
    def get(self, request: Request, membership_id: UUID) -> Response:
        """Who, and in which role."""
        return self._answer(self.scope.get(Membership, membership_id))

    @operation(
        "planner.change_members",
        id="change_role",
        summary="Change a role",
        tag=TAG,
        gives=MembershipSerializer,
        takes=RoleInput,
        errors=(409,),
    )
    def patch(self, request: Request, membership_id: UUID) -> Response:
        """The last owner stays owner; a service account can't be one."""
        membership = self.scope.get(Membership, membership_id)
        role = read_body(RoleInput, self.body()).role
        return self._answer(change_role(scope=self.scope, membership=membership, role=role))

    @operation(
        "planner.view_members",
        id="remove_member",
        summary="Remove a member, or leave",
        tag=TAG,
        code=204,
        errors=(409,),
    )
    def delete(self, request: Request, membership_id: UUID) -> Response:
        """Owners remove anybody, the others themselves; the last owner stays.

        A service account goes with its keys.
        """
        remove_member(scope=self.scope, membership=self.scope.get(Membership, membership_id))
        return no_content()

    def _answer(self, membership: Membership) -> Response:
        return Response(MembershipSerializer(membership).data, headers=PRIVATE)
