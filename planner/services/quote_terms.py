"""What the writer of a quote enters: the shape of ``Quote.terms``, of the API's body and of the page's form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from planner.services.typed_json import limited

CURRENCY = r"[A-Z]{3}"
MOST_AMOUNT = Decimal(10) ** 15

PricedCategory = Literal["compute", "networking", "storage", "egress", "licences", "services"]
ShareCategory = Literal["support", "contingency", "mark_up", "discount"]
BaseCategory = Literal[
    "compute", "networking", "storage", "egress", "licences", "services", "support", "contingency", "mark_up"
]
Unit = Literal["node_hour", "gpu_hour", "node_month", "gpu_month", "gib_month", "gb", "hour", "day", "month", "piece"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyTerms:
    """Who sells or who buys."""

    name: str = limited("", longest=160)
    address: str = limited("", longest=600, lines=8)
    """Lines as on an envelope."""
    tax_id: str = limited("", longest=60)
    """NPWP, VAT number ..."""
    contact: str = limited("", longest=120)
    email: str = limited("", longest=254)
    reference: str = limited("", longest=80)
    """Its own number for this business: a request, a purchase order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTerms:
    """So many units at a unit price, once or each month."""

    category: PricedCategory
    label: str = limited("", longest=160)
    detail: str = limited("", longest=240)
    source: str = limited("", longest=240)
    """Where the price is from, and its date."""
    quantity: Decimal | None = limited(None, most=10**12, places=6)
    """Null: not known; such a quote can't be issued."""
    unit: Unit = "piece"
    unit_price: Decimal | None = limited(None, most=MOST_AMOUNT, places=10)
    """Before tax; null: not known; such a quote can't be issued."""
    currency: str = limited("", longest=3, pattern=f"{CURRENCY}|", example="an ISO 4217 code like USD")
    """Of the unit price; empty: the quote's. Another than the quote's needs a dated rate."""
    cadence: Literal["once", "monthly"] = "monthly"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTerms:
    """A percentage of the lines before it: support, contingency, mark-up or discount, taken in this order."""

    category: ShareCategory
    percent: Decimal = limited(least=0, most=1000, places=4)
    of: tuple[BaseCategory, ...] = ()
    """Categories it is taken of; empty: all lines before it."""
    label: str = limited("", longest=160)
    source: str = limited("", longest=240)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTerms:
    """An exchange rate: one ``base`` is ``rate`` of ``quote``."""

    base: str = limited(longest=3, pattern=CURRENCY, example="an ISO 4217 code like USD")
    quote: str = limited(longest=3, pattern=CURRENCY, example="an ISO 4217 code like IDR")
    rate: Decimal = limited(least=Decimal("0.0000000001"), most=10**9, places=10)
    rate_date: date
    source: str = limited(longest=200)
    """Whose rate it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxTerms:
    """A sales tax: by ``country`` alone the catalog's rule of the day of issue, else as stated."""

    country: str = limited("", longest=2, pattern="[A-Z]{2}|", example="a country code like ID")
    name: str = limited("", longest=40)
    rate: Decimal | None = limited(None, most=1, places=6)
    """As a fraction: 0.12."""
    base_numerator: int = limited(1, least=1, most=1000)
    base_denominator: int = limited(1, least=1, most=1000)
    source: str = limited("", longest=200)
    """The law it is from; needed where the rate is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithholdingTerms:
    """Tax that the buyer keeps back and pays itself: a note, not subtracted."""

    name: str = limited(longest=40)
    rate: Decimal = limited(least=0, most=1, places=6)
    """As a fraction of the net price."""
    source: str = limited(longest=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteTerms:
    """A quote as its writer states it."""

    title: str = limited("", longest=160)
    language: Literal["en", "id"] = "en"
    """Of the documents, where none is asked for."""
    currency: str = limited("USD", longest=3, pattern=CURRENCY, example="an ISO 4217 code like USD")
    months: int = limited(12, least=1, most=120)
    """The term."""
    valid_days: int = limited(30, least=1, most=365)
    """How long the offer can be accepted, from the day of issue."""
    seller: PartyTerms = PartyTerms()
    """The organization itself, unless named."""
    buyer: PartyTerms = PartyTerms()
    items: tuple[ItemTerms, ...] = limited((), most_items=200)
    shares: tuple[ShareTerms, ...] = limited((), most_items=20)
    tax: TaxTerms | None = None
    """Null: no tax line."""
    withholding: WithholdingTerms | None = None
    fx: tuple[RateTerms, ...] = limited((), most_items=20)
    """Rates that come before those of the organization and the catalog."""
    assumptions: tuple[str, ...] = limited((), longest=400, most_items=40)
    """Beside those that follow from the plan."""
    exclusions: tuple[str, ...] = limited((), longest=400, most_items=40)
    terms: tuple[str, ...] = limited((), longest=400, most_items=40)
    """Payment, delivery, and whatever else is agreed."""
    payment_days: int | None = limited(30, least=0, most=365)
    """Null: no sentence about it."""
