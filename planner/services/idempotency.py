"""Creating once: the same ``Idempotency-Key`` with the same request creates nothing new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import IdempotencyKey

KEY_FIELD = "Idempotency-Key"
KEY_LENGTH = (16, 200)
KEPT_FOR = timedelta(hours=24)


class KeyReused(ValueError):
    """The key was used before, with another request."""


def create_once(*, scope: str, key: str, request: Mapping[str, Any], create: Callable[[], UUID]) -> tuple[UUID, bool]:
    """The public name of what ``create`` made for this key, now or before; and whether it was made now.

    Raises ``KeyReused`` when ``request`` isn't the one the key came with first, ``InvalidQuestion`` for a key that
    others could guess or that can't be stored.
    """
    _check(key)
    oldest = timezone.now() - KEPT_FOR
    IdempotencyKey.objects.filter(created_at__lt=oldest).delete()
    fingerprint = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    # Of two requests at the same moment the second waits here for the first: its row is there or gone.
    with transaction.atomic():
        row, is_new = IdempotencyKey.objects.get_or_create(
            scope=scope, key=key, defaults={"fingerprint": fingerprint, "created_uuid": UUID(int=0)}
        )
        if is_new:
            row.created_uuid = create()
            row.save(update_fields=["created_uuid"])
    if row.fingerprint != fingerprint:
        raise KeyReused(key)
    return row.created_uuid, is_new


def _check(key: str) -> None:
    shortest, longest = KEY_LENGTH
    if not shortest <= len(key) <= longest or not key.isascii() or not key.isprintable():
        raise InvalidQuestion(
            [
                FieldError(
                    field=KEY_FIELD,
                    value=key,
                    message="Not a usable key.",
                    allowed=say(
                        "{shortest} to {longest} printable ASCII characters, for example a UUID",
                        shortest=shortest,
                        longest=longest,
                    ),
                )
            ]
        )
