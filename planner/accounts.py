"""How signing in behaves here: allauth's adapters."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.http import HttpRequest

from planner.models import User
from planner.services.sealed import seal, unseal


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Accounts of people; a service account has neither password nor address and can't sign in."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Where signing up is closed, who came by an invitation's link may still."""
        return bool(settings.ACCOUNT_SIGNUP_ENABLED) or "invitation" in request.session


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors; their secrets are encrypted, so that a copy of the database alone opens nothing."""

    def encrypt(self, text: str) -> str:
        return seal(text, purpose="mfa")

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text, purpose="mfa")


def display_name(user: User) -> str:
    """How pages and messages call a person, or a service account."""
    if user.email:
        return user.email
    account = getattr(user, "service_account", None)
    return account.name if account else user.username
