"""Exchange rates: dated, in the direction they were quoted, so that nothing is rounded on the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db.models import Q

from catalog.models import FxRate

USD = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedRate:
    """One ``base`` buys ``rate`` of ``quote``, as ``source`` said on ``rate_date``; one of the two is USD."""

    base: str
    quote: str
    rate: Decimal
    rate_date: date
    source: str

    def to_usd(self, amount: Decimal) -> Decimal:
        """``amount`` of the other currency in USD, not rounded.

        >>> rupiah = DatedRate(base="USD", quote="IDR", rate=Decimal(16500), rate_date=date(2026, 1, 2), source="bank")
        >>> rupiah.to_usd(Decimal(33_000_000)), rupiah.from_usd(Decimal(2000))
        (Decimal('2000'), Decimal('33000000'))
        """
        return amount * self.rate if self.quote == USD else amount / self.rate

    def from_usd(self, amount: Decimal) -> Decimal:
        """``amount`` of USD in the other currency, not rounded."""
        return amount / self.rate if self.quote == USD else amount * self.rate


def catalog_rate(currency: str, on: date) -> DatedRate | None:
    """The latest rate of ``on`` or before; None where the catalog has none: never a guess."""
    if currency == USD:
        return DatedRate(base=USD, quote=USD, rate=Decimal(1), rate_date=on, source="by definition")
    pair = Q(base=currency, quote=USD) | Q(base=USD, quote=currency)
    row = FxRate.objects.filter(pair, retired=False, rate_date__lte=on).order_by("-rate_date", "base").first()
    if row is None:
        return None
    return DatedRate(base=row.base, quote=row.quote, rate=row.rate, rate_date=row.rate_date, source=row.source)


def catalog_currencies() -> list[str]:
    """Currencies that the catalog can turn into US dollars, USD included."""
    pairs = FxRate.objects.filter(Q(base=USD) | Q(quote=USD), retired=False).values_list("base", "quote")
    return sorted({USD, *(code for pair in pairs for code in pair)})
