"""Loads once, before a web server forks, what the first requests would wait for."""

from __future__ import annotations

from contextlib import suppress

from django.db import DatabaseError, connections
from django.urls import resolve

from catalog.selectors import CatalogNotLoaded, catalog_snapshot


def warm_up() -> None:
    """Load URLs, views and the catalog; a site that isn't prepared yet says so at /health/, not here."""
    resolve("/health/")
    with suppress(CatalogNotLoaded, DatabaseError):
        catalog_snapshot()
    # A connection must not be shared by forked processes.
    connections.close_all()
