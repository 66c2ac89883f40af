"""Webhooks in pages: the secret shown once, deliveries, who sees what."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from planner.models import Role, Webhook
from planner.services.webhook_delivery import deliver
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.webhook_receiver import Receiver, answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return tenant_factory()


@pytest.fixture
def buyer(client: Client, acme: Tenant) -> Client:
    client.force_login(acme.people[Role.BUYER])
    return client


def text(answer: object) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())  # type: ignore[attr-defined]


def test_a_webhook_from_making_to_removing(buyer: Client, acme: Tenant, receiver: Receiver) -> None:
    address = reverse("webhooks", args=[acme.organization.slug])
    page = text(buyer.get(address))
    assert page.count(" checked") == 3  # Events of quotes are ticked at first.
    once = re.search(r'name="once" value="([^"]+)"', page)
    assert once is not None
    form = {
        "once": once[1],
        "name": "ERP",
        "url": "https://erp.example/hook",
        "events": ["quote.issued"],
        "state": "on",
    }
    made = text(buyer.post(address, form))
    assert made.count("whsec_") == 1
    webhook = Webhook.objects.get()
    assert "whsec_" not in text(buyer.post(address, form, follow=True))
    assert Webhook.objects.count() == 1
    one = reverse("webhook", args=[acme.organization.slug, webhook.uuid])
    buyer.cookies["django_language"] = "id"
    assert all(">Aktif<" in text(buyer.get(page)) for page in (address, one))
    del buyer.cookies["django_language"]
    act = reverse("webhook-act", args=[acme.organization.slug, webhook.uuid])
    assert "whsec_" not in text(buyer.get(one))

    assert "A trial event is on its way" in text(buyer.post(act, {"action": "ping"}, follow=True))
    receiver.answers = [answer(302, "redirect")]
    delivery = webhook.deliveries.get()
    deliver(delivery_id=delivery.pk)
    page = text(buyer.get(one))
    assert "HTTP 302 a redirect, not followed" in page
    assert "again 2026-12-01 12:00:10" in page
    again = reverse("webhook-redeliver", args=[acme.organization.slug, webhook.uuid, delivery.uuid])
    assert "It is sent again." in text(buyer.post(again, follow=True))

    assert text(buyer.post(act, {"action": "rotate", "overlap_hours": "24"})).count("whsec_") == 1
    assert "An earlier one signs too, until 2026-12-02 12:00." in text(buyer.get(one))
    assert buyer.post(act, {"action": "rotate", "overlap_hours": "x"}).status_code == 400
    assert "Saved." in text(buyer.post(one, form | {"state": "off"}, follow=True))
    assert "Send a trial event" not in text(buyer.get(one))
    assert buyer.post(act, {"action": "ping"}).status_code == 409
    assert buyer.post(act, {"action": "else"}).status_code == 404
    assert "Removed." in text(buyer.post(act, {"action": "delete"}, follow=True))
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "https://10.0.0.1/"}, "10.0.0.1 is no public address"),
        ({"url": "http://erp.example/"}, "Must begin with https://"),
        ({"events": []}, "Needed."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    buyer: Client, acme: Tenant, changes: dict[str, object], words: str
) -> None:
    form = {"once": "a-key-of-some-length", "name": "ERP", "url": "https://erp.example/", "events": ["quote.issued"]}
    refused = buyer.post(reverse("webhooks", args=[acme.organization.slug]), form | changes)
    assert refused.status_code == 400
    assert words in text(refused)


def test_the_tab_is_for_who_may(client: Client, acme: Tenant) -> None:
    overview = reverse("organization", args=[acme.organization.slug])
    for role, seen in ((Role.VIEWER, False), (Role.PLANNER, False), (Role.BUYER, True), (Role.OWNER, True)):
        client.force_login(acme.people[role])
        assert (reverse("webhooks", args=[acme.organization.slug]) in text(client.get(overview))) is seen
