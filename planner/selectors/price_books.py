"""Reading price books: their parts, and the catalog as an organization sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from django.db.models import Q

from catalog.exchange import USD, DatedRate, catalog_currencies, catalog_rate
from catalog.selectors import catalog_snapshot, catalog_version
from planner.engine.hardware import CatalogSnapshot, InstanceType
from planner.engine.price_book import (
    DiscountRule,
    NegotiatedPrice,
    PriceBook,
    PrivateOffer,
    Validity,
    apply_price_book,
)
from planner.engine.units import GB, GIB, HOURS_PER_MONTH, gbit_s_to_bytes_s
from planner.models import Commitment, Discount, ExchangeRate, Organization, PriceUnit, PrivateInstanceType
from planner.models import NegotiatedPrice as NegotiatedPriceRow
from planner.models import PriceBook as PriceBookRow
from planner.selectors.scope import Scope

PriceRow = NegotiatedPriceRow | Commitment | PrivateInstanceType
_STEP = Decimal("0.000001")


def price_book_in_use(scope: Scope) -> PriceBookRow | None:
    """The price book that the organization's plans use."""
    return scope.rows(PriceBookRow).filter(in_use=True).first()


def exchange_rate(organization: Organization, currency: str, on: date) -> DatedRate | None:
    """The organization's own latest rate of ``on`` or before, else the catalog's, else None."""
    if currency != USD:
        pair = Q(base=currency, quote=USD) | Q(base=USD, quote=currency)
        own = ExchangeRate.objects.filter(pair, organization=organization, rate_date__lte=on)
        row = own.order_by("-rate_date", "base").first()
        if row is not None:
            return DatedRate(base=row.base, quote=row.quote, rate=row.rate, rate_date=row.rate_date, source=row.source)
    return catalog_rate(currency, on)


def known_currencies(scope: Scope) -> list[str]:
    """Currencies that can be turned into US dollars."""
    own = scope.rows(ExchangeRate).values_list("base", "quote")
    return sorted({*catalog_currencies(), *(code for pair in own for code in pair)})


def snapshot_for(scope: Scope, today: date) -> CatalogSnapshot:
    """The catalog with the prices of the organization's price book in use; the list prices where there is none."""
    book = price_book_in_use(scope)
    if book is None:
        return catalog_snapshot()
    return _snapshot(catalog_version(), book.uuid, book.version, today)


@lru_cache(maxsize=16)
def _snapshot(_catalog: str, book: UUID, _book_version: int, today: date) -> CatalogSnapshot:
    """Made once for each version of catalog and book, and once a day: rates and validity are dated."""
    row = PriceBookRow.objects.select_related("organization").get(uuid=book)
    return apply_price_book(catalog_snapshot(), price_book_values(row, today).values, today)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPriceBook:
    """A price book as the engine takes it, and the entries that can't be used."""

    values: PriceBook
    unpriced: tuple[PriceRow, ...]
    """Their currency has no exchange rate: unknown prices, so no offers."""


def price_book_values(book: PriceBookRow, on: date) -> ReadPriceBook:
    """Every entry as values, in USD per node-hour without tax by the rates of ``on``."""
    rates: dict[str, DatedRate | None] = {}
    unpriced: list[PriceRow] = []

    def priced(rows: Iterable[PriceRow]) -> list[tuple[Any, Decimal]]:
        found = []
        for row in rows:
            if row.currency not in rates:
                rates[row.currency] = exchange_rate(book.organization, row.currency, on)
            rate = rates[row.currency]
            if rate is None:
                unpriced.append(row)
            else:
                found.append((row, usd_per_node_hour(row, rate, _gpu_count(row))))
        return found

    negotiated = priced(NegotiatedPriceRow.objects.filter(price_book=book))
    committed = priced(Commitment.objects.filter(price_book=book, kind=Commitment.Kind.CAPACITY))
    private = priced(PrivateInstanceType.objects.filter(price_book=book))
    values = PriceBook(
        version=f"{book.uuid}.{book.version}",
        name=book.name,
        discounts=tuple(_discount(row, book) for row in Discount.objects.filter(price_book=book)),
        negotiated=tuple(_negotiated(row, usd, book) for row, usd in negotiated),
        committed=tuple(_committed(row, usd, book) for row, usd in committed),
        private=tuple(_private(row, usd, book) for row, usd in private),
    )
    return ReadPriceBook(values=values, unpriced=tuple(unpriced))


