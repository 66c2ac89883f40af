"""Reads of the catalog: the engine's snapshot, and lists for pages and API.

Everything is built from the rows once per catalog version and kept in the process; each call asks the
database for the current version only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from django.db.models import Exists, OuterRef

from catalog.importers.accelerators import accelerator_name_key
from catalog.importers.rows import COUNTRIES
from catalog.model_files import as_published, index_names, look_up
from catalog.models import Accelerator as AcceleratorRow
from catalog.models import CatalogVersion, ModelArchitecture, Offer, Provider, Region, TokenPrice
from catalog.snapshot import build_snapshot
from planner.engine.arch_spec import arch_from_spec
from planner.engine.hardware import Accelerator, CatalogSnapshot
from planner.engine.hardware import Offer as PricedOffer
from planner.engine.model_arch import ModelArch

SEARCH_LIMIT = 20


class CatalogNotLoaded(RuntimeError):
    """No catalog is in the database: run ``manage.py load_catalog``."""

    def __init__(self) -> None:
        super().__init__("The catalog is empty: run manage.py load_catalog.")


def catalog_version() -> str:
    """The current version: the same data files give the same one. Raises ``CatalogNotLoaded``."""
    version = CatalogVersion.objects.order_by("-loaded_at").values_list("version", flat=True).first()
    if version is None:
        raise CatalogNotLoaded
    return version


def catalog_snapshot() -> CatalogSnapshot:
    """Accelerators, instance types and current prices as the engine reads them."""
    return _read(catalog_version()).snapshot


def resolve_accelerator(name: str) -> Accelerator | None:
    """The accelerator of that key, name or alias, however it is spelled; ``None`` if there is none.

    A remark in brackets is tried with the name, then left out, then read by itself: ``B200 (power-limited)``
    is a B200, ``80 GB card (H100 assumed)`` an H100.
    """
    read = _read(catalog_version())
    plain, _, remark = name.partition("(")
    for candidate in (name, plain, *remark.split()):
        key = read.accelerator_keys.get(accelerator_name_key(candidate))
        if key is not None:
            return read.snapshot.accelerators[key]
    return None


def is_stale(offer: PricedOffer, today: date) -> bool:
    """Whether the offer's price is older than the limit of its provider and purchase option."""
    return (today - offer.as_of).days > offer.age_limit_days


def list_providers() -> list[Provider]:
    """Providers with something for sale, by name."""
    offered = Offer.objects.filter(retired=False, instance_type__provider=OuterRef("pk"))
    return list(Provider.objects.filter(Exists(offered), retired=False).order_by("name"))


def list_countries() -> list[tuple[str, str]]:
    """(code, English name) of the countries with something for sale, by name."""
    offered = Offer.objects.filter(retired=False, region=OuterRef("pk"))
    regions = Region.objects.filter(Exists(offered), retired=False).exclude(country="")
    codes = set(regions.values_list("country", flat=True))
    return sorted(((code, COUNTRIES[code]) for code in codes), key=lambda pair: pair[1])


def list_accelerators(*, rentable_only: bool = False) -> list[Accelerator]:
    """Accelerators by vendor and name; only those for sale where ``rentable_only``."""
    snapshot = catalog_snapshot()
    offered = {offer.accelerator_key for offer in snapshot.offers}
    found = [a for a in snapshot.accelerators.values() if not rentable_only or a.key in offered]
    return sorted(found, key=lambda a: (a.vendor, a.name))


def find_model(name: str) -> ModelArch | None:
    """The architecture of that name, Hugging Face id or alias, or of the model it is a repack or tuning of."""
    arch = look_up(_read(catalog_version()).models, name)
    return as_published(arch, name) if arch is not None else None


def model_names() -> list[str]:
    """Every model's name, in order."""
    return list(ModelArchitecture.objects.filter(retired=False).values_list("name", flat=True))


def search_models(query: str, *, limit: int = SEARCH_LIMIT) -> list[ModelArchitecture]:
    """Models whose name, id or alias holds every word of ``query``; those that start with it come first."""
    words = _words(query)
    found = [
        (not _joined(row.name).startswith("".join(words)), row.name.casefold(), row)
        for row in ModelArchitecture.objects.filter(retired=False)
        if all(word in _joined(" ".join((row.name, row.hf_id, *row.aliases))) for word in words)
    ]
    return [row for _, _, row in sorted(found, key=lambda item: item[:2])[:limit]]


def token_prices(model: str) -> list[TokenPrice]:
    """What token APIs ask for a model, cheapest output first and unknown prices last.

    ``model`` is a catalog name, a Hugging Face id, or the prices' own model key.
    """
    keys = {model_price_key(name) for name in _names_of(model)}
    found = [row for row in TokenPrice.objects.filter(retired=False) if model_price_key(row.model_key) in keys]
    return sorted(found, key=lambda row: (row.output_usd_per_mtok is None, row.output_usd_per_mtok or 0, row.provider))


def model_price_key(name: str) -> str:
    """How model names of token APIs and of the catalog compare: no owner, no ``instruct``, no separators.

    >>> model_price_key("meta-llama/Llama-3.1-8B-Instruct") == model_price_key("Llama 3.1 8B")
    True
    """
    words = re.split(r"[^a-z0-9.]+", name.casefold().rsplit("/", 1)[-1])
    return "".join(word for word in words if word not in ("instruct", "chat", "it", "hf", "meta"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What one catalog version holds, ready for use."""

    snapshot: CatalogSnapshot
    accelerator_keys: Mapping[str, str]
    models: Mapping[str, ModelArch]


@lru_cache(maxsize=2)
def _read(version: str) -> _Read:
    accelerators = AcceleratorRow.objects.filter(retired=False)
    return _Read(
        snapshot=build_snapshot(version),
        accelerator_keys={
            accelerator_name_key(name): row.key for row in accelerators for name in (row.key, row.name, *row.aliases)
        },
        models=_models(),
    )


def _models() -> dict[str, ModelArch]:
    rows = ModelArchitecture.objects.filter(retired=False)
    return index_names(((row.name, row.hf_id, *row.aliases), arch_from_spec(row.spec)) for row in rows)


def _names_of(model: str) -> list[str]:
    wanted = model.strip().casefold()
    for row in ModelArchitecture.objects.filter(retired=False):
        names = [row.name, row.hf_id, *row.aliases]
        if wanted in (name.casefold() for name in names):
            return [name for name in names if name]
    return [model]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9.]+", text.casefold()) if word]


def _joined(text: str) -> str:
    return "".join(_words(text))
