"""A draft priced: its terms, rates and tax of the day become a snapshot, or a list of what stands in the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from babel.numbers import get_currency_precision, list_currencies

from planner.documents.snapshot import (
    FxRate,
    Party,
    QuoteSnapshot,
    Statement,
)
from planner.engine.errors import FieldError
from planner.engine.money import Currency
from planner.engine.quote_math import Item, Priced, Share, price_quote
from planner.engine.sentences import Noun, say
from planner.engine.units import HOURS_PER_MONTH
from planner.models import Organization, ScenarioVersion
from planner.selectors.price_books import exchange_rate
from planner.services.quote_annex import plan_facts, statements
from planner.services.quote_tax import tax_of, tax_rate, withholding_of
from planner.services.quote_terms import ItemTerms, PartyTerms, QuoteTerms
from planner.services.rate_days import old_rates, stated_day_faults

USD = "USD"
STANDARD_EXCLUSIONS = {"egress": "no_egress", "storage": "no_storage", "licences": "no_licences"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedDraft:
    """What the quote would say today, and why it can't be issued where it can't."""

    snapshot: QuoteSnapshot
    problems: tuple[FieldError, ...]
    warnings: tuple[FieldError, ...] = ()
    """What it can be issued with, and should be known before."""


def price_draft(
    *,
    organization: Organization,
    terms: QuoteTerms,
    version: ScenarioVersion | None,
    now: datetime,
    supersedes: str = "",
) -> PricedDraft:
    """The snapshot of ``terms`` as of ``now``, without a number."""
    today = now.date()
    currency = currency_of(terms.currency)
    rates = _Rates(organization, terms, today)
    problems: list[FieldError] = []
    items = [_item(place, item, terms, rates, problems) for place, item in enumerate(terms.items)]
    shares = [
        Share(
            id=f"share-{place + 1}",
            category=share.category,
            percent=share.percent,
            of=share.of,
            label=share.label,
            source=share.source,
        )
        for place, share in enumerate(terms.shares)
    ]
    tax = tax_of(terms.tax, today, problems) if terms.tax is not None else None
    rate = None if tax is None else tax_rate(tax)
    priced = price_quote(items, shares, rate, currency, terms.months)
    problems += [*_missing(terms, priced), *stated_day_faults(terms, today)]
    snapshot = QuoteSnapshot(
        number="",
        title=terms.title or (version.scenario.name if version else ""),
        language=terms.language,
        made_at=now,
        issued_on=None,
        valid_until=today + timedelta(days=terms.valid_days),
        supersedes=supersedes,
        seller=_party(terms.seller, organization.name),
        buyer=_party(terms.buyer, ""),
        currency=currency,
        months=terms.months,
        lines=priced.lines,
        net=priced.net,
        tax_total=priced.tax,
        total=priced.total,
        tax=tax,
        withholding=withholding_of(terms, priced, currency),
        fx=tuple(rates.used.values()),
        plan=plan_facts(version) if version else None,
        assumptions=(
            *(statements(version, whole=_rents_throughout(terms)) if version else ()),
            *_written(terms.assumptions),
        ),
        exclusions=(*_exclusions(terms), *_written(terms.exclusions)),
        terms=tuple(_payment(terms)),
    )
    warnings = tuple(old_rates(rates.used.values(), today))
    return PricedDraft(snapshot=snapshot, problems=tuple(problems), warnings=warnings)


def currency_of(code: str) -> Currency:
    """A currency with the decimals its amounts have: 2 for USD, 0 for IDR and JPY."""
    return Currency(code=code, minor_digits=get_currency_precision(code))


def known_currency(code: str) -> bool:
    """Whether there is such a currency."""
    return code in list_currencies()


class _Rates:
    """Unit prices in the quote's currency; remembers every rate that was used."""

    def __init__(self, organization: Organization, terms: QuoteTerms, today: date) -> None:
        self._organization = organization
        self._terms = terms
        self._today = today
        self.used: dict[tuple[str, str], FxRate] = {}

    def convert(self, amount: Decimal, currency: str) -> Decimal | None:
        """``amount`` in the quote's currency, not rounded; None where a rate is missing."""
        target = self._terms.currency
        if currency == target:
            return amount
        direct = self._apply(amount, currency, target)
        if direct is not None or USD in (currency, target):
            return direct
        dollars = self._apply(amount, currency, USD)
        return None if dollars is None else self._apply(dollars, USD, target)

    def _apply(self, amount: Decimal, base: str, quote: str) -> Decimal | None:
        rate = self._find(base, quote)
        if rate is None:
            return None
        self.used[rate.base, rate.quote] = rate
        return amount * rate.rate if (rate.base, rate.quote) == (base, quote) else amount / rate.rate

    def _find(self, base: str, quote: str) -> FxRate | None:
        """The writer's own rate, in either direction, else the organization's or the catalog's."""
        for given in self._terms.fx:
            if {given.base, given.quote} == {base, quote}:
                return _rate(given)
        if USD not in (base, quote):
            return None
        dated = exchange_rate(self._organization, quote if base == USD else base, self._today)
        return None if dated is None else _rate(dated)


