"""Loading the data files into the database: all of them or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from catalog.importers.data_files import DATA_DIR, DataFiles, content_hash, newest_date, read_data_files
from catalog.importers.offers import OFFER_KEY
from catalog.importers.rows import Row
from catalog.models import (
    Accelerator,
    CarbonFactor,
    CatalogVersion,
    FxRate,
    InstanceType,
    ModelArchitecture,
    Offer,
    PriceAgeLimit,
    PriceObservation,
    Provider,
    Region,
    TaxRule,
    TokenPrice,
)


@dataclass(slots=True, kw_only=True)
class Change:
    """What loading did to one table."""

    rows: int = 0
    created: int = 0
    updated: int = 0
    retired: int = 0


@dataclass(slots=True, kw_only=True)
class LoadReport:
    """What a load did; ``skipped`` where the same files were loaded already."""

    version: str
    skipped: bool = False
    tables: dict[str, Change] = field(default_factory=dict)


def load_catalog(folder: Path = DATA_DIR, *, force: bool = False) -> LoadReport:
    """Bring the tables in line with the files in ``folder``, in one transaction.

    Loading the same files again changes nothing and returns at once, unless ``force`` is set. Raises
    ``InvalidData`` with every problem, before anything is written.
    """
    digest = content_hash(folder)
    current = CatalogVersion.objects.order_by("-loaded_at").first()
    if current is not None and current.content_hash == digest and not force:
        return LoadReport(version=current.version, skipped=True)
    files = read_data_files(folder)
    version = f"{newest_date(files.offers, 'observed_on')}.{digest[:10]}"
    with transaction.atomic():
        tables = _write(files)
        _refresh_statistics()
        CatalogVersion.objects.update_or_create(
            content_hash=digest,
            defaults={
                "version": version,
                "loaded_at": timezone.now(),
                "row_counts": {name: change.rows for name, change in tables.items()},
            },
        )
    return LoadReport(version=version, tables=tables)


def _refresh_statistics() -> None:
    """Let PostgreSQL plan the next reads by what was just written, not by the empty tables it knew."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for model in apps.get_app_config("catalog").get_models():
                cursor.execute(f'ANALYZE "{model._meta.db_table}"')


def _write(files: DataFiles) -> dict[str, Change]:
    tables: dict[str, Change] = {}
    provider_ids = _sync(tables, Provider, ("code",), _values(files.providers))
    by_code = {code: pk for (code,), pk in provider_ids.items()}
    accelerator_ids = _sync(tables, Accelerator, ("key",), _values(files.accelerators))
    regions = [_with_parent(values, "provider", by_code) for values in _values(files.regions)]
    region_ids = _sync(tables, Region, ("provider_id", "code"), regions)
    by_key = {key: pk for (key,), pk in accelerator_ids.items()}
    shapes = [
        _with_parent(_with_parent(values, "provider", by_code), "accelerator", by_key)
        for values in _values(files.instance_types)
    ]
    shape_ids = _sync(tables, InstanceType, ("provider_id", "name"), shapes)
    _write_offers(tables, files.offers, by_code, shape_ids, region_ids)
    _sync(tables, ModelArchitecture, ("name",), _values(files.models))
    _sync(tables, TokenPrice, ("provider", "provider_model_id"), _values(files.token_prices))
    _sync(tables, FxRate, ("base", "quote", "rate_date"), _values(files.fx_rates))
    _sync(tables, TaxRule, ("country", "name", "valid_from"), _values(files.tax_rules))
    carbon_key = ("kind", "country", "provider", "region", "name", "method")
    _sync(tables, CarbonFactor, carbon_key, _values(files.carbon))
    _sync(tables, PriceAgeLimit, ("provider_kind", "purchase_option"), _values(files.price_age_limits))
    return tables


def _write_offers(
    tables: dict[str, Change],
    rows: list[Row],
    providers: Mapping[Any, int],
    shapes: Mapping[tuple[Any, ...], int],
    regions: Mapping[tuple[Any, ...], int],
) -> None:
    def parents(row: Row) -> tuple[int, int, str]:
        provider = providers[row.values["provider"]]
        return (
            shapes[provider, row.values["instance_type"]],
            regions[provider, row.values["region"]],
            row.values["purchase_option"],
        )

    key = ("instance_type_id", "region_id", "purchase_option")
    offer_keys = dict.fromkeys(parents(row) for row in rows)
    offers = _sync(tables, Offer, key, [dict(zip(key, values, strict=True)) for values in offer_keys])
    observations = []
    order = sorted(rows, key=lambda row: (parents(row), row.values["observed_on"], row.values["source"]))
    for offer, group in groupby(order, key=parents):
        history = list(group)
        ends = [*(row.values["observed_on"] for row in history[1:]), None]
        observations += [
            _observation(row) | {"offer_id": offers[offer], "effective_to": end}
            for row, end in zip(history, ends, strict=True)
        ]
    immutable = ("offer_id", "observed_on", "source", "usd_per_node_hour", "amount_per_node_hour", "currency")
    _sync(tables, PriceObservation, immutable, observations)


def _observation(row: Row) -> dict[str, Any]:
    skip = {*OFFER_KEY, "usd_per_gpu_hour"}
    values = {name: value for name, value in row.values.items() if name not in skip}
    return values | {"effective_from": row.values["observed_on"]}


def _values(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [row.values for row in rows]


def _with_parent(values: Mapping[str, Any], name: str, ids: Mapping[Any, int]) -> dict[str, Any]:
    rest = {key: value for key, value in values.items() if key != name}
    return rest | {f"{name}_id": ids[values[name]]}


def _sync(
    tables: dict[str, Change], model: type[Model], key: Sequence[str], wanted: Sequence[Mapping[str, Any]]
) -> dict[tuple[Any, ...], int]:
    """Create, update and retire rows of ``model`` until they are ``wanted``; return ids by key.

    Retiring comes first and creating last, so that a row's place is free when its successor takes it.
    """
    objects = model._default_manager
    names = [*wanted[0], "retired"] if wanted else ["retired"]
    stored = {tuple(getattr(row, name) for name in key): row for row in objects.all()}
    new, changed, change = [], [], Change(rows=len(wanted))
    seen = set()
    for values in wanted:
        identity = tuple(values[name] for name in key)
        seen.add(identity)
        row = stored.get(identity)
        if row is None:
            new.append(model(**values))
        elif any(getattr(row, name) != value for name, value in values.items()) or getattr(row, "retired", False):
            for name, value in (*values.items(), ("retired", False)):
                setattr(row, name, value)
            changed.append(row)
    gone = [row.pk for identity, row in stored.items() if identity not in seen and not getattr(row, "retired", False)]
    change.retired = objects.filter(pk__in=gone).update(retired=True) if gone else 0
    change.updated = objects.bulk_update(changed, names, batch_size=200) if changed else 0
    change.created = len(objects.bulk_create(new, batch_size=500))
    tables[model._meta.verbose_name_plural.__str__()] = change
    return {tuple(getattr(row, name) for name in key): row.pk for row in (*stored.values(), *new)}
