"""What people say of a scenario, and links for reading it without an account."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import containing, not_older_than
from planner.api.scenario_serializers import (
    NewShareLinkSerializer,
    ScenarioCommentSerializer,
    ShareLinkSerializer,
)
from planner.api.scenario_views import CHANGE, COMMENT, TAG, VIEW
from planner.api.share_links import LINK_FILTERS, end_link, make_link
from planner.api.tenant import TenantListView, TenantView, created, operation
from planner.models import ScenarioComment, ShareLink
from planner.selectors import scenarios as read
from planner.services import scenarios
from planner.services.json_input import read_object
from planner.services.scenario_inputs import (
    CommentInput,
    LinkInput,
)
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
    filters = LINK_FILTERS

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
        return make_link(self, request, found, reverse("api:scenario-links", args=[scenario_id]))


class LinkRevokeView(TenantView):
    """The end of a link."""

    permissions = {"POST": CHANGE}

    @operation(CHANGE, id="revoke_link", summary="Revoke a link", tag=TAG, gives=ShareLinkSerializer)
    def post(self, request: Request, scenario_id: UUID, link_id: UUID) -> Response:
        """From now on it finds nothing; a revoked one stays as it is."""
        return end_link(self, read.scenario(self.scope, scenario_id), link_id)


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/scenarios/<uuid:scenario_id>/comments/", CommentsView, "scenario-comments"),
    ("v1/scenarios/<uuid:scenario_id>/links/", LinksView, "scenario-links"),
    ("v1/scenarios/<uuid:scenario_id>/links/<uuid:link_id>/revoke/", LinkRevokeView, "scenario-link-revoke"),
)
