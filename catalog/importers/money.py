"""fx_rates.csv, tax_rules.csv and price_age_limits.csv."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import get_args

from catalog.importers.rows import PRECISIONS, Problem, Row, read_rows, unique_rows
from catalog.models import Provider
from planner.engine.hardware import PurchaseOption


def read_fx_rates(folder: Path, problems: list[Problem]) -> list[Row]:
    """Rows of fx_rates.csv, keyed by ``base``, ``quote`` and ``rate_date``."""
    rows = []
    columns = "base,quote,rate,rate_date,date_precision,source,as_of"
    for row in read_rows(folder / "fx_rates.csv", columns, problems):
        row.values = {
            "base": row.text("base", max_length=3),
            "quote": row.text("quote", max_length=3),
            "rate": row.decimal("rate", places=8),
            "rate_date": row.day("rate_date"),
            "date_precision": row.choice("date_precision", PRECISIONS),
            **row.origin(),
        }
        if row.values["base"] == row.values["quote"]:
            row.problem("quote", "must differ from base")
        rows.append(row)
    return unique_rows(rows, ("base", "quote", "rate_date"))


def read_tax_rules(folder: Path, problems: list[Problem]) -> list[Row]:
    """Rows of tax_rules.csv, keyed by ``country``, ``name`` and ``valid_from``."""
    rows = []
    columns = "country,name,rate,base_numerator,base_denominator,valid_from,valid_to,source,as_of,notes"
    for row in read_rows(folder / "tax_rules.csv", columns, problems):
        row.values = {
            "country": row.country("country"),
            "name": row.text("name", max_length=40),
            "rate": row.decimal("rate", places=4),
            "base_numerator": row.integer("base_numerator"),
            "base_denominator": row.integer("base_denominator"),
            "valid_from": row.day("valid_from"),
            "valid_to": row.day("valid_to", blank=True),
            "notes": row.text("notes", blank=True),
            **row.origin(),
        }
        rate, start, end = (row.values[name] for name in ("rate", "valid_from", "valid_to"))
        if rate is not None and rate >= Decimal(1):
            row.problem("rate", "must be a share below 1, such as 0.12")
        if start and end and end <= start:
            row.problem("valid_to", "must be after valid_from")
        rows.append(row)
    return unique_rows(rows, ("country", "name", "valid_from"))


def read_price_age_limits(folder: Path, problems: list[Problem]) -> list[Row]:
    """Rows of price_age_limits.csv: one for every kind of provider and purchase option."""
    rows = []
    columns = "provider_kind,purchase_option,limit_days,source,as_of"
    for row in read_rows(folder / "price_age_limits.csv", columns, problems):
        row.values = {
            "provider_kind": row.choice("provider_kind", Provider.Kind.values),
            "purchase_option": row.choice("purchase_option", get_args(PurchaseOption)),
            "limit_days": row.integer("limit_days"),
            **row.origin(),
        }
        rows.append(row)
    rows = unique_rows(rows, ("provider_kind", "purchase_option"))
    have = {(row.values["provider_kind"], row.values["purchase_option"]) for row in rows}
    for kind in Provider.Kind.values:
        for option in get_args(PurchaseOption):
            if rows and (kind, option) not in have:
                rows[-1].problem("purchase_option", f"the file has no limit for {kind} {option}")
    return rows
