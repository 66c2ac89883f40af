"""Signing up, organizations, the switcher: what a visitor sees and can do."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from planner.models import Membership, Organization, Role, User
from tests.planner.organizations import PASSWORD, Tenant, tenant_factory, user_factory

pytestmark = pytest.mark.django_db
STRONG = "a-long-and-unusual-phrase-7"


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    cache.clear()


@pytest.fixture
def acme() -> Tenant:
    return tenant_factory("Acme")


def test_a_visitor_signs_up_founds_an_organization_and_plans_with_it(client: Client) -> None:
    given = {"email": "new@example.org", "password1": STRONG, "password2": STRONG}
    answer = client.post(reverse("account_signup"), given)
    assert answer.status_code == 302
    assert answer["Location"] == reverse("organizations")
    user = User.objects.get(email="new@example.org")
    created = client.post(reverse("organizations"), {"name": "New Ltd"}, follow=True)
    assert "New Ltd" in created.content.decode()
    assert Membership.objects.get(user=user).role == Role.OWNER
    assert client.session["organization"] == str(Organization.objects.get().uuid)


def test_signing_in_by_email_works_and_wrong_passwords_are_limited(client: Client, acme: Tenant) -> None:
    email = acme.people[Role.OWNER].email
    for _ in range(5):
        wrong = client.post(reverse("account_login"), {"login": email, "password": "no"})
        assert wrong.status_code == 200
    refused = client.post(reverse("account_login"), {"login": email, "password": "no"})
    assert "Too many failed login attempts" in refused.content.decode()


@pytest.mark.parametrize("path", ["login/", "signup/", "password/reset/", "password/reset/done/", "inactive/"])
def test_pages_before_signing_in_wear_the_sites_own_look(client: Client, path: str) -> None:
    page = client.get(f"/accounts/{path}").content.decode()
    assert 'class="page narrow account"' in page
    assert 'class="brand"' in page


@pytest.mark.parametrize(
    "path", ["email/", "password/change/", "2fa/", "2fa/totp/activate/", "2fa/webauthn/add/", "sessions/"]
)
def test_pages_of_the_account_wear_the_sites_own_look(client: Client, acme: Tenant, path: str) -> None:
    client.post(reverse("account_login"), {"login": acme.people[Role.OWNER].email, "password": PASSWORD})
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    answer = client.get(f"/accounts/{path}")
    assert answer.status_code == 200
    assert 'aria-label="Your account"' in answer.content.decode()


def test_the_switcher_chooses_prices_and_returns_to_the_page(client: Client, acme: Tenant) -> None:
    client.force_login(acme.people[Role.VIEWER])
    use = reverse("use-organization")
    back = client.post(use, {"organization": "", "next": "/docs/?x=1"})
    assert back["Location"] == "/docs/?x=1"
    assert client.session["organization"] == ""
    client.post(use, {"organization": acme.organization.slug})
    assert client.session["organization"] == str(acme.organization.uuid)
    assert client.post(use, {"organization": "", "next": "https://elsewhere.example/"})["Location"] == "/"


def test_nobody_can_switch_to_anothers_organization(client: Client, acme: Tenant) -> None:
    client.force_login(user_factory("stranger"))
    assert client.post(reverse("use-organization"), {"organization": acme.organization.slug}).status_code == 404


def test_an_organization_is_renamed_by_its_owner_alone(client: Client, acme: Tenant) -> None:
    page = reverse("organization", args=[acme.organization.slug])
    client.force_login(acme.people[Role.BUYER])
    assert client.get(page).status_code == 200
    assert client.post(page, {"name": "Mine"}).status_code == 403
    client.force_login(acme.people[Role.OWNER])
    bad = client.post(page, {"name": " "})
    assert bad.status_code == 400
    assert "Not a usable name" in bad.content.decode()
    assert client.post(page, {"name": "<b>Acme & Co</b>"}).status_code == 302
    assert "&lt;b&gt;Acme &amp; Co&lt;/b&gt;" in client.get(page).content.decode()
