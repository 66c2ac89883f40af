"""Which creating request was already done: a client that heard no answer may safely send it again."""

from __future__ import annotations

from django.db import models


class IdempotencyKey(models.Model):
    """One key of one client, and what its request created."""

    scope = models.CharField(max_length=100)
    """What is created, and for whom: keys of different scopes never meet."""
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    """Hash of the request: the same key with another request is a mistake."""
    created_uuid = models.UUIDField()
    """The public name of what was created."""
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}"
