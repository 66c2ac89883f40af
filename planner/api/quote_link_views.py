"""Links for reading an issued quote without an account."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import containing, whether
from planner.api.quote_views import CHANGE, TAG
from planner.api.scenario_serializers import NewShareLinkSerializer, ShareLinkSerializer
from planner.api.tenant import PRIVATE, TenantListView, TenantView, created, operation
from planner.models import ShareLink
from planner.selectors import quotes as read
from planner.services.json_input import read_object
from planner.services.scenario_inputs import LinkInput
from planner.services.share_links import create_link, revoke_link
from planner.services.typed_json import read_json


class QuoteLinksView(TenantListView):
    """Links for reading a quote without an account."""

    title = "quote links"
    tag = TAG
    permissions = {"GET": CHANGE, "POST": CHANGE}
    serializer = ShareLinkSerializer
    filters = {
        "search": containing("Text in whom it is for.", "name"),
        "revoked": whether("Whether it was taken back.", lambda is_so: Q(revoked_at__isnull=not is_so)),
    }

    def rows(self) -> QuerySet[ShareLink]:
        found = read.quote(self.scope, self.kwargs["quote_id"])
        return self.scope.rows(ShareLink).filter(quote=found)

    @operation(
        CHANGE,
        id="share_quote",
        summary="Make a link to an issued quote",
        tag=TAG,
        gives=NewShareLinkSerializer,
        takes=LinkInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request, quote_id: UUID) -> Response:
        """Shows the quote and its PDF. The address is in this answer alone; a repeated `Idempotency-Key` answers with
        `url` null."""
        found = read.quote(self.scope, quote_id)
        values = read_json(LinkInput, read_object(self.body()))
        secrets: list[str] = []

        def make() -> UUID:
            link, token = create_link(scope=self.scope, shown=found, name=values.name, days=values.days)
            secrets.append(token)
            return link.uuid

        uuid = self.once_here(f"quote-links:{found.pk}", make, asdict(values))
        link = self.scope.get_in(ShareLink, uuid, quote=found)
        url = request.build_absolute_uri(reverse("shared", args=secrets)) if secrets else None
        location = reverse("api:quote-links", args=[quote_id])
        return created(NewShareLinkSerializer(link, context={"url": url}).data, location)


class QuoteLinkRevokeView(TenantView):
    """The end of a link."""

    permissions = {"POST": CHANGE}

    @operation(CHANGE, id="revoke_quote_link", summary="Revoke a quote's link", tag=TAG, gives=ShareLinkSerializer)
    def post(self, request: Request, quote_id: UUID, link_id: UUID) -> Response:
        """From now on it finds nothing; a revoked one stays as it is."""
        found = read.quote(self.scope, quote_id)
        link = self.scope.get_in(ShareLink, link_id, quote=found)
        return Response(ShareLinkSerializer(revoke_link(scope=self.scope, link=link)).data, headers=PRIVATE)


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/quotes/<uuid:quote_id>/links/", QuoteLinksView, "quote-links"),
    ("v1/quotes/<uuid:quote_id>/links/<uuid:link_id>/revoke/", QuoteLinkRevokeView, "quote-link-revoke"),
)
