"""Limits by tier: said in headers, in the API and on pages before they bite, and kept when they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from planner.models import Role, Tier, User
from planner.services import tiers
from planner.services.api_keys import create_key, revoke_key
from planner.services.invitations import invite, revoke_invitation
from planner.services.organization_inputs import InvitationInput, KeyInput
from planner.services.organizations import create_organization
from planner.services.price_book_inputs import PriceBookInput
from planner.services.price_books import create_price_book
from planner.services.quotes import create_quote, issue_quote
from planner.services.tenancy import Conflict
from planner.services.webhook_inputs import WebhookInput
from planner.services.webhooks import create_webhook
from tests.planner.organizations import Tenant, tenant_factory, user_factory
from tests.planner.quote_terms import TERMS

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    cache.clear()


@pytest.fixture
def acme() -> Tenant:
    return tenant_factory()


def narrow(monkeypatch: pytest.MonkeyPatch, name: str, free: int) -> None:
    monkeypatch.setitem(tiers.QUOTAS, name, replace(tiers.QUOTAS[name], free=free))


def hook(number: int) -> WebhookInput:
    return WebhookInput(name=f"ERP {number}", url="https://erp.example/", events=("quote.issued",))


MAKERS: dict[str, Any] = {
    "members": lambda scope, n: invite(scope=scope, values=InvitationInput(email=f"{n}@example.org", role="viewer")),
    "price_books": lambda scope, n: create_price_book(scope=scope, values=PriceBookInput(name=f"Book {n}")),
    "quotes_a_month": lambda scope, n: create_quote(scope=scope, terms=TERMS, issue=True),
    "keys": lambda scope, n: create_key(scope=scope, values=KeyInput(name=f"{n}", service_account="ERP")),
    "webhooks": lambda scope, n: create_webhook(scope=scope, values=hook(n)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_one_more_than_the_limit_is_refused(acme: Tenant, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    scope = acme.scope()
    before = tiers.usage(scope.organization, name).used
    narrow(monkeypatch, name, before + 2)
    MAKERS[name](scope, 1)
    MAKERS[name](scope, 2)
    assert tiers.usage(scope.organization, name) == tiers.Usage(name=name, used=before + 2, limit=before + 2)
    with pytest.raises(Conflict) as conflict:
        MAKERS[name](scope, 3)
    assert conflict.value.code == "too_many"
    assert conflict.value.message.startswith(f"The free tier has {before + 2} ")
    type(scope.organization).objects.update(tier=Tier.TEAM)
    MAKERS[name](acme.scope(), 3)


def test_a_refused_quote_takes_no_number(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = acme.scope()
    narrow(monkeypatch, "quotes_a_month", 1)
    create_quote(scope=scope, terms=TERMS, issue=True)
    draft = create_quote(scope=scope, terms=TERMS)
    with pytest.raises(Conflict):
        issue_quote(scope=scope, quote=draft)
    narrow(monkeypatch, "quotes_a_month", 2)
    assert issue_quote(scope=scope, quote=draft).sequence == 2


def test_what_is_revoked_makes_room(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = acme.scope()
    narrow(monkeypatch, "keys", 1)
    revoke_key(scope=scope, key=MAKERS["keys"](scope, 1).row)
    MAKERS["keys"](scope, 2)
    used = tiers.usage(scope.organization, "members").used
    narrow(monkeypatch, "members", used + 1)
    revoke_invitation(scope=scope, invitation=MAKERS["members"](scope, 1).invitation)
    MAKERS["members"](scope, 2)


def test_the_tier_is_that_of_the_best_organization(acme: Tenant) -> None:
    owner = acme.people[Role.OWNER]
    assert tiers.tier_of(user_factory("nobody")) == "free"
    assert tiers.tier_of(owner) == "free"
    team = create_organization(user=owner, name="Team")
    type(team).objects.filter(pk=team.pk).update(tier=Tier.TEAM)
    assert tiers.tier_of(User.objects.get(pk=owner.pk)) == "team"


def test_new_organizations_have_the_tier_that_the_operator_sets(settings: Any) -> None:
    settings.DEFAULT_TIER = "team"
    assert create_organization(user=user_factory("ani"), name="Ani").tier == "team"


def test_each_tier_has_its_own_rates_and_every_answer_names_it(client: Client, acme: Tenant) -> None:
    key = create_key(
        scope=acme.scope(), values=KeyInput(name="k", service_account="ERP", scopes=("price_books:read",))
    ).key

    def told(**headers: str) -> tuple[str, str]:
        answer = client.get("/api/v1/presets/", headers=headers)
        return answer["Takar-Tier"], answer["RateLimit-Limit"]

    assert told() == ("anonymous", "600")
    assert told(authorization=f"Bearer {key}") == ("free", "1200")
    type(acme.organization).objects.update(tier=Tier.TEAM)
    assert told(authorization=f"Bearer {key}") == ("team", "6000")
    client.force_login(acme.people[Role.VIEWER])
    assert told() == ("team", "6000")
    assert settings.API_RATES["free"] == {"plan": 120, "read": 1200, "run": 40}


def test_lists_and_what_creates_say_how_far_a_limit_is_used_up(client: Client, acme: Tenant) -> None:
    client.force_login(acme.people[Role.OWNER])
    assert client.get("/api/v1/webhooks/")["Takar-Quota"] == "webhooks;used=0;limit=5"
    body = {"name": "ERP", "url": "https://erp.example/", "events": ["quote.issued"]}
    assert client.post("/api/v1/webhooks/", body, "application/json")["Takar-Quota"] == "webhooks;used=1;limit=5"
    assert client.get("/api/v1/memberships/")["Takar-Quota"] == "members;used=4;limit=10"
    quote = create_quote(scope=acme.scope(), terms=TERMS)
    issued = client.post(f"/api/v1/quotes/{quote.uuid}/issue/", {}, "application/json")
    assert issued["Takar-Quota"] == "quotes_a_month;used=1;limit=500"


def test_the_api_answers_limits_of_nobody_and_of_an_organization(client: Client, acme: Tenant) -> None:
    nobody = client.get("/api/v1/limits/").json()
    assert (nobody["tier"], nobody["usage"]) == ("anonymous", [])
    assert [tier["name"] for tier in nobody["tiers"]] == ["anonymous", "free", "team"]
    assert set(nobody["tiers"][0]["quotas"].values()) == {0}
    client.force_login(acme.people[Role.VIEWER])
    own = client.get("/api/v1/limits/", headers={"Takar-Organization": acme.organization.slug}).json()
    assert own["tier"] == "free"
    assert {"name": "members", "used": 4, "limit": 10} in own["usage"]
    stranger = tenant_factory("Other").people[Role.OWNER]
    client.force_login(stranger)
    assert client.get("/api/v1/limits/", headers={"Takar-Organization": acme.organization.slug}).status_code == 404


def test_pages_say_it_before_it_bites(client: Client, acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Without an account <span" in client.get("/limits/").content.decode()
    client.force_login(acme.people[Role.OWNER])
    members = reverse("members", args=[acme.organization.slug])
    page = client.get(members).content.decode()
    assert '<p class="hint quota">4 of 10 members and open invitations · Free' in page
    narrow(monkeypatch, "members", 5)
    assert '<p class="hint quota near">4 of 5 members' in client.get(members).content.decode()
    limits = client.get("/limits/").content.decode()
    assert "Used by Acme" in limits
    assert limits.count("nearly used up") == 1
    narrow(monkeypatch, "members", 4)
    invited = reverse("invite", args=[acme.organization.slug]), {"email": "x@example.org", "role": "viewer"}
    for language, said in (
        ("en", "The free tier has 4 members, and all are used. What would do: fewer members, or a higher tier."),
        ("id", "Tingkat gratis punya 4 anggota, dan semuanya terpakai."),
    ):
        refused = client.post(*invited, headers={"accept-language": language})
        assert refused.status_code == 409
        assert said in refused.content.decode()
    assert '<th scope="col">Gratis' in client.get("/limits/", headers={"accept-language": "id"}).content.decode()


def test_an_operator_sets_the_tier_in_the_admin(client: Client, acme: Tenant) -> None:
    client.force_login(User.objects.create_superuser("root", "root@example.org", "x"))
    address = f"/admin/planner/organization/{acme.organization.pk}/change/"
    assert client.post(address, {"name": "Acme", "tier": "team"}).status_code == 302
    acme.organization.refresh_from_db()
    assert acme.organization.tier == "team"
    assert client.get("/admin/planner/organization/add/").status_code == 403
