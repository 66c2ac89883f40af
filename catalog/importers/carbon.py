"""carbon.csv: grid intensities, PUE and energy coefficients."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from catalog.importers.rows import Problem, Row, read_rows, unique_rows
from catalog.models import CarbonFactor

COLUMNS = "kind,country,provider,region,name,method,value,unit,data_year,source,as_of,notes"
UNITS = {
    "grid_country": ("g_co2e_per_kwh",),
    "grid_region": ("g_co2e_per_kwh",),
    "pue": ("ratio",),
    "coefficient": ("kwh_per_gb", "wh_per_gb_hour", "wh_per_tb_hour"),
}
NEEDED = {
    "grid_country": ("country", "method"),
    "grid_region": ("provider", "region", "method"),
    "pue": ("provider",),
    "coefficient": ("name",),
}


def read_carbon(folder: Path, problems: list[Problem], providers: Collection[str]) -> list[Row]:
    """Rows of carbon.csv; which columns are filled depends on ``kind``."""
    rows = []
    for row in read_rows(folder / "carbon.csv", COLUMNS, problems):
        kind = row.choice("kind", CarbonFactor.Kind.values)
        row.values = {
            "kind": kind,
            "country": row.country("country", blank=True),
            "provider": row.known("provider", providers, "provider", blank=True),
            "region": row.text("region", blank=True, max_length=60),
            "name": row.text("name", blank=True, max_length=40),
            "method": row.choice("method", ("location", "market"), blank=True),
            "value": row.number("value"),
            "unit": row.choice("unit", UNITS.get(kind, ())),
            "data_year": row.integer("data_year", minimum=2000),
            "notes": row.text("notes", blank=True),
            **row.origin(),
        }
        for column in NEEDED.get(kind, ()):
            row.text(column)
        if kind == CarbonFactor.Kind.PUE and row.values["value"] is not None and row.values["value"] < 1:
            row.problem("value", "a PUE is at least 1")
        rows.append(row)
    return unique_rows(rows, ("kind", "country", "provider", "region", "name", "method"))
