"""Invitations: made, taken back, accepted."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import person
from planner.api.base import ApiView
from planner.api.components import ref
from planner.api.filters import containing, one_of
from planner.api.openapi import RATE_HEADERS, answer, error_responses
from planner.api.organization_serializers import InvitationSerializer, MembershipSerializer, NewInvitationSerializer
from planner.api.tenant import PRIVATE, TenantListView, TenantView, created, operation
from planner.api.throttles import ReadThrottle
from planner.models import Invitation, Role
from planner.selectors import organizations as selectors
from planner.services import invitations
from planner.services.json_input import read_body
from planner.services.organization_inputs import InvitationInput, TokenInput

TAG = "organizations"


class InvitationsView(TenantListView):
    """Invitations of the organization, whatever became of them."""

    title = "invitations"
    quota = "members"
    tag = TAG
    permissions = {"GET": "planner.change_members", "POST": "planner.change_members"}
    serializer = InvitationSerializer
    link: str | None = None
    filters = {"search": containing("Text in the address.", "email"), "role": one_of("role", "Roles.", *Role.values)}

    def rows(self) -> QuerySet[Invitation]:
        return selectors.invitations(self.scope)

    @operation(
        "planner.change_members",
        id="invite",
        summary="Invite somebody",
        tag=TAG,
        gives=NewInvitationSerializer,
        takes=InvitationInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        """Mails a link that is good for 7 days, once; an open invitation of the same address is replaced."""
        values = read_body(InvitationInput, self.body())
        asked = {"email": values.email, "role": values.role}
        uuid = self.once_here("invitations", partial(self._invite, values), asked)
        invitation = self.scope.get(Invitation, uuid)
        written = NewInvitationSerializer(invitation, context={"link": self.link})
        return created(written.data, reverse("api:invitation", args=[uuid]))

    def _invite(self, values: InvitationInput) -> UUID:
        invited = invitations.invite(scope=self.scope, values=values)
        self.link = self.request.build_absolute_uri(reverse("invitation", args=[invited.token]))
        invitations.send_invitation(scope=self.scope, invitation=invited.invitation, link=self.link)
        return invited.invitation.uuid


class InvitationView(TenantView):
    """One invitation."""

    permissions = {"GET": "planner.change_members"}

    @operation(
        "planner.change_members",
        id="read_invitation",
        summary="Read an invitation",
        tag=TAG,
        gives=InvitationSerializer,
    )
    def get(self, request: Request, invitation_id: UUID) -> Response:
        """Whether it is open still."""
        return Response(InvitationSerializer(self.scope.get(Invitation, invitation_id)).data, headers=PRIVATE)


class InvitationRevokeView(TenantView):
    """Take one invitation back."""

    permissions = {"POST": "planner.change_members"}

    @operation(
        "planner.change_members",
        id="revoke_invitation",
        summary="Revoke an invitation",
        tag=TAG,
        gives=InvitationSerializer,
        errors=(409,),
    )
    def post(self, request: Request, invitation_id: UUID) -> Response:
        """Its link is useless from now on."""
        invitation = self.scope.get(Invitation, invitation_id)
        revoked = invitations.revoke_invitation(scope=self.scope, invitation=invitation)
        return Response(InvitationSerializer(revoked).data, headers=PRIVATE)


class InvitationAcceptView(ApiView):
    """Join an organization."""

    throttle_classes = [ReadThrottle]

    @extend_schema(
        operation_id="accept_invitation",
        summary="Accept an invitation",
        tags=[TAG],
        parameters=RATE_HEADERS,
        request={"application/json": ref(TokenInput)},
        responses={
            200: answer(MembershipSerializer, "Your membership."),
            **error_responses(400, 401, 403, 404, 409, 413, 415),
        },
    )
    def post(self, request: Request) -> Response:
        """For the person invited, once: `token` is the last part of the link in the message."""
        user = person(request)
        token = read_body(TokenInput, self.body()).token
        membership = invitations.accept_invitation(user=user, token=token)
        return Response(MembershipSerializer(membership).data, headers=PRIVATE)
