"""Which data files the rows came from."""

from __future__ import annotations

from django.db import models


class CatalogVersion(models.Model):
    """One content of the data files; the same content has the same version. The last loaded is current."""

    version = models.CharField(max_length=40, unique=True)
    content_hash = models.CharField(max_length=64, unique=True)
    loaded_at = models.DateTimeField()
    row_counts = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-loaded_at"]
        get_latest_by = "loaded_at"

    def __str__(self) -> str:
        return self.version
