"""All data files together: read, cross-checked and gated, or refused with every problem found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from catalog.importers.accelerators import read_accelerators
from catalog.importers.carbon import read_carbon
from catalog.importers.instance_types import read_instance_types
from catalog.importers.model_architectures import read_model_architectures
from catalog.importers.money import read_fx_rates, read_price_age_limits, read_tax_rules
from catalog.importers.offers import read_offers
from catalog.importers.price_gates import check_discounts, check_price_level, read_price_reviews
from catalog.importers.providers import read_providers, read_regions
from catalog.importers.rows import Problem, Row
from catalog.importers.token_prices import read_token_prices

DATA_DIR = Path(__file__).resolve().parent.parent / "data"
LAYOUT_REVISION = 1
"""Part of the content hash: raise it when the same files load into other rows."""


class InvalidData(ValueError):
    """The data files can't be loaded; ``problems`` holds all of what is wrong with them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(f"{len(problems)} problems in the data files")
        self.problems = sorted(problems, key=lambda p: (p.file, p.line, p.column))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """The sound rows of every file."""

    providers: list[Row]
    regions: list[Row]
    accelerators: list[Row]
    instance_types: list[Row]
    offers: list[Row]
    models: list[Row]
    token_prices: list[Row]
    fx_rates: list[Row]
    tax_rules: list[Row]
    carbon: list[Row]
    price_age_limits: list[Row]


def content_hash(folder: Path) -> str:
    """SHA-256 over the names and bytes of all data files, whatever the folder is called."""
    digest = hashlib.sha256(f"layout {LAYOUT_REVISION}\n".encode())
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".csv", ".json")):
        data = path.read_bytes()
        digest.update(f"{path.name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def read_data_files(folder: Path) -> DataFiles:
    """Read and check everything; raise ``InvalidData`` with all problems, or return sound rows."""
    problems: list[Problem] = []
    providers = read_providers(folder, problems)
    codes = {row.values["code"] for row in providers}
    accelerators = read_accelerators(folder, problems)
    regions = read_regions(folder, problems, codes)
    instance_types = read_instance_types(folder, problems, codes, {row.values["key"]: row for row in accelerators})
    offers = read_offers(
        folder,
        problems,
        {(row.values["provider"], row.values["name"]): row for row in instance_types},
        {(row.values["provider"], row.values["code"]) for row in regions},
        codes,
    )
    check_price_level(
        offers,
        {row.values["code"]: row.values["kind"] for row in providers if row.sound},
        read_price_reviews(folder, problems),
    )
    check_discounts(offers)
    files = DataFiles(
        providers=providers,
        regions=regions,
        accelerators=accelerators,
        instance_types=instance_types,
        offers=offers,
        models=read_model_architectures(folder, problems),
        token_prices=read_token_prices(folder, problems),
        fx_rates=read_fx_rates(folder, problems),
        tax_rules=read_tax_rules(folder, problems),
        carbon=read_carbon(folder, problems, codes),
        price_age_limits=read_price_age_limits(folder, problems),
    )
    if problems:
        raise InvalidData(problems)
    return files


def newest_date(rows: Iterable[Row], column: str) -> str:
    """The latest date among ``rows``, ISO formatted."""
    return str(max(row.values[column] for row in rows))
