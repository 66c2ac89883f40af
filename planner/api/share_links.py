"""Links for reading without an account: what the endpoints of scenarios and of quotes share."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from django.db.models import Q
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import containing, whether
from planner.api.scenario_serializers import NewShareLinkSerializer, ShareLinkSerializer
from planner.api.tenant import PRIVATE, TenantView, created
from planner.models import Quote, Scenario, ShareLink
from planner.services.json_input import read_object
from planner.services.scenario_inputs import LinkInput
from planner.services.share_links import create_link, revoke_link, shown_as
from planner.services.typed_json import read_json

LINK_FILTERS = {
    "search": containing("Text in whom it is for.", "name"),
    "revoked": whether("Whether it was taken back.", lambda is_so: Q(revoked_at__isnull=not is_so)),
}


def make_link(view: TenantView, request: Request, shown: Scenario | Quote, location: str) -> Response:
    """A link as the body asks, once for each ``Idempotency-Key``; only the first answer has its address."""
    values = read_json(LinkInput, read_object(view.body()))
    secrets: list[str] = []

    def make() -> UUID:
        link, token = create_link(scope=view.scope, shown=shown, name=values.name, days=values.days)
        secrets.append(token)
        return link.uuid

    uuid = view.once_here(f"{shown_as(shown)}-links:{shown.pk}", make, asdict(values))
    link = view.scope.get_in(ShareLink, uuid, **{shown_as(shown): shown})
    url = request.build_absolute_uri(reverse("shared", args=secrets)) if secrets else None
    return created(NewShareLinkSerializer(link, context={"url": url}).data, location)


def end_link(view: TenantView, shown: Scenario | Quote, link_id: UUID) -> Response:
    """The link, revoked; one revoked before stays as it is."""
    link = view.scope.get_in(ShareLink, link_id, **{shown_as(shown): shown})
    return Response(ShareLinkSerializer(revoke_link(scope=view.scope, link=link)).data, headers=PRIVATE)
