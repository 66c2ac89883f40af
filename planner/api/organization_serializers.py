"""How organizations, members, invitations, keys and audit entries are written."""

from __future__ import annotations

from typing import Any

from auditlog.models import AbstractLogEntry
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from planner.models import ApiKey, AuditEntry, Invitation, Membership, Organization, Role
from planner.permissions import KEY_SCOPES

ACTIONS = {
    AbstractLogEntry.Action.CREATE: "create",
    AbstractLogEntry.Action.UPDATE: "change",
    AbstractLogEntry.Action.DELETE: "delete",
    AbstractLogEntry.Action.ACCESS: "export",
}


class OrganizationSerializer(serializers.ModelSerializer[Organization]):
    """An organization that the caller is a member of."""

    id = serializers.UUIDField(source="uuid")
    role = serializers.SerializerMethodField(help_text="The caller's.")

    class Meta:
        model = Organization
        fields = ["id", "slug", "name", "role", "created_at"]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(Role.choices))
    def get_role(self, row: Organization) -> str:
        roles: dict[int, str] = self.context["roles"]
        return roles[row.pk]


class MembershipSerializer(serializers.ModelSerializer[Membership]):
    """A person or a service account in the organization."""

    id = serializers.UUIDField(source="uuid")
    kind = serializers.SerializerMethodField(help_text="A person, or a program's own user.")
    name = serializers.SerializerMethodField(help_text="A person's address, or a service account's name.")
    joined_at = serializers.DateTimeField(source="created_at")

    class Meta:
        model = Membership
        fields = ["id", "kind", "name", "role", "joined_at"]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(["person", "service_account"]))
    def get_kind(self, row: Membership) -> str:
        return "service_account" if hasattr(row.user, "service_account") else "person"

    def get_name(self, row: Membership) -> str:
        account = getattr(row.user, "service_account", None)
        return account.name if account is not None else row.user.email or row.user.username


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation; the secret of its link is mailed, and never shown again."""

    id = serializers.UUIDField(source="uuid")
    status = serializers.SerializerMethodField()
    invited_by = serializers.SerializerMethodField(help_text="An address; null where the account is gone.")

    class Meta:
        model = Invitation
        fields = ["id", "email", "role", "status", "invited_by", "created_at", "expires_at", "accepted_at"]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(["open", "accepted", "revoked", "expired"]))
    def get_status(self, row: Invitation) -> str:
        return row.status(timezone.now())

    def get_invited_by(self, row: Invitation) -> str | None:
        return row.invited_by.email if row.invited_by is not None else None


class NewInvitationSerializer(InvitationSerializer):
    """An invitation just made."""

    link = serializers.SerializerMethodField(help_text="As mailed; shown once, null when the same request comes again.")

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "link"]
        read_only_fields = fields

    def get_link(self, row: Invitation) -> str | None:
        link: str | None = self.context.get("link")
        return link


class KeySerializer(serializers.ModelSerializer[ApiKey]):
    """An API key without its secret."""

    id = serializers.UUIDField(source="uuid")
    service_account = serializers.CharField(source="service_account.name")
    scopes = serializers.ListField(child=serializers.ChoiceField(KEY_SCOPES))
    status = serializers.SerializerMethodField()

    class Meta:
        model = ApiKey
        fields = [
            "id",
            "name",
            "prefix",
            "service_account",
            "scopes",
            "status",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
        ]
        read_only_fields = fields
        extra_kwargs = {"last_used_at": {"help_text": "To the minute."}}

    @extend_schema_field(serializers.ChoiceField(["active", "expired", "revoked"]))
    def get_status(self, row: ApiKey) -> str:
        return row.status(timezone.now())


class NewKeySerializer(KeySerializer):
    """A key just made."""

    key = serializers.SerializerMethodField(help_text="Shown once only; null when the same request comes again.")

    class Meta(KeySerializer.Meta):
        fields = [*KeySerializer.Meta.fields, "key"]
        read_only_fields = fields

    def get_key(self, row: ApiKey) -> str | None:
        key: str | None = self.context.get("key")
        return key


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """One change, or one export."""

    at = serializers.DateTimeField(source="timestamp")
    action = serializers.SerializerMethodField()
    kind = serializers.SerializerMethodField(help_text="What kind of thing was changed.")
    subject = serializers.CharField(source="object_repr", help_text="Which, by its name at that time.")
    changes = serializers.SerializerMethodField(help_text="By field: before and after.")
    by = serializers.SerializerMethodField(help_text="An address or a service account; null where unknown.")
    note = serializers.SerializerMethodField(help_text="Which API key; null for a person.")
    address = serializers.IPAddressField(source="remote_addr", allow_null=True)

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "action", "kind", "subject", "changes", "by", "note", "address"]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(sorted(ACTIONS.values())))
    def get_action(self, row: AuditEntry) -> str:
        return ACTIONS[row.action]

    def get_kind(self, row: AuditEntry) -> str:
        return str(row.content_type.model)

    @extend_schema_field(
        serializers.DictField(child=serializers.ListField(child=serializers.CharField(allow_null=True)))
    )
    def get_changes(self, row: AuditEntry) -> dict[str, Any]:
        return row.changes or {}

    def get_by(self, row: AuditEntry) -> str | None:
        return row.actor_email or None

    def get_note(self, row: AuditEntry) -> str | None:
        return (row.additional_data or {}).get("note")
