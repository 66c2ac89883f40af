"""providers.csv and regions.csv: who sells, and where."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from catalog.importers.rows import Problem, Row, read_rows, unique_rows
from catalog.models import Provider, Region


def read_providers(folder: Path, problems: list[Problem]) -> list[Row]:
    """Rows of providers.csv, keyed by ``code``."""
    rows = []
    for row in read_rows(folder / "providers.csv", "code,name,kind,source,as_of", problems):
        row.values = {
            "code": row.text("code", max_length=40),
            "name": row.text("name", max_length=80),
            "kind": row.choice("kind", Provider.Kind.values),
            **row.origin(),
        }
        rows.append(row)
    return unique_rows(rows, ("code",))


def read_regions(folder: Path, problems: list[Problem], providers: Collection[str]) -> list[Row]:
    """Rows of regions.csv, keyed by ``provider`` and ``code``."""
    rows = []
    columns = "provider,code,country,kind,source,as_of"
    for row in read_rows(folder / "regions.csv", columns, problems):
        row.values = {
            "provider": row.known("provider", providers, "provider"),
            "code": row.text("code", max_length=60),
            "country": row.country("country", blank=True),
            "kind": row.choice("kind", Region.Kind.values),
            **row.origin(),
        }
        if row.values["kind"] == Region.Kind.REGION and not row.values["country"]:
            row.problem("country", "must not be empty for a region")
        rows.append(row)
    return unique_rows(rows, ("provider", "code"))
