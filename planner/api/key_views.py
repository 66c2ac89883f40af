"""API keys, and the audit log."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import Filter, containing, not_older_than, one_of
from planner.api.organization_serializers import ACTIONS, AuditEntrySerializer, KeySerializer, NewKeySerializer
from planner.api.tenant import PRIVATE, NewestFirst, TenantListView, TenantView, created, operation
from planner.engine.field_spec import FieldSpec
from planner.models import ApiKey, AuditEntry
from planner.selectors import organizations as selectors
from planner.services.api_keys import create_key, revoke_key
from planner.services.json_input import read_body
from planner.services.organization_inputs import KeyInput
from planner.services.plan_json import plain

TAG = "organizations"


class KeysView(TenantListView):
    """API keys of the organization's service accounts, without their secrets."""

    title = "keys"
    quota = "keys"
    tag = TAG
    permissions = {"GET": "planner.view_keys", "POST": "planner.change_keys"}
    serializer = KeySerializer
    filters = {
        "search": containing("Text in the name or service account.", "name", "service_account__name"),
        "prefix": one_of("prefix", "First letters of keys, as `prefix` has them."),
    }
    key: str | None = None

    def rows(self) -> QuerySet[ApiKey]:
        return selectors.api_keys(self.scope)

    @operation(
        "planner.change_keys",
        id="create_key",
        summary="Make an API key",
        tag=TAG,
        gives=NewKeySerializer,
        takes=KeyInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        """`key` is in this answer only. A service account of a new name is made with the role given."""
        values = read_body(KeyInput, self.body())

        def make() -> UUID:
            made = create_key(scope=self.scope, values=values)
            self.key = made.key
            return made.row.uuid

        uuid = self.once_here("keys", make, plain(asdict(values)))
        row = self.scope.get(ApiKey, uuid)
        return created(NewKeySerializer(row, context={"key": self.key}).data, reverse("api:key", args=[uuid]))


class KeyView(TenantView):
    """One API key."""

    permissions = {"GET": "planner.view_keys"}

    @operation("planner.view_keys", id="read_key", summary="Read an API key", tag=TAG, gives=KeySerializer)
    def get(self, request: Request, key_id: UUID) -> Response:
        """When it was used last, and until when it is good."""
        return Response(KeySerializer(self.scope.get(ApiKey, key_id)).data, headers=PRIVATE)


class KeyRevokeView(TenantView):
    """End one API key."""

    permissions = {"POST": "planner.change_keys"}

    @operation("planner.change_keys", id="revoke_key", summary="Revoke an API key", tag=TAG, gives=KeySerializer)
    def post(self, request: Request, key_id: UUID) -> Response:
        """Its next call answers 401."""
        revoked = revoke_key(scope=self.scope, key=self.scope.get(ApiKey, key_id))
        return Response(KeySerializer(revoked).data, headers=PRIVATE)


class LatestFirst(NewestFirst):
    """Audit entries by their time."""

    ordering = ("-timestamp", "-id")


_CODES = {words: code for code, words in ACTIONS.items()}


class AuditView(TenantListView):
    """Every change and every export: who, what, when, from where."""

    title = "audit entries"
    tag = TAG
    permissions = {"GET": "planner.view_audit"}
    serializer = AuditEntrySerializer
    pages = LatestFirst
    filters = {
        "action": Filter(
            spec=FieldSpec(kind="choices", choices=tuple(sorted(_CODES)), help="What was done, several by commas."),
            keep=lambda names: Q(action__in=[_CODES[name] for name in names]),
        ),
        "kind": one_of("content_type__model", "Kinds of things, as `kind` has them."),
        "search": containing("Text in the subject or author.", "object_repr", "actor_email"),
        "max_age_days": not_older_than("timestamp__date", "Leaves out older entries."),
    }

    def rows(self) -> QuerySet[AuditEntry]:
        return selectors.audit_entries(self.scope)
