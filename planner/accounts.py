"""How signing in behaves here: allauth's adapters."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.http import HttpRequest

from planner.models import User


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Accounts of people; a service account has neither password nor address and can't sign in."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Where signing up is closed, who came by an invitation's link may still."""
        return bool(settings.ACCOUNT_SIGNUP_ENABLED) or "invitation" in request.session


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors; their secrets are encrypted, so that a copy of the database alone opens nothing."""

    def encrypt(self, text: str) -> str:
        return _ciphers().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _ciphers().decrypt(encrypted_text.encode()).decode()


def display_name(user: User) -> str:
    """How pages and messages call a person."""
    return user.email or user.username


def _ciphers() -> MultiFernet:
    """Writes with the site's secret key, reads what was written with the keys before it too."""
    keys: list[Any] = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet(
        [Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"mfa:{key}".encode()).digest())) for key in keys]
    )