def _rate(stated: object) -> FxRate:
    """The rate that the writer, the organization or the catalog states: all call its parts the same."""
    return FxRate(**{f.name: getattr(stated, f.name) for f in fields(FxRate)})


def _item(place: int, item: ItemTerms, terms: QuoteTerms, rates: _Rates, problems: list[FieldError]) -> Item:
    currency = item.currency or terms.currency
    price = None if item.unit_price is None else rates.convert(item.unit_price, currency)
    if item.unit_price is not None and price is None:
        problems.append(
            FieldError(
                field="fx",
                value=f"{currency}/{terms.currency}",
                message=say("No exchange rate for line {place}, {name}.", place=place + 1, name=_name(item)),
                allowed=say(
                    "a rate from {currency} to {to} with its day and source",
                    currency=currency,
                    to=terms.currency,
                ),
                code="unknown_rate",
            )
        )
    return Item(
        id=f"line-{place + 1}",
        category=item.category,
        cadence=item.cadence,
        quantity=item.quantity,
        unit=item.unit,
        unit_price=price,
        label=item.label,
        detail=item.detail,
        source=item.source,
    )


def _name(item: ItemTerms) -> str:
    return item.label or item.category


def _missing(terms: QuoteTerms, priced: Priced) -> Iterator[FieldError]:
    """What an issued quote can't lack."""
    for place, item in enumerate(terms.items):
        for name, words in (("unit_price", "price"), ("quantity", "quantity")):
            if getattr(item, name) is None:
                yield FieldError(
                    field=f"items.{place}.{name}",
                    value=None,
                    message=say(
                        "The {words} of line {place}, {name}, is not known.",
                        words=Noun(words),
                        place=place + 1,
                        name=_name(item),
                    ),
                    allowed=say("a {words}, or the line taken out", words=Noun(words)),
                    code=f"unknown_{words}",
                )
    if not terms.items:
        yield FieldError(
            field="items", value=[], message=say("Nothing is offered."), allowed=say("a line"), code="empty"
        )
    if not terms.buyer.name:
        yield FieldError(
            field="buyer.name", value="", message=say("The buyer has no name."), allowed=say("a name"), code="required"
        )
    if priced.total.term is not None and priced.total.term < 0:
        yield FieldError(
            field="shares",
            value=str(priced.total.term),
            message=say("The total is below nothing."),
            allowed=say("less discount"),
        )


def _party(terms: PartyTerms, name: str) -> Party:
    return replace(Party(**{f.name: getattr(terms, f.name) for f in fields(Party)}), name=terms.name or name)


def _rents_throughout(terms: QuoteTerms) -> bool:
    """Whether what is rented by the hour is rented for all hours of the month."""
    hourly = [item for item in terms.items if item.cadence == "monthly" and item.unit in ("node_hour", "gpu_hour")]
    return all(item.quantity is None or item.quantity % HOURS_PER_MONTH == 0 for item in hourly)


def _exclusions(terms: QuoteTerms) -> Iterator[Statement]:
    """What such a quote is often thought to hold, where it doesn't."""
    sold = {item.category for item in terms.items}
    for category, code in STANDARD_EXCLUSIONS.items():
        if category not in sold:
            yield Statement(code=code, values={})
    yield Statement(code="no_people", values={})
    yield Statement(code="no_duties", values={})


def _payment(terms: QuoteTerms) -> Iterator[Statement]:
    if terms.payment_days is not None:
        yield Statement(code="payment_days", values={"days": str(terms.payment_days)})
    if any(item.cadence == "monthly" for item in terms.items):
        yield Statement(code="invoice_monthly", values={})
    yield from _written(terms.terms)


def _written(texts: tuple[str, ...]) -> Iterator[Statement]:
    for text in texts:
        if text:
            yield Statement(values={}, text=text)
