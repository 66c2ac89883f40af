"""Texts that have to be read again but not from a copy of the database: encrypted with the site's secret key."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings


def seal(text: str, *, purpose: str) -> str:
    """``text`` encrypted; what is sealed for one purpose can't be opened for another."""
    return _ciphers(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, purpose: str) -> str:
    """What was sealed for this purpose, with the secret key of now or one before it."""
    return _ciphers(purpose).decrypt(sealed.encode()).decode()


def _ciphers(purpose: str) -> MultiFernet:
    keys: list[Any] = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet(
        [Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"{purpose}:{key}".encode()).digest())) for key in keys]
    )