def usd_per_node_hour(row: PriceRow, rate: DatedRate, gpu_count: Decimal) -> Decimal:
    """The entry's amount without its tax, for one node and hour, in USD."""
    net = row.amount / (1 + row.tax_percent / 100)
    match row.unit:
        case PriceUnit.GPU_HOUR:
            net *= gpu_count
        case PriceUnit.NODE_MONTH:
            net /= HOURS_PER_MONTH
    return rate.to_usd(net).quantize(_STEP)


def _gpu_count(row: PriceRow) -> Decimal:
    if isinstance(row, PrivateInstanceType):
        return Decimal(row.gpu_count)
    instance = catalog_snapshot().instance_types.get((row.provider, row.instance_type))
    return Decimal(str(instance.gpu_count)) if instance is not None else Decimal(1)


def _validity(row: Any) -> Validity:
    return Validity(first=row.valid_from, last=row.valid_until)


def _source(row: Any, book: PriceBookRow) -> str:
    return f"price book {book.name}" + (f", {row.reference}" if row.reference else "")


def _discount(row: Discount, book: PriceBookRow) -> DiscountRule:
    return DiscountRule(
        provider=row.provider,
        purchase_options=tuple(row.purchase_options),
        share=row.percent / 100,
        validity=_validity(row),
        source=f"{row.percent.normalize():f} % off, {_source(row, book)}",
    )


def _negotiated(row: NegotiatedPriceRow, usd: Decimal, book: PriceBookRow) -> NegotiatedPrice:
    return _price(row, usd, book, agreed_on=row.agreed_on, instance_type=row.instance_type)


def _committed(row: Commitment, usd: Decimal, book: PriceBookRow) -> NegotiatedPrice:
    agreed = row.valid_from or row.created_at.date()
    return _price(row, usd, book, agreed_on=agreed, instance_type=row.instance_type, nodes=row.nodes)


def _private(row: PrivateInstanceType, usd: Decimal, book: PriceBookRow) -> PrivateOffer:
    source = _source(row, book)
    return PrivateOffer(
        instance_type=InstanceType(
            provider=row.provider,
            name=row.name,
            accelerator_key=row.accelerator,
            gpu_count=float(row.gpu_count),
            vcpus=row.vcpus,
            ram_bytes=None if row.ram_gib is None else round(row.ram_gib * GIB),
            local_disk_bytes=None if row.local_disk_gb is None else round(row.local_disk_gb * GB),
            intra_node_link=cast(Any, row.link),
            link_domain_gpus=row.link_domain_gpus,
            fabric=cast(Any, row.fabric),
            fabric_name=row.fabric,
            network_bytes_s=None if row.network_gbit_s is None else gbit_s_to_bytes_s(row.network_gbit_s),
            source=source,
            as_of=row.agreed_on,
        ),
        price=_price(row, usd, book, agreed_on=row.agreed_on, instance_type=row.name, nodes=row.nodes),
    )


def _price(
    row: Any, usd: Decimal, book: PriceBookRow, *, agreed_on: date, instance_type: str, nodes: int | None = None
) -> NegotiatedPrice:
    return NegotiatedPrice(
        provider=row.provider,
        instance_type=instance_type,
        region=row.region,
        country=row.country,
        purchase_option=row.purchase_option,
        usd_per_node_hour=usd,
        agreed_on=agreed_on,
        validity=_validity(row),
        source=_source(row, book),
        available_nodes=nodes,
    )
