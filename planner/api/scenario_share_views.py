"""What people say of a scenario, and links for reading it without an account."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import containing, not_older_than, whether
from planner.api.scenario_serializers import (
    NewShareLinkSerializer,
    ScenarioCommentSerializer,
    ShareLinkSerializer,
)
from planner.api.scenario_views import CHANGE, COMMENT, TAG, VIEW
from planner.api.tenant import PRIVATE, TenantListView, TenantView, created, operation
from planner.models import ScenarioComment, ShareLink
from planner.selectors import scenarios as read
from planner.services import scenarios
from planner.services.json_input import read_object
from planner.services.scenario_inputs import (
    CommentInput,
    LinkInput,
)
from planner.services.share_links import create_link, revoke_link
from planner.services.typed_json import read_json


class CommentsView(TenantListView):
    """What was said of a scenario."""

    title = "scenario comments"
    tag = TAG
    permissions = {"GET": VIEW, "POST": COMMENT}
    serializer = ScenarioCommentSerializer
    filters = {
        "search": containing("Text in it.", "text"),
        "max_age_days": not_older_than("created_at__date", "Leaves out older ones."),
    }

    def rows(self) -> QuerySet[ScenarioComment]:
        found = read.scenario(self.scope, self.kwargs["scenario_id"])
        return self.scope.rows(ScenarioComment).filter(scenario=found).select_related("author")

    @operation(
        COMMENT,
        id="comment_on_scenario",
        summary="Comment",
        tag=TAG,
        gives=ScenarioCommentSerializer,
        takes=CommentInput,
        code=201,
    )
    def post(self, request: Request, scenario_id: UUID) -> Response:
        """Every member may."""
        found = read.scenario(self.scope, scenario_id)
        values = read_json(CommentInput, read_object(self.body()))
        uuid = self.make_once(f"comments:{found.pk}", values, scenarios.comment_on, scenario=found, text=values.text)
        comment = self.scope.get_in(ScenarioComment, uuid, scenario=found)
        location = reverse("api:scenario-comments", args=[scenario_id])
        return created(ScenarioCommentSerializer(comment).data, location)


class LinksView(TenantListView):
    """Links for reading a scenario without an account."""

    title = "share links"
    tag = TAG
    permissions = {"GET": CHANGE, "POST": CHANGE}
    serializer = ShareLinkSerializer
    filters = {
        "search": containing("Text in whom it is for.", "name"),
        "revoked": whether("Whether it was taken back.", lambda is_so: Q(revoked_at__isnull=not is_so)),
    }

    def rows(self) -> QuerySet[ShareLink]:
        found = read.scenario(self.scope, self.kwargs["scenario_id"])
        return self.scope.rows(ShareLink).filter(scenario=found)

    @operation(
        CHANGE,
        id="share_scenario",
        summary="Make a link",
        tag=TAG,
        gives=NewShareLinkSerializer,
        takes=LinkInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request, scenario_id: UUID) -> Response:
        """The address is in this answer alone; a repeated `Idempotency-Key` answers with `url` null."""
        found = read.scenario(self.scope, scenario_id)
        values = read_json(LinkInput, read_object(self.body()))
        secrets: list[str] = []

        def make() -> UUID:
            link, token = create_link(scope=self.scope, shown=found, name=values.name, days=values.days)
            secrets.append(token)
            return link.uuid

        uuid = self.once_here(f"links:{found.pk}", make, asdict(values))
        link = self.scope.get_in(ShareLink, uuid, scenario=found)
        url = request.build_absolute_uri(reverse("shared", args=secrets)) if secrets else None
        location = reverse("api:scenario-links", args=[scenario_id])
        return created(NewShareLinkSerializer(link, context={"url": url}).data, location)


class LinkRevokeView(TenantView):
    """The end of a link."""

    permissions = {"POST": CHANGE}

    @operation(CHANGE, id="revoke_link", summary="Revoke a link", tag=TAG, gives=ShareLinkSerializer)
    def post(self, request: Request, scenario_id: UUID, link_id: UUID) -> Response:
        """From now on it finds nothing; a revoked one stays as it is."""
        found = read.scenario(self.scope, scenario_id)
        link = self.scope.get_in(ShareLink, link_id, scenario=found)
        return Response(ShareLinkSerializer(revoke_link(scope=self.scope, link=link)).data, headers=PRIVATE)


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/scenarios/<uuid:scenario_id>/comments/", CommentsView, "scenario-comments"),
    ("v1/scenarios/<uuid:scenario_id>/links/", LinksView, "scenario-links"),
    ("v1/scenarios/<uuid:scenario_id>/links/<uuid:link_id>/revoke/", LinkRevokeView, "scenario-link-revoke"),
)
