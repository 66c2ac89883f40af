"""How webhooks and their deliveries are written; a secret is in the one answer that made it."""

from __future__ import annotations

import json
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from planner.models import EVENTS, PING, DeliveryStatus, Webhook, WebhookDelivery
from planner.services.webhook_inputs import OFF, ON
from planner.services.webhooks import old_secret_until


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """An address that is told what happens."""

    id = serializers.UUIDField(source="uuid")
    name = serializers.CharField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(EVENTS))
    state = serializers.SerializerMethodField()
    off_reason = serializers.SerializerMethodField(
        help_text="Why it went off: `gone` (it answered 410) or `failing`; null: it is on, or somebody did that."
    )
    old_secret_until = serializers.SerializerMethodField(help_text="Until when an earlier secret signs too.")

    class Meta:
        model = Webhook
        fields = [
            "id",
            "name",
            "url",
            "events",
            "state",
            "off_reason",
            "secret_changed_at",
            "old_secret_until",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField([ON, OFF]))
    def get_state(self, row: Webhook) -> str:
        return ON if row.is_active else OFF

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_off_reason(self, row: Webhook) -> str | None:
        return row.off_reason or None

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_old_secret_until(self, row: Webhook) -> Any:
        until = old_secret_until(row, timezone.now())
        return until and serializers.DateTimeField().to_representation(until)


class NewWebhookSerializer(WebhookSerializer):
    """A webhook with the secret that was made just now."""

    secret = serializers.SerializerMethodField(
        help_text="Signs what is sent; never shown again. Null: the same Idempotency-Key came before."
    )

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_secret(self, row: Webhook) -> str | None:
        secret: str | None = self.context.get("secret")
        return secret


class AttemptSerializer(serializers.Serializer[Any]):
    """One attempt to send."""

    at = serializers.DateTimeField()
    status = serializers.IntegerField(allow_null=True, help_text="Answered; null: there was no answer.")
    error = serializers.CharField(
        help_text="Empty: it worked. Else `address`, `url`, `name`, `connection`, `tls`, `timeout`, `redirect`, "
        "`status` or `secret`."
    )
    detail = serializers.CharField()
    milliseconds = serializers.IntegerField()


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """One event sent to one webhook."""

    id = serializers.UUIDField(source="uuid", help_text="The message's id, `Webhook-Id`.")
    event = serializers.ChoiceField([*EVENTS, PING])
    status = serializers.ChoiceField(DeliveryStatus.values)
    attempts = serializers.IntegerField()
    log = AttemptSerializer(many=True)

    class Meta:
        model = WebhookDelivery
        fields = ["id", "event", "status", "attempts", "next_attempt_at", "delivered_at", "created_at", "log"]
        read_only_fields = fields


class WholeDeliverySerializer(DeliverySerializer):
    """One event with what is sent."""

    payload = serializers.SerializerMethodField(help_text="The body, read.")

    class Meta(DeliverySerializer.Meta):
        fields = [*DeliverySerializer.Meta.fields, "payload"]
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_payload(self, row: WebhookDelivery) -> Any:
        return json.loads(row.body)
