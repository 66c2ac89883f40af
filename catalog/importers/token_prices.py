"""token_api_prices.csv: list prices of token APIs."""

from __future__ import annotations

from pathlib import Path

from catalog.importers.rows import PRECISIONS, Problem, Row, read_rows, unique_rows

PRICES = (
    "input_usd_per_mtok",
    "output_usd_per_mtok",
    "cached_input_usd_per_mtok",
    "tier_input_usd_per_mtok",
    "tier_output_usd_per_mtok",
)
COLUMNS = (
    "provider,model_key,provider_model_id,weights,tier_above_input_tokens,flags,source,pricing_page,as_of,"
    "as_of_precision,notes," + ",".join(PRICES)
)


def read_token_prices(folder: Path, problems: list[Problem]) -> list[Row]:
    """Rows of token_api_prices.csv, keyed by ``provider`` and ``provider_model_id``."""
    rows = []
    for row in read_rows(folder / "token_api_prices.csv", COLUMNS, problems):
        flags = row.flags("flags", ("dated_change", "time_of_day", "unknown_price"))
        unknown = "unknown_price" in flags
        row.values = {
            "provider": row.text("provider", max_length=60),
            "model_key": row.text("model_key", max_length=120),
            "provider_model_id": row.text("provider_model_id", max_length=200),
            "weights": row.choice("weights", ("open", "closed")),
            **{name: row.decimal(name, blank=unknown or name not in PRICES[:2]) for name in PRICES},
            "tier_above_input_tokens": row.integer("tier_above_input_tokens", blank=True),
            "flags": flags,
            "pricing_page": row.text("pricing_page", blank=True, max_length=300),
            "as_of_precision": row.choice("as_of_precision", PRECISIONS),
            "notes": row.text("notes", blank=True),
            **row.origin(),
        }
        tier = [row.values[name] is None for name in ("tier_above_input_tokens", *PRICES[3:])]
        if any(tier) and not all(tier):
            row.problem("tier_above_input_tokens", "a tier needs its bound and both its prices")
        plain, cached = row.values["input_usd_per_mtok"], row.values["cached_input_usd_per_mtok"]
        if plain is not None and cached is not None and cached > plain:
            row.problem("cached_input_usd_per_mtok", f"must not be above the input price {plain}")
        rows.append(row)
    return unique_rows(rows, ("provider", "provider_model_id"))
