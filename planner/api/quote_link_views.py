"""Links for reading an issued quote without an account."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.quote_views import CHANGE, TAG
from planner.api.scenario_serializers import NewShareLinkSerializer, ShareLinkSerializer
from planner.api.share_links import LINK_FILTERS, end_link, make_link
from planner.api.tenant import TenantListView, TenantView, operation
from planner.models import ShareLink
from planner.selectors import quotes as read
from planner.services.scenario_inputs import LinkInput


class QuoteLinksView(TenantListView):
    """Links for reading a quote without an account."""

    title = "quote links"
    tag = TAG
    permissions = {"GET": CHANGE, "POST": CHANGE}
    serializer = ShareLinkSerializer
    filters = LINK_FILTERS

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
        return make_link(self, request, found, reverse("api:quote-links", args=[quote_id]))


class QuoteLinkRevokeView(TenantView):
    """The end of a link."""

    permissions = {"POST": CHANGE}

    @operation(CHANGE, id="revoke_quote_link", summary="Revoke a quote's link", tag=TAG, gives=ShareLinkSerializer)
    def post(self, request: Request, quote_id: UUID, link_id: UUID) -> Response:
        """From now on it finds nothing; a revoked one stays as it is."""
        return end_link(self, read.quote(self.scope, quote_id), link_id)


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/quotes/<uuid:quote_id>/links/", QuoteLinksView, "quote-links"),
    ("v1/quotes/<uuid:quote_id>/links/<uuid:link_id>/revoke/", QuoteLinkRevokeView, "quote-link-revoke"),
)
