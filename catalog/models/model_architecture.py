"""Model architectures: the specification from which parameters, KV cache and work follow."""

from __future__ import annotations

from django.db import models

from catalog.models.base import Fact


class ModelArchitecture(Fact):
    """One model; ``spec`` is what the engine builds its architecture from."""

    name = models.CharField(max_length=120, unique=True)
    hf_id = models.CharField("Hugging Face id", max_length=160, blank=True, db_index=True)
    aliases = models.JSONField(default=list, blank=True)
    spec = models.JSONField()
    license = models.CharField(max_length=120, blank=True)
    release = models.CharField(max_length=20, blank=True, help_text="Year and month.")
    published_total_params_b = models.FloatField(null=True, blank=True, help_text="Billions; empty: not published.")
    published_active_params_b = models.FloatField(null=True, blank=True)
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
