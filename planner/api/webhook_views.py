"""Webhooks: which addresses are told of what, their secrets, and the log of deliveries."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from django.db.models import QuerySet
from django.urls import path, reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import containing, one_of
from planner.api.tenant import (
    IDEMPOTENCY,
    ORGANIZATION,
    PRIVATE,
    TenantListView,
    TenantView,
    created,
    no_content,
    operation,
)
from planner.api.webhook_serializers import (
    DeliverySerializer,
    NewWebhookSerializer,
    WebhookSerializer,
    WholeDeliverySerializer,
)
from planner.models import EVENTS, PING, DeliveryStatus, Webhook, WebhookDelivery
from planner.services import webhooks
from planner.services.json_input import read_body
from planner.services.plan_json import plain
from planner.services.webhook_inputs import RotationInput, WebhookInput

TAG = "webhooks"
VIEW, CHANGE = "planner.view_webhook", "planner.change_webhook"


class WebhooksView(TenantListView):
    """The organization's webhooks, without their secrets."""

    title = "webhooks"
    quota = "webhooks"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = WebhookSerializer
    filters = {
        "search": containing("Text in name or address.", "name", "url"),
        "state": one_of("is_active", "On or off.", "on", "off", read=lambda value: "1" if value == "on" else "0"),
    }

    def rows(self) -> QuerySet[Webhook]:
        return self.scope.rows(Webhook)

    @operation(
        CHANGE,
        id="create_webhook",
        summary="Make a webhook",
        tag=TAG,
        gives=NewWebhookSerializer,
        takes=WebhookInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        """`secret` is in this answer only: it signs what is sent."""
        values = read_body(WebhookInput, self.body())
        secrets: list[str] = []

        def make() -> UUID:
            made = webhooks.create_webhook(scope=self.scope, values=values)
            secrets.append(made.secret)
            return made.webhook.uuid

        uuid = self.once_here("webhooks", make, plain(asdict(values)))
        row = self.scope.get(Webhook, uuid)
        body = NewWebhookSerializer(row, context={"secret": secrets[0] if secrets else None}).data
        return created(body, reverse("api:webhook", args=[uuid]))


class WebhookView(TenantView):
    """One webhook."""

    permissions = {"GET": VIEW, "PUT": CHANGE, "DELETE": CHANGE}

    @operation(VIEW, id="read_webhook", summary="Read a webhook", tag=TAG, gives=WebhookSerializer)
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """What it is told of, and whether it is on."""
        return _written(self.scope.get(Webhook, webhook_id))

    @operation(
        CHANGE, id="change_webhook", summary="Change a webhook", tag=TAG, gives=WebhookSerializer, takes=WebhookInput
    )
    def put(self, request: Request, webhook_id: UUID) -> Response:
        """Write it anew; its secret stays."""
        webhook = self.scope.get(Webhook, webhook_id)
        values = read_body(WebhookInput, self.body())
        return _written(webhooks.change_webhook(scope=self.scope, webhook=webhook, values=values))

    @operation(CHANGE, id="delete_webhook", summary="Remove a webhook", tag=TAG, code=204)
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        """With its log of deliveries."""
        webhooks.delete_webhook(scope=self.scope, webhook=self.scope.get(Webhook, webhook_id))
        return no_content()


class WebhookRotateView(TenantView):
    """Another secret."""

    permissions = {"POST": CHANGE}

    @operation(
        CHANGE,
        id="rotate_webhook_secret",
        summary="Change a webhook's secret",
        tag=TAG,
        gives=NewWebhookSerializer,
        takes=RotationInput,
        parameters=(ORGANIZATION, IDEMPOTENCY),
        errors=(422,),
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """`secret` is in this answer only; the old one signs too until the overlap ends."""
        webhook = self.scope.get(Webhook, webhook_id)
        values = read_body(RotationInput, self.body())
        secrets: list[str] = []

        def rotate() -> UUID:
            made = webhooks.rotate_secret(scope=self.scope, webhook=webhook, overlap_hours=values.overlap_hours)
            secrets.append(made.secret)
            return made.webhook.uuid

        self.once_here(f"rotations:{webhook.pk}", rotate, asdict(values))
        row = self.scope.get(Webhook, webhook_id)
        context = {"secret": secrets[0] if secrets else None}
        return Response(NewWebhookSerializer(row, context=context).data, headers=PRIVATE)


class WebhookPingView(TenantView):
    """A trial event."""

    permissions = {"POST": CHANGE}

    @operation(
        CHANGE,
        id="ping_webhook",
        summary="Send a trial event",
        tag=TAG,
        gives=WholeDeliverySerializer,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Of the type `ping`; its delivery shows what became of it."""
        webhook = self.scope.get(Webhook, webhook_id)

        def make() -> UUID:
            return webhooks.ping(scope=self.scope, webhook=webhook).uuid

        uuid = self.once_here(f"pings:{webhook.pk}", make, {})
        delivery = self.scope.get_in(WebhookDelivery, uuid, webhook=webhook)
        location = reverse("api:webhook-delivery", args=[webhook_id, uuid])
        return created(WholeDeliverySerializer(delivery).data, location)


class DeliveriesView(TenantListView):
    """What was sent to a webhook within 30 days, and is to be."""

    title = "webhook deliveries"
    tag = TAG
    permissions = {"GET": VIEW}
    serializer = DeliverySerializer
    filters = {
        "status": one_of("status", "Where it is.", *DeliveryStatus.values),
        "event": one_of("event", "Kinds of events.", *EVENTS, PING),
    }

    def rows(self) -> QuerySet[WebhookDelivery]:
        webhook = self.scope.get(Webhook, self.kwargs["webhook_id"])
        return self.scope.rows(WebhookDelivery).filter(webhook=webhook)


class DeliveryView(TenantView):
    """One delivery."""

    permissions = {"GET": VIEW}

    @operation(VIEW, id="read_webhook_delivery", summary="Read a delivery", tag=TAG, gives=WholeDeliverySerializer)
    def get(self, request: Request, webhook_id: UUID, delivery_id: UUID) -> Response:
        """What is sent, and every attempt."""
        return Response(WholeDeliverySerializer(_delivery(self, webhook_id, delivery_id)).data, headers=PRIVATE)


class DeliveryRedeliverView(TenantView):
    """A delivery sent again."""

    permissions = {"POST": CHANGE}

    @operation(
        CHANGE, id="redeliver_webhook", summary="Send it again", tag=TAG, gives=WholeDeliverySerializer, errors=(409,)
    )
    def post(self, request: Request, webhook_id: UUID, delivery_id: UUID) -> Response:
        """The same id and body, signed anew."""
        delivery = _delivery(self, webhook_id, delivery_id)
        sent = webhooks.redeliver(scope=self.scope, delivery=delivery)
        return Response(WholeDeliverySerializer(sent).data, headers=PRIVATE)


def _written(webhook: Webhook) -> Response:
    return Response(WebhookSerializer(webhook).data, headers=PRIVATE)


def _delivery(view: TenantView, webhook_id: UUID, delivery_id: UUID) -> WebhookDelivery:
    webhook = view.scope.get(Webhook, webhook_id)
    return view.scope.get_in(WebhookDelivery, delivery_id, webhook=webhook)


_DELIVERY = "v1/webhooks/<uuid:webhook_id>/deliveries/<uuid:delivery_id>/"
urlpatterns = [
    path("v1/webhooks/", WebhooksView.as_view(), name="webhooks"),
    path("v1/webhooks/<uuid:webhook_id>/", WebhookView.as_view(), name="webhook"),
    path("v1/webhooks/<uuid:webhook_id>/rotate/", WebhookRotateView.as_view(), name="webhook-rotate"),
    path("v1/webhooks/<uuid:webhook_id>/ping/", WebhookPingView.as_view(), name="webhook-ping"),
    path("v1/webhooks/<uuid:webhook_id>/deliveries/", DeliveriesView.as_view(), name="webhook-deliveries"),
    path(_DELIVERY, DeliveryView.as_view(), name="webhook-delivery"),
    path(f"{_DELIVERY}redeliver/", DeliveryRedeliverView.as_view(), name="webhook-redeliver"),
]
