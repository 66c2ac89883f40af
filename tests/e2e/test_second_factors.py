"""Second factors in a real browser, under the site's own content policy: a passkey, and an authenticator app."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from playwright.sync_api import Page, expect

from catalog.services import load_catalog
from tests.e2e.conftest import OpenPage
from tests.e2e.test_accounts import PASSWORD, fill_sign_up

# The site writes in its own connection: the test must hold no transaction of its own.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(autouse=True)
def _fresh(site: str) -> None:
    """Each test of this module empties the database when it ends."""
    load_catalog()
    cache.clear()


def signed_up(open_page: OpenPage, email: str) -> Page:
    page = open_page("/docs/")
    # A passkey belongs to a name, and an address of digits is none.
    page.goto(page.url.replace("127.0.0.1", "localhost").replace("/docs/", "/accounts/signup/"))
    fill_sign_up(page, email)
    expect(page.get_by_role("heading", level=1)).to_have_text("Organizations")
    return page


def go(page: Page, path: str) -> None:
    scheme, _, rest = page.url.partition("://")
    page.goto(f"{scheme}://{rest.split('/')[0]}{path}")


def confirm(page: Page) -> None:
    """Say the password again, as changing second factors asks for."""
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def sign_out(page: Page) -> None:
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Sign out").click()


def test_a_passkey_is_added_and_signs_in_by_itself(open_page: OpenPage) -> None:
    page = signed_up(open_page, "gita@example.org")
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    go(page, "/accounts/2fa/webauthn/add/")
    confirm(page)
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery Codes")
    sign_out(page)
    go(page, "/accounts/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Organizations")


def test_an_authenticator_app_is_added_and_asked_for(open_page: OpenPage) -> None:
    page = signed_up(open_page, "hadi@example.org")
    go(page, "/accounts/2fa/totp/activate/")
    confirm(page)
    assert page.locator("img.code").evaluate("image => image.complete && image.naturalWidth") > 100
    secret = page.get_by_label("Authenticator secret").input_value()
    page.get_by_label("Authenticator code").fill(code(secret, 0))
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery Codes")
    stored = Authenticator.objects.get(type=Authenticator.Type.TOTP).data["secret"]
    assert secret not in stored
    sign_out(page)
    go(page, "/accounts/login/")
    page.get_by_label("Email").fill("hadi@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign In", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Two-Factor Authentication")
    # A code is good once: this is the next one.
    page.get_by_label("Code").fill(code(secret, 1))
    page.get_by_role("button", name="Sign In", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Organizations")


def code(secret: str, steps_ahead: int) -> str:
    """What an app shows now, or in so many half minutes (RFC 6238)."""
    counter = struct.pack(">Q", int(time.time()) // 30 + steps_ahead)
    digest = hmac.new(base64.b32decode(secret), counter, hashlib.sha1).digest()
    start = digest[-1] & 15
    return f"{(int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF) % 10**6:06d}"
