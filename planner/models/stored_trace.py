"""Whose an uploaded trace is; its bytes are in the site's file storage."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class StoredTrace(models.Model):
    """One uploaded trace of requests."""

    name = models.CharField(max_length=32, unique=True, editable=False)
    """Its id; unguessable, so that whoever sent it anonymously can simulate it."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    """Who alone may simulate it; none: whoever knows its id."""

    def __str__(self) -> str:
        return f"trace {self.name}"
